import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CODES } from '../../../guest/errors.ts';
import { RELAY } from '../../support/trial.ts';
import {
  endRuns,
  expectOneStartEach,
  expectRetriedOrCharged,
  FAILURES,
  failEachCall,
  rewardOf,
  runWith,
  startRuns,
} from './failing-calls.ts';

beforeAll(startRuns);
afterAll(endRuns);

describe.each([
  ['not_done', 'restart'],
  ['answer_lost', 'artifact'],
  ['answer_lost', 'live'],
] as const)('one call %s (%s), that changes something', (kind, mode) => {
  it('never starts an agent twice, whichever call it is', () =>
    expectRetriedOrCharged(kind, mode, 'that changes something'));
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
