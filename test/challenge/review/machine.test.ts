import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  isAwaitingReport,
  nextSessionState,
  SESSION_EVENTS,
  SESSION_STATES,
  SESSION_TRANSITIONS,
  type SessionState,
} from '../../../challenge/review/machine.ts';
import { SqliteReviewLedger } from '../../../challenge/review/sqlite.ts';
import { isEvaluatorError } from '../../../guest/errors.ts';
import { sha256Hex } from '../../../guest/wire/digest.ts';
import { ASSIGNMENT_TTL_MS, newSession, prepareNext } from '../../support/review-ledger.ts';
import { codeOf } from '../../support/throws.ts';
import { rowsOfDocument, rowsOfMachine } from '../../support/transitions.ts';

describe('the machine of a review', () => {
  it('has exactly the transitions of docs/ledger.md', () => {
    expect(rowsOfDocument('Transitions of a review')).toEqual(
      rowsOfMachine(SESSION_STATES, SESSION_EVENTS, SESSION_TRANSITIONS),
    );
  });

  it('lets no session go back to a new try once its model was announced, but through an operator', () => {
    const reachable = new Set<SessionState>(['announced']);
    for (const state of reachable) {
      for (const [event, to] of Object.entries(SESSION_TRANSITIONS[state])) {
        if (event !== 'reopen' && event !== 'revoke') reachable.add(to);
      }
    }
    expect([...reachable].toSorted()).toEqual(
      ['announced', 'received', 'parked', 'allowed', 'rejected', 'escalated', 'trust_failed'].toSorted(),
    );
    expect(codeOf(() => nextSessionState('announced', 'cancel'))).toBe('ledger_transition_refused');
  });
});

const ACTS = [
  'prepare',
  'deploy',
  'announce',
  'announce other',
  'receive',
  'receive other',
  'park',
  'allow',
  'reject',
  'escalate',
  'distrust',
  'fail',
  'cancel',
  'close',
  'revoke',
  'reopen',
] as const;
type Act = (typeof ACTS)[number];
const PARKED_FOR_MS = 10_000;
const id = (attempt: number) => `session/${attempt}`;

interface Model {
  state: SessionState;
  attempt: number;
  preparedAt: number;
  receivedAt: number;
}

/** What the ledger should say, said once more in plain words. */
function expected({ state, preparedAt, receivedAt }: Model, act: Act, nowMs: number): SessionState {
  const late = nowMs >= preparedAt + ASSIGNMENT_TTL_MS;
  const judgeable = state === 'received' || state === 'parked';
  const retryable = state === 'failed' || state === 'expired' || state === 'cancelled';
  if (act === 'prepare') return state === 'created' || retryable ? 'prepared' : state;
  if (act === 'deploy') return state === 'prepared' && !late ? 'deployed' : state;
  if (act === 'announce') return state === 'deployed' && !late ? 'announced' : state;
  if (act === 'receive') return (state === 'deployed' || state === 'announced') && !late ? 'received' : state;
  if (act === 'fail' && isAwaitingReport(state) && !late)
    return state === 'announced' ? 'escalated' : 'failed';
  if (act === 'close' && isAwaitingReport(state) && late) {
    return state === 'announced' ? 'escalated' : 'expired';
  }
  if (act === 'close' && state === 'parked' && nowMs >= receivedAt + PARKED_FOR_MS) return 'escalated';
  if (act === 'park' && state === 'received') return 'parked';
  if (act === 'allow' && judgeable) return 'allowed';
  if (act === 'reject' && judgeable) return 'rejected';
  if (act === 'escalate' && judgeable) return 'escalated';
  if (act === 'distrust' && judgeable) return 'trust_failed';
  if (act === 'cancel') {
    const may = ['created', 'prepared', 'deployed', 'failed', 'expired'].includes(state);
    return may ? 'cancelled' : state;
  }
  if (act === 'revoke' && state === 'allowed') return 'revoked';
  if (act === 'reopen' && ['rejected', 'escalated', 'trust_failed', 'revoked'].includes(state)) {
    return 'reopened';
  }
  return state;
}

function perform(ledger: SqliteReviewLedger, act: Act, attempt: number, nowMs: number): void {
  const conclusion = { reviewDigest: sha256Hex('core') };
  if (act === 'prepare') prepareNext(ledger, 'session', nowMs);
  if (act === 'deploy') ledger.deploy(id(attempt), nowMs);
  if (act === 'announce') ledger.announce(id(attempt), sha256Hex('request'), nowMs);
  if (act === 'announce other' && ledger.announcement(id(attempt))) {
    ledger.announce(id(attempt), sha256Hex('other request'), nowMs);
  }
  if (act === 'receive') ledger.receive(id(attempt), Buffer.from('report'), nowMs);
  if (act === 'receive other' && ledger.report(id(attempt))) {
    ledger.receive(id(attempt), Buffer.from('other'), nowMs);
  }
  if (act === 'park') ledger.park('session', 'collateral_unavailable', nowMs);
  if (act === 'allow' || act === 'reject' || act === 'escalate') {
    ledger.conclude('session', { ...conclusion, verdict: act }, nowMs);
  }
  if (act === 'distrust') ledger.distrust('session', 'quote_malformed', nowMs);
  if (act === 'fail') ledger.fail(id(attempt), 'artifact_hash_mismatch', nowMs);
  if (act === 'cancel') ledger.cancel('session', nowMs);
  if (act === 'close') ledger.closeOverdue(nowMs, PARKED_FOR_MS);
  if (act === 'revoke') ledger.revoke('session', 'a reason', nowMs);
  if (act === 'reopen') ledger.reopen('session', 'a reason', nowMs);
}

it('the ledger follows it, whatever is asked of it in whatever order', () => {
  const refusals = [
    'ledger_transition_refused',
    'review_session_unknown',
    'review_call_conflict',
    'report_conflict',
    'assignment_expired',
    'assignment_superseded',
    'review_closed',
  ];
  // Each begins some way towards a verdict, which chance would seldom find.
  const way: readonly Act[] = ['prepare', 'deploy', 'announce', 'receive'];
  const timed = fc.tuple(fc.constantFrom(...ACTS), fc.constantFrom(1, 1, 1, 1, 1, 400));
  const asked = fc
    .tuple(fc.nat(way.length), fc.array(timed, { maxLength: 25 }))
    .map(([far, rest]) => [...way.slice(0, far).map((act) => [act, 1] as const), ...rest]);
  fc.assert(
    fc.property(asked, (acts) => {
      const ledger = new SqliteReviewLedger(':memory:');
      ledger.create(newSession('session'), 0);
      const model: Model = { state: 'created', attempt: 0, preparedAt: 0, receivedAt: 0 };
      let moves = 1;
      let nowMs = 0;
      for (const [act, ms] of acts) {
        nowMs += ms;
        const before = model.state;
        try {
          perform(ledger, act, model.attempt, nowMs);
        } catch (error) {
          if (!isEvaluatorError(error)) throw error;
          expect(refusals).toContain(error.code);
        }
        model.state = expected(model, act, nowMs);
        if (model.state !== before) {
          moves += 1;
          if (act === 'prepare') Object.assign(model, { attempt: model.attempt + 1, preparedAt: nowMs });
          if (act === 'receive') model.receivedAt = nowMs;
        }
        expect(ledger.session('session')?.state).toBe(model.state);
        const history = ledger.history('session');
        expect(history).toHaveLength(moves);
        expect(history.at(-1)?.to).toBe(model.state);
        expect(history.at(-1)?.attempt).toBe(model.attempt);
      }
      ledger.close();
    }),
    { numRuns: 400 },
  );
});
