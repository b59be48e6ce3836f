import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, it } from 'vitest';
import { ensureTestImage } from '../docker/fixtures.ts';
import {
  childrenOf,
  evaluator,
  guestOf,
  isAlive,
  type StartedEvaluator,
  startEvaluator,
} from '../support/evaluator.ts';
import { scratchFolder } from '../support/scratch.ts';
import { ownedObjects, SMALL_TASK, writeAgent, writeTasks } from '../support/small-run.ts';
import { removeTaskImages } from '../support/task-images.ts';

const folder = scratchFolder();
const cache = join(folder, 'cache');
let tasks = '';
let sleeper = '';

removeTaskImages(['small']);
beforeAll(async () => {
  await ensureTestImage();
  const open = SMALL_TASK['task.toml']?.replace('allow_internet = false', 'allow_internet = true') ?? '';
  tasks = await writeTasks(join(folder, 'tasks'), { small: { ...SMALL_TASK, 'task.toml': open } });
  sleeper = await writeAgent(join(folder, 'sleeper'), 'sleep 100\n');
  const baked = await evaluator(['bake', '--from', tasks, '--out', cache]);
  expect(baked.code, baked.stderr).toBe(0);
});

interface Run extends StartedEvaluator {
  name: string;
  guest: number;
  scratch: string;
}

function start(name: string, agent: string, reps = '1') {
  const scratch = join(folder, `${name}-tmp`);
  mkdirSync(scratch);
  const args = [
    'run',
    '--cache',
    cache,
    '--agent',
    agent,
    '--reps',
    reps,
    '--out',
    join(folder, name),
    '--json',
  ];
  const solutions = agent === 'oracle' ? ['--solutions', tasks] : [];
  return { name, scratch, ...startEvaluator([...args, ...solutions], { TMPDIR: scratch }) };
}

/** What is on the engine of a guest, by its owner label. */
async function objectsOf(guest: number): Promise<string[]> {
  return (await ownedObjects()).filter((line) => line.includes(`:${guest}:`));
}

/** Starts a run and waits until its containers, volume and network are there. */
async function running(name: string, reps = '1'): Promise<Run> {
  const started = start(name, sleeper, reps);
  await started.says(/"stage":"run","mark":"begin"/);
  const guest = await guestOf(started);
  for (
    let kinds: string[] = [];
    !['container', 'network', 'volume'].every((kind) => kinds.includes(kind));
  ) {
    kinds = (await objectsOf(guest)).map((line) => line.split(' ')[0] ?? '');
    await sleep(50);
  }
  return { ...started, guest };
}

async function expectNothingLeft({ name, guest, scratch, child }: Run): Promise<void> {
  expect(await objectsOf(guest), name).toEqual([]);
  expect(childrenOf(child.pid ?? 0), name).toEqual([]);
  expect(childrenOf(guest), name).toEqual([]);
  expect(readdirSync(scratch), name).toEqual([]);
}

describe.concurrent('a run that is ended', () => {
  it.each([
    ['SIGTERM', 143],
    ['SIGINT', 130],
  ] as const)('by %s leaves nothing', async (signal, exitCode) => {
    const run = await running(signal, '2');
    const parts = childrenOf(run.child.pid ?? 0);
    run.child.kill(signal);
    // A terminal's goes to all of its processes.
    if (signal === 'SIGINT') for (const { pid } of parts) process.kill(pid, signal);
    const { code, stdout, stderr } = await run.ended;
    expect(code).toBe(exitCode);
    expect(stdout).not.toContain('"accepted":true');
    expect(stderr.trimEnd().split('\n').at(-1)).toBe(
      `evaluator: no RESULT: ended by ${signal} [run_aborted]`,
    );
    expect(stderr).not.toContain(`ended by ${signal === 'SIGINT' ? 'SIGTERM' : 'SIGINT'}`);
    await expectNothingLeft(run);
  });

  it.each([50, 500, 1200])('by SIGTERM %i ms after its guest began leaves nothing', async (ms) => {
    const started = start(`early-${ms}`, sleeper);
    const run = { ...started, guest: await guestOf(started) };
    await started.says(/"stage":"preflight","mark":"begin"/);
    await sleep(ms);
    run.child.kill('SIGTERM');
    expect((await run.ended).code).toBe(143);
    await expectNothingLeft(run);
  });

  it('by SIGTERM of its guest leaves nothing', async () => {
    const run = await running('guest-term');
    process.kill(run.guest, 'SIGTERM');
    const { code, stdout } = await run.ended;
    expect([code, JSON.parse(stdout).accepted]).toEqual([143, false]);
    await expectNothingLeft(run);
  });

  it('by its own log that cannot be written is aborted', async () => {
    const run = await running('log');
    const journal = join(folder, 'log', 'journal.jsonl');
    rmSync(journal);
    mkdirSync(journal);
    process.kill(run.guest, 'SIGTERM'); // It has more to say.
    const { code, stdout, stderr } = await run.ended;
    expect([code, JSON.parse(stdout).reason_code], stderr).toEqual([5, 'log_unwritable']);
    await expectNothingLeft(run);
  });

  it.each(['simulator', 'challenge'])('by the death of its %s is aborted', async (part) => {
    const run = await running(part);
    const script = part === 'simulator' ? ' simulate ' : 'challenge/main.ts';
    const victim = childrenOf(run.child.pid ?? 0).find(({ command }) => command.includes(script));
    process.kill(victim?.pid ?? 0, 'SIGKILL');
    const { code, stdout, stderr } = await run.ended;
    expect([code, JSON.parse(stdout).reason_code], stderr).toEqual([5, 'process_failed']);
    expect(stderr).toContain(part);
    await expectNothingLeft(run);
  });
});

