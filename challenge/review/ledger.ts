import type { Code } from '../../guest/errors.ts';
import type { SessionState } from './machine.ts';

/** A review of one submitted agent; all times are milliseconds since the epoch. */
export interface NewSession {
  sessionId: string;
  submissionId: string;
  agentHash: string;
  submissionReceivedAtMs: number;
}

export interface Session extends NewSession {
  state: SessionState;
  /** Why it ended or waits; null while nothing is wrong. */
  reasonCode: Code | null;
}

/** One try of a session: a signed order for one guest. */
export interface NewAssignment {
  assignmentId: string;
  /** The exact bytes of the signed assignment. */
  assignmentBytes: Buffer;
  tokenSha256: string;
  reviewNonce: string;
  expiresAtMs: number;
}

export type IssueAssignment = (session: Session, attempt: number) => NewAssignment;

export interface StoredAssignment extends NewAssignment {
  sessionId: string;
  /** 1 for the session's first. */
  attempt: number;
}

/** What a guest said before it opened a socket to the model. */
export interface Announcement {
  assignmentId: string;
  plannedRequestSha256: string;
  receivedAtMs: number;
}

export interface StoredReport {
  assignmentId: string;
  reportSha256: string;
  receivedAtMs: number;
  /** The exact report bytes. */
  reportBytes: Buffer;
}

export type Verdict = 'allow' | 'reject' | 'escalate';

/** What was read from a report whose evidence holds. */
export interface Conclusion {
  verdict: Verdict;
  reviewDigest: string;
}

export interface SessionHistoryEntry {
  from: SessionState | null;
  to: SessionState;
  attempt: number;
  reasonCode: Code | null;
  /** An operator's own words; null where a code says it all. */
  note: string | null;
  atMs: number;
}

/** A session with all that its last try left, as the gate re-verifies it. */
export interface ReviewFile {
  session: Session;
  assignment: StoredAssignment | null;
  announcement: Announcement | null;
  report: StoredReport | null;
}

/**
 * What the challenge remembers of reviews. Every method is one transaction; the history is append-only.
 * Methods of a guest take its assignment, and refuse one that a newer try has replaced.
 */
export interface ReviewLedger {
  /**
   * Commits a session at intake.
   * @throws review_session_open, review_needs_operator while an earlier session of this agent stands.
   */
  create(session: NewSession, nowMs: number): void;
  /**
   * Commits the session's next try; the tokens of earlier ones open nothing any more.
   * @param issue makes the assignment of a session's try.
   * @throws review_session_unknown, ledger_transition_refused; review_session_open, review_needs_operator while
   *   another session of this agent stands.
   */
  prepare(sessionId: string, issue: IssueAssignment, nowMs: number): StoredAssignment;
  /** Before anything was announced. @throws review_session_unknown, ledger_transition_refused. */
  cancel(sessionId: string, nowMs: number): void;
  session(sessionId: string): Session | null;
  sessionsIn(states: readonly SessionState[]): Session[];
  assignment(assignmentId: string): StoredAssignment | null;
  /** The session's last try. */
  newestAssignment(sessionId: string): StoredAssignment | null;
  /**
   * Notes that a guest has its assignment.
   * @throws assignment_superseded, assignment_expired, review_closed.
   */
  deploy(assignmentId: string, nowMs: number): void;
  /**
   * Commits that the model is about to be asked; the same digest again gives the same receipt.
   * @throws review_call_conflict, assignment_superseded, assignment_expired, review_closed.
   */
  announce(assignmentId: string, plannedRequestSha256: string, nowMs: number): Announcement;
  announcement(assignmentId: string): Announcement | null;
  /**
   * Commits that the guest gives up, for its reason; again, nothing changes.
   * @throws assignment_superseded, review_closed.
   */
  fail(assignmentId: string, reason: Code, nowMs: number): void;
  report(assignmentId: string): StoredReport | null;
  /** @throws what `receive` would, but for a conflict. */
  verifyTaking(assignmentId: string, nowMs: number): void;
  /**
   * Commits a receipt; the same bytes again give the same one.
   * @throws report_conflict when other bytes were received; assignment_superseded, assignment_expired,
   *   review_closed.
   */
  receive(assignmentId: string, reportBytes: Buffer, nowMs: number): StoredReport;
  /**
   * Consumes the nonce and writes the verdict.
   * @throws review_nonce_consumed, ledger_transition_refused; nothing is written then.
   */
  conclude(sessionId: string, conclusion: Conclusion, nowMs: number): void;
  /** @throws ledger_transition_refused. */
  distrust(sessionId: string, reason: Code, nowMs: number): void;
  /** @throws ledger_transition_refused. */
  park(sessionId: string, reason: Code, nowMs: number): void;
  /** Closes what waited too long: awaited beyond its assignment, parked beyond `parkedForMs`. */
  closeOverdue(nowMs: number, parkedForMs: number): void;
  /** An operator takes an allow back. @throws reopen_reason_invalid, ledger_transition_refused. */
  revoke(sessionId: string, reason: string, nowMs: number): void;
  /** An operator sets an end aside, so that the agent may be reviewed again. @throws as revoke. */
  reopen(sessionId: string, reason: string, nowMs: number): void;
  history(sessionId: string): SessionHistoryEntry[];
  /** A session with its last try. */
  file(sessionId: string): ReviewFile | null;
  /** The agent's session that came to an end last, whenever it was created, with its bytes. */
  newestConcluded(agentHash: string): ReviewFile | null;
  /** The session whose verdict has this digest. */
  sessionOf(reviewDigest: string): Session | null;
  close(): void;
}
