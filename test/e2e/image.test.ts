import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openCache } from '../../guest/tasks/cache.ts';
import { LABEL } from '../../guest/trial/labels.ts';
import type { EvalPlan } from '../../guest/wire/plan.ts';
import { LOCKED_NODE, makeGuestBase } from '../../scripts/images/base.ts';
import { ensureTestImage } from '../docker/fixtures.ts';
import {
  childrenOf,
  type Ended,
  evaluator,
  type StartedEvaluator,
  startEvaluator,
} from '../support/evaluator.ts';
import {
  docker,
  expectNothingLeft,
  guestOf,
  inspect,
  removeImages,
  type Seen,
  siblingsOf,
  trialsOf,
} from '../support/guest-container.ts';
import { type Refusals, startRefusals } from '../support/guest-refusals.ts';
import { scratchFolder } from '../support/scratch.ts';
import { SMALL_TASK, writeAgent, writeTasks } from '../support/small-run.ts';
import { removeTaskImages } from '../support/task-images.ts';

const WIDER = join(import.meta.dirname, '../support/wider-run.ts');
const folder = scratchFolder();
const place = (name: string) => join(folder, name);
const read = (name: string, file: string) => readFileSync(join(place(name), file));
const json = (name: string, file: string) => JSON.parse(read(name, file).toString());
const journal = (name: string) =>
  read(name, 'journal.jsonl')
    .toString()
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));

interface Run extends StartedEvaluator {
  scratch: string;
}

function start(name: string, image: readonly string[], agent: string, program?: string): Run {
  const scratch = place(`${name}-tmp`);
  mkdirSync(scratch);
  const sealed = ['--cache', place('sealed'), '--golden-key', place('golden.key')];
  const reps = ['--reps', '2', '--concurrency', '2'];
  const options = [...sealed, ...reps, '--agent', place(agent), '--ranked', '--out', place(name), '--json'];
  const args = ['--image', ...image, ...options];
  const started = program
    ? startEvaluator(args, { TMPDIR: scratch }, program)
    : startEvaluator(['run', ...args], { TMPDIR: scratch });
  return { scratch, ...started };
}

/** A run of the image that is here, when its agents sleep. */
async function running(name: string): Promise<Run & { guest: string; desk: string }> {
  const run = start(name, [tag], 'sleeper');
  await run.says(/"stage":"run","mark":"begin"/);
  const { guest, desk } = await guestOf(run);
  await trialsOf(guest, 2);
  return { ...run, guest, desk };
}

let ended: Ended;
let plan: EvalPlan;
let tag = '';
let seen: Seen;

removeTaskImages(['small']);
beforeAll(async () => {
  await ensureTestImage();
  await makeGuestBase(LOCKED_NODE, () => {});
  const tasks = await writeTasks(place('tasks'), { small: SMALL_TASK });
  // Long enough to be looked at.
  await writeAgent(place('solver'), 'echo right > /app/answer\nsleep 3\n');
  await writeAgent(place('sleeper'), 'sleep 100\n');
  expect((await evaluator(['keygen', '--out', place('golden.key')])).code).toBe(0);
  const seal = ['--seal', place('golden.key'), '--out', place('sealed')];
  const baked = await evaluator(['bake', '--from', tasks, ...seal]);
  expect(baked.code, baked.stderr).toBe(0);

  const run = start('built', [], 'solver');
  await run.says(/"stage":"run","mark":"begin"/);
  const { guest, desk } = await guestOf(run);
  const trials = await Promise.all((await trialsOf(guest, 2)).map(inspect));
  const container = await inspect(guest);
  seen = {
    guest: container,
    desk,
    trials,
    status: readFileSync(`/proc/${container.State.Pid}/status`, 'utf8'),
  };
  tag = (await inspect(container.Image)).RepoTags.find((name) => name.startsWith('cvm-evaluator/')) ?? '';
  ended = await run.ended;
  expect(ended.code, ended.stderr).toBe(0);
  plan = json('built', 'plan.json');
}, 600_000);

afterAll(() => removeImages(tag));

