import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  isTerminal,
  nextState,
  RUN_STATES,
  type RunEvent,
  type RunState,
  TRANSITIONS,
} from '../../../challenge/ledger/machine.ts';
import { SqliteLedger } from '../../../challenge/ledger/sqlite.ts';
import { isEvaluatorError } from '../../../guest/errors.ts';
import { codeOf } from '../../support/throws.ts';

const EVENTS = ['receive', 'park', 'accept', 'reject', 'expire', 'abandon'] as const satisfies RunEvent[];

describe('the machine', () => {
  it('has exactly these transitions', () => {
    const all = RUN_STATES.flatMap((from) =>
      EVENTS.flatMap((event) => {
        const to = TRANSITIONS[from][event];
        return to ? [`${from} ${event} ${to}`] : [];
      }),
    );
    expect(all).toEqual([
      'prepared receive received',
      'prepared expire expired',
      'prepared abandon no_result',
      'received park parked',
      'received accept accepted',
      'received reject rejected',
      'parked accept accepted',
      'parked reject rejected',
      'parked expire expired',
    ]);
    expect(RUN_STATES.filter(isTerminal)).toEqual(['accepted', 'rejected', 'expired', 'no_result']);
    expect(codeOf(() => nextState('accepted', 'accept'))).toBe('ledger_transition_refused');
  });
});

type Act = 'receive' | 'receive other' | 'park' | 'accept' | 'reject' | 'close' | 'start';
const ACTS: readonly Act[] = ['receive', 'receive other', 'park', 'accept', 'reject', 'close', 'start'];
const EXPIRES_AT_MS = 20;
const PARKED_FOR_MS = 10;

/** What the ledger should say, said once more in plain words. */
function expected(state: RunState, act: Act, nowMs: number, startedAt: number | null, receivedAt: number) {
  if (act === 'receive') return state === 'prepared' ? 'received' : state;
  if (act === 'close' && state === 'prepared' && nowMs >= EXPIRES_AT_MS) {
    return startedAt === null ? 'expired' : 'no_result';
  }
  if (act === 'close' && state === 'parked' && nowMs >= receivedAt + PARKED_FOR_MS) return 'expired';
  const waiting = state === 'received' || state === 'parked';
  if (act === 'park' && state === 'received') return 'parked';
  if (act === 'accept' && waiting) return 'accepted';
  if (act === 'reject' && waiting) return 'rejected';
  return state;
}

it('the ledger follows it, whatever is asked of it in whatever order', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...ACTS), { maxLength: 30 }), (acts) => {
      const ledger = new SqliteLedger(':memory:');
      const run = {
        evalRunId: 'run',
        submissionId: 'submission',
        agentHash: 'agent',
        planBytes: Buffer.from('plan'),
        runTokenSha256: 'token',
        scoreNonce: 'nonce',
        expiresAtMs: EXPIRES_AT_MS,
      };
      ledger.prepare(run, 0);
      let state: RunState = 'prepared';
      let startedAt: number | null = null;
      let receivedAt = 0;
      let moves = 1;
      acts.forEach((act, index) => {
        const nowMs = index + 1;
        const before: RunState = state;
        try {
          if (act === 'receive') ledger.receive('run', Buffer.from('result'), nowMs);
          if (act === 'receive other') {
            if (ledger.receipt('run')) ledger.receive('run', Buffer.from('other'), nowMs);
          }
          if (act === 'park') ledger.park('run', 'collateral_unavailable', nowMs);
          if (act === 'accept') ledger.accept('run', '3ff0000000000000', nowMs);
          if (act === 'reject') ledger.reject('run', 'quote_malformed', nowMs);
          if (act === 'close') ledger.closeOverdue(nowMs, PARKED_FOR_MS);
          if (act === 'start') ledger.markStarted('run', nowMs);
        } catch (error) {
          if (!isEvaluatorError(error)) throw error;
          expect(['ledger_transition_refused', 'result_conflict']).toContain(error.code);
        }
        if (act === 'start') startedAt ??= nowMs;
        state = expected(before, act, nowMs, startedAt, receivedAt);
        if (before === 'prepared' && state === 'received') receivedAt = nowMs;
        if (state !== before) moves += 1;
        const now = ledger.run('run');
        expect(now?.state).toBe(state);
        expect(now?.scoreF64be).toBe(state === 'accepted' ? '3ff0000000000000' : null);
        const history = ledger.history('run');
        expect(history).toHaveLength(moves);
        expect(history.at(-1)?.to).toBe(state);
      });
      ledger.close();
    }),
    { numRuns: 200 },
  );
});
