import type { DatabaseSync, SQLInputValue } from 'node:sqlite';
import type { Row } from '../ledger/rows.ts';
import type { Announcement, Session, SessionHistoryEntry, StoredAssignment, StoredReport } from './ledger.ts';
import { CONCLUDED, type SessionState } from './machine.ts';
import { toAnnouncement, toAssignment, toReport, toSession, toSessionHistory } from './rows.ts';

/** What is read of the review's tables. */

const marksOf = (values: readonly unknown[]) => values.map(() => '?').join(', ');

function one<T>(db: DatabaseSync, read: (row: Row) => T, sql: string, ...values: SQLInputValue[]): T | null {
  const row = db.prepare(sql).get(...values);
  return row ? read(row) : null;
}

export function session(db: DatabaseSync, sessionId: string): Session | null {
  return one(db, toSession, 'SELECT * FROM review_sessions WHERE session_id = ?', sessionId);
}

/** Oldest first. */
export function sessionsIn(db: DatabaseSync, states: readonly SessionState[]): Session[] {
  return db
    .prepare(`SELECT * FROM review_sessions WHERE state IN (${marksOf(states)}) ORDER BY rowid`)
    .all(...states)
    .map(toSession);
}

/** Of an agent, oldest first. */
export function sessionsOf(db: DatabaseSync, agentHash: string): Session[] {
  return db
    .prepare('SELECT * FROM review_sessions WHERE agent_hash = ? ORDER BY rowid')
    .all(agentHash)
    .map(toSession);
}

/** By its last line of history: a session that expired is tried again after a newer one was made. */
export function newestConcluded(db: DatabaseSync, agentHash: string): Session | null {
  const sql = `SELECT * FROM review_sessions WHERE agent_hash = ? AND state IN (${marksOf(CONCLUDED)})
    ORDER BY (SELECT max(seq) FROM review_history AS steps
      WHERE steps.session_id = review_sessions.session_id) DESC LIMIT 1`;
  return one(db, toSession, sql, agentHash, ...CONCLUDED);
}

export function sessionOf(db: DatabaseSync, reviewDigest: string): Session | null {
  const sql = `SELECT review_sessions.* FROM review_sessions JOIN review_verdicts USING (session_id)
    WHERE review_digest = ?`;
  return one(db, toSession, sql, reviewDigest);
}

export function assignment(db: DatabaseSync, assignmentId: string): StoredAssignment | null {
  const sql = 'SELECT * FROM review_assignments WHERE assignment_id = ?';
  return one(db, toAssignment, sql, assignmentId);
}

export function newestAssignment(db: DatabaseSync, sessionId: string): StoredAssignment | null {
  const sql = 'SELECT * FROM review_assignments WHERE session_id = ? ORDER BY attempt DESC LIMIT 1';
  return one(db, toAssignment, sql, sessionId);
}

export function announcement(db: DatabaseSync, assignmentId: string): Announcement | null {
  const sql = 'SELECT * FROM review_announcements WHERE assignment_id = ?';
  return one(db, toAnnouncement, sql, assignmentId);
}

export function report(db: DatabaseSync, assignmentId: string): StoredReport | null {
  return one(db, toReport, 'SELECT * FROM review_reports WHERE assignment_id = ?', assignmentId);
}

/** Oldest first. */
export function history(db: DatabaseSync, sessionId: string): SessionHistoryEntry[] {
  return db
    .prepare('SELECT * FROM review_history WHERE session_id = ? ORDER BY seq')
    .all(sessionId)
    .map(toSessionHistory);
}
