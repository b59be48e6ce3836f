import { EvaluatorError } from '../../guest/errors.ts';
import type { Session, StoredAssignment } from './ledger.ts';
import { isAwaitingReport } from './machine.ts';

/** @throws assignment_superseded when a later try has replaced this assignment. */
export function verifyCurrent(assignmentId: string, newest: StoredAssignment | null): StoredAssignment {
  if (newest?.assignmentId === assignmentId) return newest;
  throw new EvaluatorError(
    'assignment_superseded',
    'review: a newer assignment has taken the place of this one',
  );
}

/** The session still takes something from its guest. @throws assignment_expired, review_closed. */
export function verifyTaking(session: Session, assignment: StoredAssignment, nowMs: number): void {
  const awaiting = isAwaitingReport(session.state);
  if (session.state === 'expired' || (awaiting && nowMs >= assignment.expiresAtMs)) {
    throw new EvaluatorError('assignment_expired', 'review: its assignment has expired');
  }
  if (!awaiting)
    throw new EvaluatorError('review_closed', `review: its session is closed (${session.state})`);
}
