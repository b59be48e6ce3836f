import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, it } from 'vitest';
import { ensureTestImage } from '../docker/fixtures.ts';
import { evaluator, type StartedEvaluator, startEvaluator } from '../support/evaluator.ts';
import { type OwnEngine, startOwnEngine } from '../support/own-engine.ts';
import { scratchFolder } from '../support/scratch.ts';
import { ownedObjects, SMALL_TASK, writeAgent, writeTasks } from '../support/small-run.ts';

const IMAGE = 'cvm-evaluator-test/busybox:1';
const folder = scratchFolder();
let sleeper = '';
let tasks = '';

beforeAll(async () => {
  await ensureTestImage();
  tasks = await writeTasks(join(folder, 'tasks'), { small: SMALL_TASK });
  sleeper = await writeAgent(join(folder, 'sleeper'), 'sleep 100\n');
});

async function withEngine(test: (engine: OwnEngine) => Promise<void>): Promise<void> {
  const engine = await startOwnEngine();
  try {
    await engine.load(IMAGE);
    await test(engine);
  } finally {
    await engine.close();
  }
}

const args = (engine: OwnEngine, out: string, agent: string, reps = '1') => [
  ...['run', '--cache', tasks, '--agent', agent, '--reps', reps, '--engine', engine.socket],
  ...['--out', join(folder, out), '--json'],
];

/** Resolves when the agent's sleep runs in a container of the engine. */
async function agentRuns(engine: OwnEngine, started: StartedEvaluator): Promise<void> {
  for (;;) {
    const ids = await engine.docker('ps', '--quiet', '--filter', 'label=io.cvm-evaluator.role=trial');
    for (const id of ids.split('\n').filter(Boolean)) {
      if ((await engine.docker('top', id)).includes('sleep 100')) return;
    }
    if (started.child.exitCode !== null) throw new Error((await started.ended).stderr);
    await sleep(100);
  }
}

function expectAborted({ code, stdout, stderr }: Awaited<StartedEvaluator['ended']>, out: string): void {
  expect(code, stderr).toBe(5);
  const summary = JSON.parse(stdout);
  expect(summary).toMatchObject({ accepted: false, score: null, tasks: [], result: null });
  expect(['engine_broken', 'engine_unreachable', 'engine_timeout']).toContain(summary.reason_code);
  expect(`${stdout}${stderr}`).not.toContain('RESULT=');
  expect(readdirSync(join(folder, out))).not.toContain('result.json');
}

describe.concurrent('an engine that fails while an agent runs', () => {
  it('killed: the run aborts; the next one sweeps what was left', { timeout: 300_000 }, () =>
    withEngine(async (engine) => {
      const started = startEvaluator(args(engine, 'killed', sleeper, '2'));
      await agentRuns(engine, started);
      engine.signal('SIGKILL');
      expectAborted(await started.ended, 'killed');

      await engine.restart();
      expect((await ownedObjects(engine.socket)).length).toBeGreaterThan(0);
      const next = await evaluator(args(engine, 'next', 'oracle'));
      expect([next.code, JSON.parse(next.stdout).accepted], next.stderr).toEqual([0, true]);
      expect(next.stderr).toContain('"event":"swept"');
      expect(await ownedObjects(engine.socket)).toEqual([]);
    }),
  );

  it('hanging: the run aborts by its deadlines', { timeout: 300_000 }, () =>
    withEngine(async (engine) => {
      const started = startEvaluator(args(engine, 'hanging', sleeper));
      await agentRuns(engine, started);
      engine.signal('SIGSTOP');
      expectAborted(await started.ended, 'hanging');
    }),
  );
});
