import { expect } from 'vitest';
import { connectDocker } from '../../../guest/engine/docker.ts';
import { isEvaluatorError } from '../../../guest/errors.ts';
import { LABEL } from '../../../guest/trial/labels.ts';
import { decodeF64be } from '../../../guest/wire/f64.ts';
import type { RepRecord } from '../../../guest/wire/score-record.ts';
import { type EngineEvents, watchEngine } from '../../support/engine-events.ts';
import { type EngineFault, type FaultKind, faultyEngine, isRead } from '../../support/faulty-engine.ts';
import { type ScriptOptions, startTrial, type TrialHarness } from '../../support/trial.ts';
import { ENGINE_SOCKET } from '../fixtures.ts';

const real = connectDocker(ENGINE_SOCKET);
const AT_ONCE = 4;
export const FAILURES = ['agent_start', 'liveness', 'malformed_output', 'disk_limit'];
let trial: TrialHarness;
let events: EngineEvents;

/** For beforeAll. */
export async function startRuns(): Promise<void> {
  trial = await startTrial();
  events = await watchEngine(`${LABEL.session}=${trial.session.id}`);
}

/** For afterAll. */
export async function endRuns(): Promise<void> {
  events.stop();
  await trial.close();
}

/** How one rep went whose engine fails at one call. */
export interface Told {
  taskId: string;
  call: string;
  place: 'before the agent' | 'after';
  record: RepRecord | null;
  abort: string | null;
  faults: number;
  startCalls: number;
}

let runs = 0;

/** One rep whose engine fails as told; null: it does not. */
export async function runWith(
  fault: EngineFault | null,
  options: Partial<ScriptOptions>,
): Promise<Told & { calls: string[] }> {
  const { engine, calls, agentStarts } = faultyEngine(real, fault);
  const taskId = `fault-${runs++}`;
  const counters = { faults: 0 };
  let record: RepRecord | null = null;
  let abort: string | null = null;
  try {
    const reps = await trial.run({
      script: 'echo right > /app/answer',
      ...options,
      taskId,
      engine,
      counters,
    });
    record = reps[0] ?? null;
  } catch (error) {
    if (!isEvaluatorError(error)) throw error;
    abort = error.code;
  }
  const at = fault?.at ?? 0;
  return {
    taskId,
    call: `${at} ${calls[at - 1]}`,
    place: at < (agentStarts[0] ?? Number.POSITIVE_INFINITY) ? 'before the agent' : 'after',
    record,
    abort,
    faults: counters.faults,
    startCalls: agentStarts.length,
    calls,
  };
}

/** One run for each call of a run without faults, a few at once. */
export async function failEachCall(
  fault: Omit<EngineFault, 'at'>,
  options: Partial<ScriptOptions> = {},
  fails: (call: string) => boolean = () => true,
): Promise<Told[]> {
  const { calls } = await runWith(null, options);
  const told: Told[] = [];
  const queue = calls.flatMap((call, i) => (fails(call) ? [i + 1] : []));
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (let at = queue.shift(); at !== undefined; at = queue.shift())
        told.push(await runWith({ ...fault, at }, options));
    }),
  );
  expect(told.length).toBeGreaterThan(8);
  return told;
}

export const rewardOf = (record: RepRecord | null) =>
  record?.value && 'reward_f64be' in record.value ? decodeF64be(record.value.reward_f64be) : null;

/** By our calls and by the engine's own word. */
export async function expectOneStartEach(told: readonly Told[]): Promise<void> {
  const seen = await events.seen();
  for (const { taskId, call, startCalls } of told) {
    const starts = seen.filter(
      ({ action, labels }) =>
        action === 'exec_start: bash /agent/agent.sh' && labels[LABEL.rep] === `${taskId}#0`,
    );
    expect(startCalls, `start calls, fault at ${call}`).toBeLessThanOrEqual(1);
    expect(starts.length, `starts that the engine saw, fault at ${call}`).toBeLessThanOrEqual(1);
  }
  expect(seen.some(({ action }) => action.startsWith('exec_start: bash'))).toBe(true);
}

export type WhichCalls = 'any' | 'that changes something';

/** One call fails, once, whichever it is: made again before the agent, charged to its rep after, never an abort. */
export async function expectRetriedOrCharged(
  kind: FaultKind,
  mode: 'artifact' | 'restart' | 'live',
  which: WhichCalls,
): Promise<void> {
  const fails = (call: string) => which === 'any' || !isRead(call);
  const told = await failEachCall({ kind, lasts: 'once' }, { mode }, fails);
  await expectOneStartEach(told);
  for (const { call, place, record, abort, faults } of told) {
    expect(abort, `abort, fault at ${call}`).toBeNull();
    if (place === 'before the agent') {
      expect([record?.outcome, rewardOf(record)], call).toEqual(['completed', 1]);
      expect([record?.start_retries, faults], call).toEqual([1, 1]);
    } else {
      expect([record?.start_retries, faults], call).toEqual([0, 0]);
      if (record?.outcome === 'failed') expect(FAILURES, call).toContain(record.failure);
      else expect(record?.outcome, call).toBe('completed');
    }
  }
  expect(new Set(told.map(({ place }) => place)).size).toBe(2);
}
