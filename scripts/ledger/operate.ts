import type { RunSummary } from '../../challenge/ledger/ledger.ts';
import { RUN_STATES, TRANSITIONS } from '../../challenge/ledger/machine.ts';
import type { Session } from '../../challenge/review/ledger.ts';
import { SESSION_STATES, SESSION_TRANSITIONS } from '../../challenge/review/machine.ts';
import { EvaluatorError } from '../../guest/errors.ts';
import type { Ledgers } from './open.ts';

export const DECISIONS = ['reopen', 'revoke', 'cancel'] as const;
export type Decision = (typeof DECISIONS)[number];

/** A run or a review session, as it stands. */
export interface Standing {
  kind: 'run' | 'review';
  id: string;
  agent_hash: string;
  state: string;
  reason_code: string | null;
}

/** A step in the life of one. */
export interface Step {
  from: string | null;
  to: string;
  reason_code: string | null;
  /** An operator's own words. */
  note: string | null;
  at_ms: number;
}

const runStanding = ({ evalRunId, agentHash, state, reasonCode }: RunSummary): Standing => ({
  kind: 'run',
  id: evalRunId,
  agent_hash: agentHash,
  state,
  reason_code: reasonCode,
});

const reviewStanding = ({ sessionId, agentHash, state, reasonCode }: Session): Standing => ({
  kind: 'review',
  id: sessionId,
  agent_hash: agentHash,
  state,
  reason_code: reasonCode,
});

/** Everything that the ledger has, as it stands. */
export function standings({ runs, reviews }: Ledgers): Standing[] {
  return [
    ...runs.runsIn(RUN_STATES).map(runStanding),
    ...reviews.sessionsIn(SESSION_STATES).map(reviewStanding),
  ];
}

/** The run or review of this id. @throws run_unknown. */
export function standingOf({ runs, reviews }: Ledgers, id: string): Standing {
  const run = runs.run(id);
  if (run) return runStanding(run);
  const session = reviews.session(id);
  if (session) return reviewStanding(session);
  throw new EvaluatorError('run_unknown', `ledger: no run and no review session ${JSON.stringify(id)}`);
}

/** Its whole history, the oldest step first. */
export function historyOf({ runs, reviews }: Ledgers, { kind, id }: Standing): Step[] {
  const entries = kind === 'run' ? runs.history(id) : reviews.history(id);
  return entries.map(({ from, to, reasonCode, note, atMs }) => ({
    from,
    to,
    reason_code: reasonCode,
    note,
    at_ms: atMs,
  }));
}

function verifyPossible({ kind, id, state }: Standing, decision: Decision): void {
  const all: Readonly<Record<string, Readonly<Partial<Record<string, string>>>>> =
    kind === 'run' ? TRANSITIONS : SESSION_TRANSITIONS;
  if (all[state]?.[decision] !== undefined) return;
  const from = Object.keys(all).filter((one) => all[one]?.[decision] !== undefined);
  const rule = from.length === 0 ? `no ${kind} can be` : `only one that is ${from.join(', ')} can be`;
  throw new EvaluatorError('usage', `ledger: ${kind} ${id} is ${state}: it cannot ${decision}; ${rule}`);
}

/**
 * An operator's decision, one transaction; the history keeps it, with the reason.
 * @param reason 1 to 500 printable ASCII characters; not kept of a cancellation, which needs none.
 * @returns how the run or review stands now.
 * @throws usage, run_unknown, reopen_reason_invalid; ledger_transition_refused when the challenge was faster.
 */
export function decide(
  ledgers: Ledgers,
  id: string,
  decision: Decision,
  reason: string,
  nowMs: number,
): Standing {
  const before = standingOf(ledgers, id);
  verifyPossible(before, decision);
  if (before.kind === 'run') ledgers.runs.reopen(id, reason, nowMs);
  else if (decision === 'cancel') ledgers.reviews.cancel(id, nowMs);
  else ledgers.reviews[decision](id, reason, nowMs);
  return standingOf(ledgers, id);
}
