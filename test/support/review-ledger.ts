import type { NewAssignment, NewSession } from '../../challenge/review/ledger.ts';
import type { SqliteReviewLedger } from '../../challenge/review/sqlite.ts';
import { sha256Hex } from '../../guest/wire/digest.ts';

/** How long an assignment of these tests lives, in ms. */
export const ASSIGNMENT_TTL_MS = 1000;

export function newSession(sessionId: string, overrides: Partial<NewSession> = {}): NewSession {
  return {
    sessionId,
    submissionId: `submission of ${sessionId}`,
    agentHash: sha256Hex('agent'),
    submissionReceivedAtMs: 0,
    ...overrides,
  };
}

export function newAssignment(assignmentId: string, nowMs: number): NewAssignment {
  return {
    assignmentId,
    assignmentBytes: Buffer.from(`{"assignment":"${assignmentId}"}`),
    tokenSha256: sha256Hex(`token of ${assignmentId}`),
    reviewNonce: `nonce of ${assignmentId}`,
    expiresAtMs: nowMs + ASSIGNMENT_TTL_MS,
  };
}

/** The session's next try, with an id that tells its number. */
export function prepareNext(ledger: SqliteReviewLedger, sessionId: string, nowMs: number): string {
  const issue = (_: unknown, attempt: number) => newAssignment(`${sessionId}/${attempt}`, nowMs);
  return ledger.prepare(sessionId, issue, nowMs).assignmentId;
}
