import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connectDocker } from '../../../guest/engine/docker.ts';
import { CODES, isEvaluatorError } from '../../../guest/errors.ts';
import { LABEL } from '../../../guest/trial/labels.ts';
import { decodeF64be } from '../../../guest/wire/f64.ts';
import type { RepRecord } from '../../../guest/wire/score-record.ts';
import { type EngineEvents, watchEngine } from '../../support/engine-events.ts';
import { type EngineFault, type FaultKind, faultyEngine } from '../../support/faulty-engine.ts';
import { RELAY, type ScriptOptions, startTrial, type TrialHarness } from '../../support/trial.ts';
import { ENGINE_SOCKET } from '../fixtures.ts';

const real = connectDocker(ENGINE_SOCKET);
const AT_ONCE = 4;
let trial: TrialHarness;
let events: EngineEvents;

beforeAll(async () => {
  trial = await startTrial();
  events = await watchEngine(`${LABEL.session}=${trial.session.id}`);
});
afterAll(async () => {
  events.stop();
  await trial.close();
});

/** How one rep went whose engine fails at one call. */
interface Told {
  taskId: string;
  call: string;
  place: 'before the agent' | 'after';
  record: RepRecord | null;
  abort: string | null;
  faults: number;
  startCalls: number;
}

let runs = 0;

async function runWith(
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
async function failEachCall(
  fault: Omit<EngineFault, 'at'>,
  options: Partial<ScriptOptions> = {},
): Promise<Told[]> {
  const { calls } = await runWith(null, options);
  const told: Told[] = [];
  const queue = calls.map((_, i) => i + 1);
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (let at = queue.shift(); at !== undefined; at = queue.shift())
        told.push(await runWith({ ...fault, at }, options));
    }),
  );
  expect(told.length).toBeGreaterThan(15);
  return told;
}

const rewardOf = (record: RepRecord | null) =>
  record?.value && 'reward_f64be' in record.value ? decodeF64be(record.value.reward_f64be) : null;

/** By our calls and by the engine's own word. */
async function expectOneStartEach(told: readonly Told[]): Promise<void> {
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

const FAILURES = ['agent_start', 'liveness', 'malformed_output', 'disk_limit'];

describe.each<[FaultKind, 'artifact' | 'restart' | 'live']>([
  ['answer_lost', 'artifact'],
  ['not_done', 'restart'],
  ['answer_lost', 'restart'],
  ['answer_lost', 'live'],
])('one call %s (%s)', (kind, mode) => {
  it('never starts an agent twice, whichever call it is', async () => {
    const told = await failEachCall({ kind, lasts: 'once' }, { mode });
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
  });
});

describe("one call of a brokered agent's rep", () => {
  it('never starts an agent twice, and is retried, charged to the rep or told to the agent', async () => {
    // The last word has no meaning but to say which exec is the agent's.
    const command = ['python3', '-m', 'evaluator_harbor', '/agent/agent.py', '/agent/agent.sh'];
    const options = { brokered: RELAY, command };
    const { calls } = await runWith(null, options);
    const bridge = calls.indexOf('pipeExec');
    const kill = calls.indexOf('kill');
    // Of what happens while the agent lives, the first call of each name; and the start of its bridge.
    const places = [...new Set(calls.slice(bridge + 2, kill))].map((name) => calls.indexOf(name, bridge + 2));
    const told = await Promise.all(
      [bridge, ...places].map((at) => runWith({ at: at + 1, kind: 'not_done', lasts: 'once' }, options)),
    );
    for (const { call, place, record, abort, faults, startCalls } of told) {
      expect(abort, `abort, fault at ${call}`).toBeNull();
      expect(startCalls, call).toBe(1);
      const expected = place === 'before the agent' ? [1, 1] : [0, 0];
      expect([record?.start_retries, faults], call).toEqual(expected);
      if (place === 'before the agent') expect(rewardOf(record), call).toBe(1);
      else if (record?.outcome === 'failed') expect(FAILURES, call).toContain(record.failure);
    }
    expect(calls.slice(bridge + 2, kill)).toEqual(
      expect.arrayContaining(['pipeExec', 'getArchive', 'putArchive']),
    );
    expect(told.filter(({ record }) => record?.failure === 'liveness').length).toBeGreaterThan(3);
  });
});

describe('an engine that fails for good', () => {
  it('aborts the run from whichever call on, and never starts an agent twice', async () => {
    const told = await failEachCall({ kind: 'not_done', lasts: 'for_good' });
    await expectOneStartEach(told);
    for (const { call, place, record, abort, faults } of told) {
      if (place === 'before the agent') expect([abort, faults], call).toEqual(['engine_timeout', 3]);
      // The reward was read already: what failed is a log, or a removal that is the sweep's.
      else if (record !== null) expect(rewardOf(record), call).toBe(1);
      else {
        expect(CODES[abort as keyof typeof CODES], call).toBe('infra');
        expect(['engine_broken', 'engine_timeout'], call).toContain(abort);
      }
    }
    expect(told.filter(({ abort }) => abort === 'engine_broken').length).toBeGreaterThan(8);
  });
});
