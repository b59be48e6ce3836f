import type { DatabaseSync } from 'node:sqlite';
import { EvaluatorError } from '../../guest/errors.ts';
import type {
  Announcement,
  Conclusion,
  NewSession,
  SessionHistoryEntry,
  StoredAssignment,
  StoredReport,
} from './ledger.ts';

/** What is written into the review's tables. Each runs inside a transaction of the ledger's. */

export function session(db: DatabaseSync, made: NewSession): void {
  db.prepare(
    `INSERT INTO review_sessions (session_id, submission_id, agent_hash, submission_received_at_ms, state)
     VALUES (?, ?, ?, ?, 'created')`,
  ).run(made.sessionId, made.submissionId, made.agentHash, made.submissionReceivedAtMs);
}

export function assignment(db: DatabaseSync, made: StoredAssignment): void {
  db.prepare(
    `INSERT INTO review_assignments (assignment_id, session_id, attempt, assignment, token_sha256,
       review_nonce, expires_at_ms) VALUES (?, ?, ?, ?, ?, ?, ?)`,
  ).run(
    made.assignmentId,
    made.sessionId,
    made.attempt,
    made.assignmentBytes,
    made.tokenSha256,
    made.reviewNonce,
    made.expiresAtMs,
  );
}

export function announcement(db: DatabaseSync, made: Announcement): void {
  db.prepare(
    `INSERT INTO review_announcements (assignment_id, planned_request_sha256, received_at_ms)
     VALUES (?, ?, ?)`,
  ).run(made.assignmentId, made.plannedRequestSha256, made.receivedAtMs);
}

export function report(db: DatabaseSync, made: StoredReport): void {
  db.prepare(
    'INSERT INTO review_reports (assignment_id, report_sha256, received_at_ms, report) VALUES (?, ?, ?, ?)',
  ).run(made.assignmentId, made.reportSha256, made.receivedAtMs, made.reportBytes);
}

/** @throws review_nonce_consumed. */
export function consumedNonce(db: DatabaseSync, sessionId: string, nonce: string): void {
  const { changes } = db
    .prepare(
      'INSERT INTO consumed_review_nonces (review_nonce, session_id) VALUES (?, ?) ON CONFLICT DO NOTHING',
    )
    .run(nonce, sessionId);
  if (changes === 1) return;
  throw new EvaluatorError('review_nonce_consumed', 'ledger: this review nonce was used before');
}

export function verdict(db: DatabaseSync, sessionId: string, made: Conclusion, nowMs: number): void {
  db.prepare(
    `INSERT INTO review_verdicts (session_id, review_digest, verdict, concluded_at_ms)
     VALUES (?, ?, ?, ?)`,
  ).run(sessionId, made.reviewDigest, made.verdict, nowMs);
}

export function history(db: DatabaseSync, sessionId: string, entry: SessionHistoryEntry): void {
  db.prepare(
    `INSERT INTO review_history (session_id, from_state, to_state, attempt, reason_code, note, at_ms)
     VALUES (?, ?, ?, ?, ?, ?, ?)`,
  ).run(sessionId, entry.from, entry.to, entry.attempt, entry.reasonCode, entry.note, entry.atMs);
}
