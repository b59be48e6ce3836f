import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openCache } from '../../guest/tasks/cache.ts';
import { LABEL } from '../../guest/trial/labels.ts';
import type { EvalPlan } from '../../guest/wire/plan.ts';
import { type Ended, evaluator } from '../support/evaluator.ts';
import { expectNothingLeft, type Seen } from '../support/guest-container.ts';
import { type Refusals, startRefusals } from '../support/guest-refusals.ts';
import { imageRuns } from '../support/image-runs.ts';

const { folder, place, first } = imageRuns();
const read = (name: string, file: string) => readFileSync(join(place(name), file));
const json = (name: string, file: string) => JSON.parse(read(name, file).toString());

let ended: Ended;
let plan: EvalPlan;
let seen: Seen;
let tag = '';
beforeAll(() => {
  ({ ended, seen, tag } = first());
  plan = json('built', 'plan.json');
});

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