describe('a ranked run with its guest as the built image', () => {
  it('is accepted, and verified from its files alone', async () => {
    const summary = JSON.parse(ended.stdout);
    expect([summary.accepted, summary.score], ended.stdout).toEqual([true, 1]);
    const file = (name: string) => join(place('built'), name);
    const lists = ['plan', 'plan-root', 'allowlist', 'collateral'].flatMap((name) => [
      `--${name}`,
      file(`${name}.json`),
    ]);
    const others = ['--mechanism', file('mechanism.yaml'), '--root', file('root.pem')];
    const verified = await evaluator(['verify', file('result.json'), ...lists, ...others]);
    expect(verified.code, verified.stdout).toBe(0);
  });

  it("carries the compose hash of the image's own app-compose, which is the one on the list", async () => {
    const { execution_proof } = json('built', 'result.json');
    const { compose_hash } = execution_proof.attestation.measurement;
    expect(compose_hash).toBe(createHash('sha256').update(read('built', 'app-compose.json')).digest('hex'));
    const { public_key, challenge_id } = json('built', 'plan-root.json');
    const { image_ref } = plan.eval_app;
    expect(image_ref).toMatch(/^localhost\/cvm-evaluator\/eval(?:-desk)?@sha256:/);
    expect(execution_proof.image_digest).toBe(image_ref.split('@')[1]);
    const options = ['--image', image_ref, '--plan-root', public_key, '--challenge-id', challenge_id];
    const composed = await evaluator(['compose', ...options, '--json']);
    expect(JSON.parse(composed.stdout).compose_hash).toBe(compose_hash);
    const { entries } = json('built', 'allowlist.json');
    expect(entries).toEqual([expect.objectContaining({ image_ref, measurement: plan.eval_app.measurement })]);
  });
});

describe("the guest's container", () => {
  it('is what the compose says: hardened, three mounts, the named variables', () => {
    const { HostConfig, Config, Mounts } = seen.guest;
    expect(HostConfig).toMatchObject({
      ReadonlyRootfs: true,
      CapDrop: ['ALL'],
      CapAdd: null,
      SecurityOpt: ['no-new-privileges:true'],
      Privileged: false,
      Binds: null,
      RestartPolicy: { Name: 'no' },
    });
    expect(Mounts.map(({ Destination, RW }) => `${Destination} ${RW}`).sort()).toEqual([
      '/sys/fs/cgroup false',
      '/var/run/docker.sock true',
      '/var/run/dstack.sock true',
    ]);
    const { public_key, challenge_id } = json('built', 'plan-root.json');
    expect(Config.Cmd).toEqual(['--plan-root', public_key, '--challenge-id', challenge_id]);
    const names = Config.Env.map((pair) => pair.split('=')[0]);
    expect(names.filter((name) => name?.startsWith('EVAL_'))).toEqual(['EVAL_PLAN', 'EVAL_RUN_TOKEN']);
  });

  it('has no capability in the kernel, and opened both sockets', () => {
    expect(/CapEff:\s*(\w+)/.exec(seen.status)?.[1]).toBe('0'.repeat(16));
    expect(/NoNewPrivs:\s*(\d)/.exec(seen.status)?.[1]).toBe('1');
  });

  it('has siblings for trials, without a bind mount', () => {
    const owner = `container:${seen.guest.Id}`;
    for (const { HostConfig, Mounts, Config } of seen.trials) {
      expect(HostConfig).toMatchObject({ Binds: null, CgroupParent: '' });
      expect(Mounts.map(({ Type }) => Type)).toEqual(['volume']);
      expect(Config.Labels[LABEL.owner]).toBe(owner);
    }
  });

  it('reads their counters through the read-only mount', () => {
    const { reps } = json('built', 'result.json').score_record.tasks[0];
    for (const { cpu_ms, memory_peak_bytes } of reps) {
      expect(cpu_ms).toBeGreaterThan(0);
      expect(memory_peak_bytes).toBeGreaterThan(0);
    }
  });

  it('leaves nothing behind, and neither does its desk', () => expectNothingLeft(seen.guest.Id, seen.desk));
});

