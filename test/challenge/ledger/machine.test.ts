import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  isAwaiting,
  isOpen,
  nextState,
  RUN_EVENTS,
  RUN_STATES,
  type RunEvent,
  type RunState,
  TRANSITIONS,
} from '../../../challenge/ledger/machine.ts';
import { SqliteLedger } from '../../../challenge/ledger/sqlite.ts';
import { standingScore } from '../../../challenge/ledger/standing.ts';
import { isEvaluatorError } from '../../../guest/errors.ts';
import { EXPIRES_AT_MS, grantTo, MAX_GRANTS, SPKI, sealedRun } from '../../support/ledger.ts';
import { codeOf } from '../../support/throws.ts';
import { rowsOfDocument, rowsOfMachine } from '../../support/transitions.ts';

describe('the machine', () => {
  it('has exactly the transitions of docs/ledger.md', () => {
    expect(rowsOfDocument('Transitions')).toEqual(rowsOfMachine(RUN_STATES, RUN_EVENTS, TRANSITIONS));
  });

  it('leaves nothing open that cannot go on, and nothing awaited that cannot receive', () => {
    const can = (event: RunEvent) => RUN_STATES.filter((state) => TRANSITIONS[state][event]);
    expect(RUN_STATES.filter(isAwaiting)).toEqual(can('receive'));
    expect(RUN_STATES.filter((state) => !isOpen(state))).toEqual([
      'accepted',
      'rejected',
      'expired',
      'no_result',
      'reopened',
    ]);
    expect(codeOf(() => nextState('accepted', 'accept'))).toBe('ledger_transition_refused');
  });
});

const ACTS = [
  'grant',
  'start',
  'receive',
  'receive other',
  'park',
  'accept',
  'reject',
  'close',
  'reopen',
] as const;
type Act = (typeof ACTS)[number];
const PARKED_FOR_MS = 10;
const ONE = '3ff0000000000000';

interface Model {
  state: RunState;
  granted: number;
  receivedAt: number;
}

/** What the ledger should say, said once more in plain words. */
function expected({ state, granted, receivedAt }: Model, act: Act, nowMs: number): RunState {
  const awaiting = state === 'prepared' || state === 'granted' || state === 'started';
  const waiting = state === 'received' || state === 'parked';
  const expired = nowMs >= EXPIRES_AT_MS;
  const asks = state === 'prepared' || state === 'granted';
  if (act === 'grant') return asks && !expired && granted < MAX_GRANTS ? 'granted' : state;
  if (act === 'start') return state === 'granted' && !expired ? 'started' : state;
  if (act === 'receive') return awaiting ? 'received' : state;
  if (act === 'close' && awaiting && expired) return state === 'started' ? 'no_result' : 'expired';
  if (act === 'close' && state === 'parked' && nowMs >= receivedAt + PARKED_FOR_MS) return 'expired';
  if (act === 'park' && state === 'received') return 'parked';
  if (act === 'accept' && waiting) return 'accepted';
  if (act === 'reject' && waiting) return 'rejected';
  if (act === 'reopen' && (state === 'no_result' || state === 'rejected')) return 'reopened';
  return state;
}

function perform(ledger: SqliteLedger, act: Act, nowMs: number): void {
  if (act === 'grant') grantTo(ledger, 'run', nowMs);
  if (act === 'start') ledger.start('run', ledger.grants('run').at(-1)?.grantId ?? '', SPKI, nowMs);
  if (act === 'receive') ledger.receive('run', Buffer.from('result'), nowMs);
  if (act === 'receive other' && ledger.receipt('run')) ledger.receive('run', Buffer.from('other'), nowMs);
  if (act === 'park') ledger.park('run', 'collateral_unavailable', nowMs);
  if (act === 'accept') ledger.accept('run', ONE, nowMs);
  if (act === 'reject') ledger.reject('run', 'quote_malformed', nowMs);
  if (act === 'close') ledger.closeOverdue(nowMs, PARKED_FOR_MS);
  if (act === 'reopen') ledger.reopen('run', 'a reason', nowMs);
}

it('the ledger follows it, whatever is asked of it in whatever order', () => {
  const refusals = [
    'ledger_transition_refused',
    'result_conflict',
    'grants_exhausted',
    'run_started',
    'run_closed',
    'run_expired',
    'grant_unknown',
  ];
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.constantFrom(...ACTS), fc.constantFrom(1, 1, 1, 400)), { maxLength: 30 }),
      (acts) => {
        const ledger = new SqliteLedger(':memory:');
        ledger.prepare(sealedRun('run'), 0);
        const model: Model = { state: 'prepared', granted: 0, receivedAt: 0 };
        let moves = 1;
        let nowMs = 0;
        for (const [act, ms] of acts) {
          nowMs += ms;
          const before = model.state;
          try {
            perform(ledger, act, nowMs);
          } catch (error) {
            if (!isEvaluatorError(error)) throw error;
            expect(refusals).toContain(error.code);
          }
          const regrant =
            act === 'grant' && before === 'granted' && model.granted < MAX_GRANTS && nowMs < EXPIRES_AT_MS;
          model.state = expected(model, act, nowMs);
          if (act === 'grant' && (regrant || before !== model.state)) model.granted += 1;
          if (before !== 'received' && model.state === 'received') model.receivedAt = nowMs;
          if (model.state !== before || regrant) moves += 1;
          const now = ledger.run('run');
          expect(now?.state).toBe(model.state);
          expect(now?.scoreF64be).toBe(model.state === 'accepted' ? ONE : null);
          if (now) {
            const score = { accepted: ONE, no_result: '0'.repeat(16) } as Partial<Record<RunState, string>>;
            expect(standingScore(now)).toBe(score[model.state] ?? null);
          }
          expect(ledger.grants('run')).toHaveLength(model.granted);
          const history = ledger.history('run');
          expect(history).toHaveLength(moves);
          expect(history.at(-1)?.to).toBe(model.state);
        }
        ledger.close();
      },
    ),
    { numRuns: 200 },
  );
});
