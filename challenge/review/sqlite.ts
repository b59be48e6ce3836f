import type { DatabaseSync } from 'node:sqlite';
import { type Code, EvaluatorError } from '../../guest/errors.ts';
import { sha256Hex } from '../../guest/wire/digest.ts';
import { openDatabase, transaction } from '../ledger/database.ts';
import { verifyOperatorReason } from '../ledger/operator-reason.ts';
import type {
  Announcement,
  Conclusion,
  IssueAssignment,
  NewSession,
  ReviewFile,
  ReviewLedger,
  Session,
  SessionHistoryEntry,
  StoredAssignment,
  StoredReport,
} from './ledger.ts';
import { AWAITING_REPORT, nextSessionState, type SessionState, verifyNoStandingSession } from './machine.ts';
import { verifyCurrent, verifyTaking } from './refusals.ts';
import * as insert from './sqlite-insert.ts';
import { move, noteCreated } from './sqlite-move.ts';
import * as select from './sqlite-select.ts';

/** Reviews in the embedded database: every change is one immediate, fully synchronous transaction. */
export class SqliteReviewLedger implements ReviewLedger {
  readonly #db: DatabaseSync;

  /** @param path the ledger's file, or `:memory:`. @throws ledger_unreadable. */
  constructor(path: string) {
    this.#db = openDatabase(path);
  }

