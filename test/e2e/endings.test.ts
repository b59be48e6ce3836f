import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { childrenOf, evaluator, isAlive, startEvaluator } from '../support/evaluator.ts';
import { expectNothingLeft, objectsOf, sleepingRuns } from '../support/sleeping-run.ts';
import { SMALL_TASK, writeTasks } from '../support/small-run.ts';

const { folder, cache, start, running, expectEndsEarly } = sleepingRuns();

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

  it('by SIGTERM half a second after its guest began leaves nothing', () => expectEndsEarly(500));

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
