import type { DatabaseSync } from 'node:sqlite';
import type { Code } from '../../guest/errors.ts';
import type { Session } from './ledger.ts';
import { nextSessionState, type SessionEvent } from './machine.ts';
import * as insert from './sqlite-insert.ts';
import * as select from './sqlite-select.ts';

/** Why a session moves: a code, an operator's own words, or neither. */
export interface Why {
  reasonCode?: Code | null;
  note?: string;
}

/** The first line of a session's history. */
export function noteCreated(db: DatabaseSync, sessionId: string, atMs: number): void {
  const entry = { from: null, to: 'created', attempt: 0, reasonCode: null, note: null, atMs } as const;
  insert.history(db, sessionId, entry);
}

/** The only place where a state changes, with its line of history. @throws ledger_transition_refused. */
export function move(
  db: DatabaseSync,
  { sessionId, state }: Session,
  event: SessionEvent,
  { reasonCode = null, note }: Why,
  atMs: number,
): void {
  const to = nextSessionState(state, event);
  db.prepare('UPDATE review_sessions SET state = ?, reason_code = ? WHERE session_id = ?').run(
    to,
    reasonCode,
    sessionId,
  );
  const attempt = select.newestAssignment(db, sessionId)?.attempt ?? 0;
  insert.history(db, sessionId, { from: state, to, attempt, reasonCode, note: note ?? null, atMs });
}
