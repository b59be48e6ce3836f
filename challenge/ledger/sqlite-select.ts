import type { DatabaseSync } from 'node:sqlite';
import type { Run, RunSummary, StoredReceipt } from './ledger.ts';
import type { RunState } from './machine.ts';
import { toReceipt, toRun, toRunSummary } from './rows.ts';

/** What is read of runs and receipts. Plans and RESULTs are large: what asks about many runs reads neither. */

const SUMMARY = `eval_run_id, submission_id, agent_hash, run_token_sha256, score_nonce, key_nonce, expires_at_ms,
  state, reason_code, score_f64be`;
const FROM_RUNS = 'FROM runs LEFT JOIN scores USING (eval_run_id)';

const marksOf = (values: readonly unknown[]): string => values.map(() => '?').join(', ');

export function selectRun(db: DatabaseSync, evalRunId: string): Run | null {
  const row = db.prepare(`SELECT ${SUMMARY}, plan ${FROM_RUNS} WHERE eval_run_id = ?`).get(evalRunId);
  return row ? toRun(row) : null;
}

/** Oldest first. */
export function selectRunsIn(db: DatabaseSync, states: readonly RunState[]): RunSummary[] {
  return db
    .prepare(`SELECT ${SUMMARY} ${FROM_RUNS} WHERE state IN (${marksOf(states)}) ORDER BY runs.rowid`)
    .all(...states)
    .map(toRunSummary);
}

export function countRunsIn(db: DatabaseSync, states: readonly RunState[]): number {
  const sql = `SELECT count(*) AS runs FROM runs WHERE state IN (${marksOf(states)})`;
  return Number(db.prepare(sql).get(...states)?.runs);
}

/** Of an agent. */
export function selectSealedRuns(db: DatabaseSync, agentHash: string): RunSummary[] {
  return db
    .prepare(`SELECT ${SUMMARY} ${FROM_RUNS} WHERE agent_hash = ? AND key_nonce IS NOT NULL`)
    .all(agentHash)
    .map(toRunSummary);
}

export function selectReceipt(db: DatabaseSync, evalRunId: string): StoredReceipt | null {
  const row = db.prepare('SELECT * FROM receipts WHERE eval_run_id = ?').get(evalRunId);
  return row ? toReceipt(row) : null;
}

/** When a run's RESULT came; null while none has. */
export function selectReceivedAtMs(db: DatabaseSync, evalRunId: string): number | null {
  const row = db.prepare('SELECT received_at_ms FROM receipts WHERE eval_run_id = ?').get(evalRunId);
  return row ? Number(row.received_at_ms) : null;
}