it('a run that is killed takes its parts along, and the next one removes its folder', async () => {
  const run = await running('killed');
  const parts = childrenOf(run.child.pid ?? 0);
  expect(parts.length).toBeGreaterThanOrEqual(3);
  run.child.kill('SIGKILL');
  await run.ended;
  while (parts.some(({ pid }) => isAlive(pid))) await sleep(50);
  expect(await objectsOf(run.guest)).toEqual([]);
  expect(readdirSync(run.scratch)).toHaveLength(1);
  const args = ['run', '--cache', cache, '--agent', 'nop', '--engine', join(folder, 'no.sock')];
  await evaluator([...args, '--out', join(folder, 'after')], { TMPDIR: run.scratch });
  expect(readdirSync(run.scratch)).toEqual([]);
});

it.each([
  ['SIGTERM', 143],
  ['SIGINT', 130],
] as const)('a bake --check that is ended by %s leaves nothing', async (signal, exitCode) => {
  const name = `check-${signal}`;
  const slow = await writeTasks(join(folder, name), {
    small: { ...SMALL_TASK, 'solution/solve.sh': 'sleep 100\n' },
  });
  const out = join(folder, `${name}-out`, 'cache');
  const bake = startEvaluator(['bake', '--from', slow, '--out', out, '--check']);
  const pid = bake.child.pid ?? 0;
  const trials = async () => (await objectsOf(pid)).filter((line) => line.startsWith('container'));
  while ((await trials()).length === 0) {
    if (bake.child.exitCode !== null) throw new Error((await bake.ended).stderr);
    await sleep(50);
  }
  bake.child.kill(signal);
  const { code, stderr } = await bake.ended;
  expect([code, stderr.trimEnd().split('\n').at(-1)]).toEqual([
    exitCode,
    `evaluator: ended by ${signal}; no cache was made`,
  ]);
  expect(await objectsOf(pid)).toEqual([]);
  expect(readdirSync(join(folder, `${name}-out`))).toEqual([]);
});

describe('a guest that is killed', () => {
  it('is cleaned up after by the next run, which touches nothing of a live one', async () => {
    const live = await running('live');
    const dead = await running('dead', '2');
    process.kill(dead.guest, 'SIGKILL');
    const { code, stdout } = await dead.ended;
    expect([code, JSON.parse(stdout)]).toEqual([
      5,
      expect.objectContaining({ accepted: false, result: null }),
    ]);
    const left = await objectsOf(dead.guest);
    expect(new Set(left.map((line) => line.split(' ')[0]))).toEqual(
      new Set(['container', 'network', 'volume']),
    );

    const before = await objectsOf(live.guest);
    const next = start('next', 'oracle');
    const ended = await next.ended;
    expect([ended.code, JSON.parse(ended.stdout).accepted], ended.stderr).toEqual([0, true]);
    expect(ended.stderr).toContain('"event":"swept"');
    expect(await objectsOf(dead.guest)).toEqual([]);
    expect(await objectsOf(live.guest)).toEqual(before);
    live.child.kill('SIGTERM');
    expect((await live.ended).code).toBe(143);
  });
});
