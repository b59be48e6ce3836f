import { EvaluatorError } from '../../guest/errors.ts';

/**
 * The life of a review session; docs/ledger.md says it in words. `deployed`: a guest has its assignment.
 * `announced`: its model is being asked, so from here every end is one that only an operator sets aside.
 * `trust_failed`: its evidence does not hold. `revoked`: an operator took an allow back.
 */
export const SESSION_STATES = [
  'created',
  'prepared',
  'deployed',
  'announced',
  'received',
  'parked',
  'allowed',
  'rejected',
  'escalated',
  'trust_failed',
  'failed',
  'cancelled',
  'expired',
  'revoked',
  'reopened',
] as const;
export type SessionState = (typeof SESSION_STATES)[number];

export const SESSION_EVENTS = [
  'prepare',
  'deploy',
  'announce',
  'receive',
  'park',
  'allow',
  'reject',
  'escalate',
  'distrust',
  'fail',
  'cancel',
  'expire',
  'revoke',
  'reopen',
] as const;
export type SessionEvent = (typeof SESSION_EVENTS)[number];

const JUDGED = {
  allow: 'allowed',
  reject: 'rejected',
  escalate: 'escalated',
  distrust: 'trust_failed',
} as const;

/** Closed: what is not listed cannot happen. */
export const SESSION_TRANSITIONS: Readonly<
  Record<SessionState, Readonly<Partial<Record<SessionEvent, SessionState>>>>
> = {
  created: { prepare: 'prepared', cancel: 'cancelled' },
  prepared: { deploy: 'deployed', fail: 'failed', cancel: 'cancelled', expire: 'expired' },
  deployed: {
    announce: 'announced',
    receive: 'received',
    fail: 'failed',
    cancel: 'cancelled',
    expire: 'expired',
  },
  announced: { receive: 'received', fail: 'escalated', expire: 'escalated' },
  received: { ...JUDGED, park: 'parked' },
  parked: { ...JUDGED, expire: 'escalated' },
  allowed: { revoke: 'revoked' },
  rejected: { reopen: 'reopened' },
  escalated: { reopen: 'reopened' },
  trust_failed: { reopen: 'reopened' },
  failed: { prepare: 'prepared', cancel: 'cancelled' },
  cancelled: { prepare: 'prepared' },
  expired: { prepare: 'prepared', cancel: 'cancelled' },
  revoked: { reopen: 'reopened' },
  reopened: {},
};

/** States in which a guest may still bring a report; the assignment's expiry ends them. */
export const AWAITING_REPORT = [
  'prepared',
  'deployed',
  'announced',
] as const satisfies readonly SessionState[];
/** States in which the session's outcome is still to come without a retry. */
export const OPEN = [
  'created',
  ...AWAITING_REPORT,
  'received',
  'parked',
] as const satisfies readonly SessionState[];

function isUndecided(state: SessionState): boolean {
  return OPEN.some((open) => open === state);
}

/** Ends that a report's own verdict brings; a session without a report can be `escalated` too. */
export const VERDICTS = ['allowed', 'rejected', 'escalated'] as const satisfies readonly SessionState[];
/** Ends that another session of the same agent would only re-roll: an operator sets them aside, or nobody. */
const FINAL = ['rejected', 'escalated', 'trust_failed', 'revoked'] as const satisfies readonly SessionState[];
/** States whose report was judged, or that count as if it had been. */
export const CONCLUDED = ['allowed', ...FINAL, 'reopened'] as const satisfies readonly SessionState[];

export function isAwaitingReport(state: SessionState): boolean {
  return AWAITING_REPORT.some((awaiting) => awaiting === state);
}

/** @throws ledger_transition_refused. */
export function nextSessionState(state: SessionState, event: SessionEvent): SessionState {
  const next = SESSION_TRANSITIONS[state][event];
  if (next === undefined) {
    throw new EvaluatorError(
      'ledger_transition_refused',
      `ledger: a review that is ${state} cannot ${event}`,
    );
  }
  return next;
}

/**
 * An agent has one verdict: while a session of it is open none is created, and after one that did not allow it
 * an operator must re-open first. Otherwise a miner would have the model asked until the verdict suits (spec/09).
 * @param earlier the sessions of the same agent.
 * @throws review_session_open, review_needs_operator.
 */
export function verifyNoStandingSession(
  earlier: readonly { sessionId: string; state: SessionState }[],
): void {
  for (const { sessionId, state } of earlier) {
    if (isUndecided(state)) {
      throw new EvaluatorError('review_session_open', `review: this agent has an open session, ${sessionId}`);
    }
    if (FINAL.some((final) => final === state)) {
      throw new EvaluatorError(
        'review_needs_operator',
        `review: ${sessionId} of this agent ended ${state}; an operator can re-open it`,
      );
    }
  }
}
