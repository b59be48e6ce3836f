import { randomBytes } from 'node:crypto';
import { PARKED_FOR_MS } from '../ledger/parking.ts';
import {
  issueAssignment,
  type ReviewEndpoint,
  type ReviewIssuer,
  type ReviewTerms,
} from './issue-assignment.ts';
import type { ReviewLedger, StoredAssignment } from './ledger.ts';
import { sessionToken } from './session-token.ts';

/** An agent as it came in. */
export interface Submission {
  submissionId: string;
  /** SHA-256 of its ZIP. */
  agentHash: string;
  /** Milliseconds since the epoch. */
  receivedAtMs: number;
}

/** Creates the review session of a submission, at intake. @throws review_session_open, review_needs_operator. */
export function createSession(ledger: ReviewLedger, submission: Submission, nowMs: number): string {
  const sessionId = `session-${randomBytes(16).toString('hex')}`;
  ledger.closeOverdue(nowMs, PARKED_FOR_MS);
  ledger.create(
    {
      sessionId,
      submissionId: submission.submissionId,
      agentHash: submission.agentHash,
      submissionReceivedAtMs: submission.receivedAtMs,
    },
    nowMs,
  );
  return sessionId;
}

export interface ReviewPrepareDeps {
  ledger: ReviewLedger;
  issuer: ReviewIssuer;
  terms: ReviewTerms;
  endpoint: ReviewEndpoint;
  /** Of the agent's ZIP. */
  zipSizeBytes: number;
}

/**
 * Prepares a session's next try: the first, or after one that was cancelled, failed or expired before its
 * model was announced.
 * @returns the assignment and the token that its guest's owner is given.
 * @throws review_session_unknown, review_session_open, review_needs_operator, ledger_transition_refused;
 *   schema_invalid, assignment_inconsistent.
 */
export function prepareReview(
  sessionId: string,
  { ledger, issuer, ...order }: ReviewPrepareDeps,
  nowMs: number,
): { assignment: StoredAssignment; token: string } {
  ledger.closeOverdue(nowMs, PARKED_FOR_MS);
  const assignment = ledger.prepare(
    sessionId,
    (session, attempt) => issueAssignment({ ...order, session, attempt, issuedAtMs: nowMs }, issuer),
    nowMs,
  );
  return { assignment, token: sessionToken(issuer.tokenSecret, assignment.assignmentId) };
}