  #known(sessionId: string): Session {
    const session = this.session(sessionId);
    if (session) return session;
    throw new EvaluatorError('review_session_unknown', 'ledger: no such review session');
  }

  /** The session of an assignment that no later one has replaced. */
  #current(assignmentId: string): { session: Session; assignment: StoredAssignment } {
    const assignment = this.assignment(assignmentId);
    const session = this.#known(assignment?.sessionId ?? '');
    const newest = this.newestAssignment(session.sessionId);
    return { session, assignment: verifyCurrent(assignmentId, newest) };
  }

  create(session: NewSession, nowMs: number): void {
    transaction(this.#db, () => {
      verifyNoStandingSession(select.sessionsOf(this.#db, session.agentHash));
      insert.session(this.#db, session);
      noteCreated(this.#db, session.sessionId, nowMs);
    });
  }

  prepare(sessionId: string, issue: IssueAssignment, nowMs: number): StoredAssignment {
    return transaction(this.#db, () => {
      const session = this.#known(sessionId);
      nextSessionState(session.state, 'prepare');
      // A session that expired is tried again: one made since then may be open, or have ended for good.
      const others = select.sessionsOf(this.#db, session.agentHash);
      verifyNoStandingSession(others.filter((other) => other.sessionId !== sessionId));
      const attempt = (this.newestAssignment(sessionId)?.attempt ?? 0) + 1;
      const made = issue(session, attempt);
      const stored = { ...made, sessionId, attempt };
      insert.assignment(this.#db, stored);
      move(this.#db, session, 'prepare', {}, nowMs);
      return stored;
    });
  }

  cancel(sessionId: string, nowMs: number): void {
    transaction(this.#db, () => move(this.#db, this.#known(sessionId), 'cancel', {}, nowMs));
  }

  session(sessionId: string): Session | null {
    return select.session(this.#db, sessionId);
  }

  sessionsIn(states: readonly SessionState[]): Session[] {
    return select.sessionsIn(this.#db, states);
  }

  assignment(assignmentId: string): StoredAssignment | null {
    return select.assignment(this.#db, assignmentId);
  }

  newestAssignment(sessionId: string): StoredAssignment | null {
    return select.newestAssignment(this.#db, sessionId);
  }

  deploy(assignmentId: string, nowMs: number): void {
    transaction(this.#db, () => {
      const { session, assignment } = this.#current(assignmentId);
      verifyTaking(session, assignment, nowMs);
      if (session.state === 'prepared') move(this.#db, session, 'deploy', {}, nowMs);
    });
  }

  announce(assignmentId: string, plannedRequestSha256: string, nowMs: number): Announcement {
    return transaction(this.#db, () => {
      const { session, assignment } = this.#current(assignmentId);
      const stored = this.announcement(assignmentId);
      if (stored?.plannedRequestSha256 === plannedRequestSha256) return stored;
      if (stored) {
        throw new EvaluatorError('review_call_conflict', 'review: another request was announced before');
      }
      verifyTaking(session, assignment, nowMs);
      move(this.#db, session, 'announce', {}, nowMs);
      const announced = { assignmentId, plannedRequestSha256, receivedAtMs: nowMs };
      insert.announcement(this.#db, announced);
      return announced;
    });
  }

  announcement(assignmentId: string): Announcement | null {
    return select.announcement(this.#db, assignmentId);
  }

  fail(assignmentId: string, reason: Code, nowMs: number): void {
    transaction(this.#db, () => {
      const { session, assignment } = this.#current(assignmentId);
      const ended = session.state === 'failed' || session.state === 'escalated';
      if (ended && this.report(assignmentId) === null) return;
      verifyTaking(session, assignment, nowMs);
      move(this.#db, session, 'fail', { reasonCode: reason }, nowMs);
    });
  }

  report(assignmentId: string): StoredReport | null {
    return select.report(this.#db, assignmentId);
  }

  verifyTaking(assignmentId: string, nowMs: number): void {
    const { session, assignment } = this.#current(assignmentId);
    verifyTaking(session, assignment, nowMs);
  }

  receive(assignmentId: string, reportBytes: Buffer, nowMs: number): StoredReport {
    const reportSha256 = sha256Hex(reportBytes);
    return transaction(this.#db, () => {
      const stored = this.report(assignmentId);
      if (stored?.reportSha256 === reportSha256) return stored;
      if (stored) {
        throw new EvaluatorError(
          'report_conflict',
          'review: another report was received for this assignment',
        );
      }
      const { session, assignment } = this.#current(assignmentId);
      verifyTaking(session, assignment, nowMs);
      move(this.#db, session, 'receive', {}, nowMs);
      const received = { assignmentId, reportSha256, receivedAtMs: nowMs, reportBytes };
      insert.report(this.#db, received);
      return received;
    });
  }

  conclude(sessionId: string, { verdict, reviewDigest }: Conclusion, nowMs: number): void {
    transaction(this.#db, () => {
      const session = this.#known(sessionId);
      move(this.#db, session, verdict, {}, nowMs);
      const nonce = this.newestAssignment(sessionId)?.reviewNonce ?? '';
      insert.consumedNonce(this.#db, sessionId, nonce);
      insert.verdict(this.#db, sessionId, { verdict, reviewDigest }, nowMs);
    });
  }

  distrust(sessionId: string, reason: Code, nowMs: number): void {
    transaction(this.#db, () =>
      move(this.#db, this.#known(sessionId), 'distrust', { reasonCode: reason }, nowMs),
    );
  }

  park(sessionId: string, reason: Code, nowMs: number): void {
    transaction(this.#db, () =>
      move(this.#db, this.#known(sessionId), 'park', { reasonCode: reason }, nowMs),
    );
  }

  closeOverdue(nowMs: number, parkedForMs: number): void {
    transaction(this.#db, () => {
      for (const session of this.sessionsIn(AWAITING_REPORT)) {
        const expiresAtMs = this.newestAssignment(session.sessionId)?.expiresAtMs ?? 0;
        if (nowMs < expiresAtMs) continue;
        const reason = session.state === 'announced' ? 'review_report_missing' : 'assignment_expired';
        move(this.#db, session, 'expire', { reasonCode: reason }, nowMs);
      }
      for (const session of this.sessionsIn(['parked'])) {
        const assignmentId = this.newestAssignment(session.sessionId)?.assignmentId ?? '';
        const receivedAtMs = this.report(assignmentId)?.receivedAtMs ?? 0;
        if (nowMs >= receivedAtMs + parkedForMs)
          move(this.#db, session, 'expire', { reasonCode: session.reasonCode }, nowMs);
      }
    });
  }

  #byOperator(sessionId: string, event: 'revoke' | 'reopen', reason: string, nowMs: number): void {
    verifyOperatorReason(reason);
    transaction(this.#db, () => move(this.#db, this.#known(sessionId), event, { note: reason }, nowMs));
  }

  revoke(sessionId: string, reason: string, nowMs: number): void {
    this.#byOperator(sessionId, 'revoke', reason, nowMs);
  }

  reopen(sessionId: string, reason: string, nowMs: number): void {
    this.#byOperator(sessionId, 'reopen', reason, nowMs);
  }

  history(sessionId: string): SessionHistoryEntry[] {
    return select.history(this.#db, sessionId);
  }

  file(sessionId: string): ReviewFile | null {
    const session = this.session(sessionId);
    if (!session) return null;
    const assignment = this.newestAssignment(sessionId);
    const assignmentId = assignment?.assignmentId ?? '';
    const [announcement, report] = [this.announcement(assignmentId), this.report(assignmentId)];
    return { session, assignment, announcement, report };
  }

  newestConcluded(agentHash: string): ReviewFile | null {
    const session = select.newestConcluded(this.#db, agentHash);
    return session && this.file(session.sessionId);
  }

  sessionOf(reviewDigest: string): Session | null {
    return select.sessionOf(this.#db, reviewDigest);
  }

  close(): void {
    this.#db.close();
  }
}
