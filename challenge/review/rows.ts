import { bytes, codeOrNull, oneOf, type Row, text, textOrNull } from '../ledger/rows.ts';
import type { Announcement, Session, SessionHistoryEntry, StoredAssignment, StoredReport } from './ledger.ts';
import { SESSION_STATES } from './machine.ts';

/** @throws ledger_unreadable. */
export function toSession(row: Row): Session {
  return {
    sessionId: text(row, 'session_id'),
    submissionId: text(row, 'submission_id'),
    agentHash: text(row, 'agent_hash'),
    submissionReceivedAtMs: Number(row.submission_received_at_ms),
    state: oneOf(SESSION_STATES, row, 'state'),
    reasonCode: codeOrNull(row),
  };
}

export function toAssignment(row: Row): StoredAssignment {
  return {
    assignmentId: text(row, 'assignment_id'),
    sessionId: text(row, 'session_id'),
    attempt: Number(row.attempt),
    assignmentBytes: bytes(row, 'assignment'),
    tokenSha256: text(row, 'token_sha256'),
    reviewNonce: text(row, 'review_nonce'),
    expiresAtMs: Number(row.expires_at_ms),
  };
}

export function toAnnouncement(row: Row): Announcement {
  return {
    assignmentId: text(row, 'assignment_id'),
    plannedRequestSha256: text(row, 'planned_request_sha256'),
    receivedAtMs: Number(row.received_at_ms),
  };
}

export function toReport(row: Row): StoredReport {
  return {
    assignmentId: text(row, 'assignment_id'),
    reportSha256: text(row, 'report_sha256'),
    receivedAtMs: Number(row.received_at_ms),
    reportBytes: bytes(row, 'report'),
  };
}

/** @throws ledger_unreadable. */
export function toSessionHistory(row: Row): SessionHistoryEntry {
  return {
    from: row.from_state === null ? null : oneOf(SESSION_STATES, row, 'from_state'),
    to: oneOf(SESSION_STATES, row, 'to_state'),
    attempt: Number(row.attempt),
    reasonCode: codeOrNull(row),
    note: textOrNull(row, 'note'),
    atMs: Number(row.at_ms),
  };
}