describe.concurrent('a guest in a container that is ended', () => {
  it('by SIGTERM of the run takes its siblings down', async () => {
    const run = await running('term');
    run.child.kill('SIGTERM');
    expect((await run.ended).code).toBe(143);
    await expectNothingLeft(run.guest, run.desk);
    expect(readdirSync(run.scratch)).toEqual([]);
  });

  it('by SIGKILL of its container is swept after by the run', async () => {
    const run = await running('killed');
    await docker('kill', run.guest);
    const { code, stdout } = await run.ended;
    expect([code, JSON.parse(stdout).result]).toEqual([5, null]);
    await expectNothingLeft(run.guest, run.desk);
  });

  it('by SIGKILL of the run is swept after by the reaper, and every part ends', async () => {
    const run = await running('orphaned');
    const parts = childrenOf(run.child.pid ?? 0).map(({ pid }) => pid);
    expect(parts).toHaveLength(3);
    run.child.kill('SIGKILL');
    await run.ended;
    while (parts.some((pid) => existsSync(`/proc/${pid}/exe`))) await sleep(50);
    await expectNothingLeft(run.guest, run.desk);
  });
});

describe('a compose with one mount more', () => {
  it('is not allowlisted for the challenge; its guest sweeps what one killed with its desk has left', async () => {
    const dead = await running('dead');
    // Stopped, the run cannot clean up any more; nobody is left who could.
    dead.child.kill('SIGSTOP');
    for (const { pid, command } of childrenOf(dead.child.pid ?? 0))
      if (command.includes('reaper')) process.kill(pid, 'SIGKILL');
    await docker('kill', dead.guest);
    dead.child.kill('SIGKILL');
    // Gone by another's hand: what it has left is then the next guest's to sweep, not the next desk's.
    await docker('rm', dead.guest);
    const left = await siblingsOf(dead.guest);
    expect(left.length).toBeGreaterThan(2);

    const wider = start('wider', [tag], 'solver', WIDER);
    const { code, stdout, stderr } = await wider.ended;
    expect([code, JSON.parse(stdout)], stderr).toEqual([
      3,
      expect.objectContaining({ reason_code: 'measurement_not_allowed', result: null }),
    ]);
    expect(read('wider', 'app-compose.json').toString()).toContain('/:/host:ro');
    const said = journal('wider');
    expect(said).toContainEqual(expect.objectContaining({ event: 'swept' }));
    await expectNothingLeft(dead.guest, dead.desk);
    expect(said.filter(({ event }) => event === 'error')).toEqual([
      expect.objectContaining({ stage: 'unlock', code: 'measurement_not_allowed' }),
    ]);
    const challenge = said
      .filter(({ process }) => process === 'challenge')
      .map(({ line }) => JSON.parse(line));
    expect(challenge.map(({ exchange, reason_code }) => [exchange, reason_code])).toEqual([
      ['release', 'measurement_not_allowed'],
    ]);
  });
});

describe('the production image refuses, before anybody is asked for anything:', () => {
  let refusals: Refusals;
  beforeAll(async () => {
    refusals = await startRefusals({ tag, cache: await openCache(place('sealed')), folder });
  });
  afterAll(() => refusals.close());

  it.concurrent.each<[string, string, number, Parameters<Refusals['refuse']>[0]]>([
    ['a simulator is named', 'simulator_variable_set', 2, { variables: ['DSTACK_SIMULATOR_ENDPOINT'] }],
    ['a plan signed under another root', 'signer_signature_invalid', 2, { plan: 'of another root' }],
    ['a plan without a signature', 'schema_invalid', 2, { plan: 'unsigned' }],
    ["a plan with somebody's signature", 'plan_signature_invalid', 2, { plan: 'signed by somebody' }],
    ['a plan whose time is over', 'plan_expired', 2, { plan: 'expired' }],
    ['no mount of the engine', 'engine_unreachable', 5, { without: '/var/run/docker.sock' }],
    ['no mount of the guest agent', 'guest_agent_unreachable', 5, { without: '/var/run/dstack.sock' }],
    ['no mount of the cgroup tree', 'cgroup_unreadable', 5, { without: '/sys/fs/cgroup' }],
    ['an engine below the floor', 'engine_below_floor', 2, { engine: 'older' }],
  ])('%s', async (_, code, exitCode, deviation) => {
    expect(await refusals.refuse(deviation)).toEqual({ code, exitCode });
  });

  it('and nobody had come', () => {
    expect(refusals.connections()).toBe(0);
  });
});
