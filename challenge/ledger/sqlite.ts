import { DatabaseSync, type SQLOutputValue } from 'node:sqlite';
import { CODES, type Code, EvaluatorError } from '../../guest/errors.ts';
import { sha256Hex } from '../../guest/wire/digest.ts';
import type { HistoryEntry, Ledger, NewRun, Run, StoredReceipt } from './ledger.ts';
import { nextState, RUN_STATES, type RunEvent, type RunState } from './machine.ts';
import { SCHEMA } from './schema.ts';

type Row = Record<string, SQLOutputValue>;

const text = (row: Row, column: string): string => String(row[column]);
const textOrNull = (row: Row, column: string) => (row[column] === null ? null : String(row[column]));
const bytes = (row: Row, column: string): Buffer => Buffer.from(row[column] as Uint8Array);

function codeOrNull(row: Row): Code | null {
  const value = textOrNull(row, 'reason_code');
  if (value === null || Object.hasOwn(CODES, value)) return value as Code | null;
  throw new EvaluatorError('ledger_unreadable', `ledger: reason_code "${value}" is not one of ours`);
}

function state(value: SQLOutputValue): RunState {
  const known = RUN_STATES.find((name) => name === value);
  if (known) return known;
  throw new EvaluatorError('ledger_unreadable', `ledger: state "${String(value)}" is not one of ours`);
}

function toRun(row: Row): Run {
  return {
    evalRunId: text(row, 'eval_run_id'),
    submissionId: text(row, 'submission_id'),
    agentHash: text(row, 'agent_hash'),
    planBytes: bytes(row, 'plan'),
    runTokenSha256: text(row, 'run_token_sha256'),
    scoreNonce: text(row, 'score_nonce'),
    expiresAtMs: Number(row.expires_at_ms),
    state: state(row.state ?? null),
    reasonCode: codeOrNull(row),
    scoreF64be: textOrNull(row, 'score_f64be'),
    startedAtMs: row.started_at_ms === null ? null : Number(row.started_at_ms),
  };
}

const SELECT_RUN = 'SELECT runs.*, scores.score_f64be FROM runs LEFT JOIN scores USING (eval_run_id)';

/** The embedded ledger: SQLite in WAL mode, every change in an immediate, fully synchronous transaction. */
export class SqliteLedger implements Ledger {
  readonly #db: DatabaseSync;

  /** @param path a file, or `:memory:`. */
  constructor(path: string) {
    this.#db = new DatabaseSync(path);
    this.#db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;');
    this.#db.exec('PRAGMA busy_timeout = 5000;');
    this.#db.exec(SCHEMA);
  }

  #transaction<T>(work: () => T): T {
    this.#db.exec('BEGIN IMMEDIATE');
    try {
      const done = work();
      this.#db.exec('COMMIT');
      return done;
    } catch (error) {
      this.#db.exec('ROLLBACK');
      throw error;
    }
  }

  #known(evalRunId: string): Run {
    const run = this.run(evalRunId);
    if (run) return run;
    throw new EvaluatorError('run_unknown', 'ledger: no such run');
  }

  #note(evalRunId: string, from: RunState | null, to: RunState, reason: Code | null, nowMs: number): void {
    this.#db
      .prepare(
        'INSERT INTO history (eval_run_id, from_state, to_state, reason_code, at_ms) VALUES (?, ?, ?, ?, ?)',
      )
      .run(evalRunId, from, to, reason, nowMs);
  }

  /** The only place where a state changes. */
  #move(run: Run, event: RunEvent, reason: Code | null, nowMs: number): void {
    const to = nextState(run.state, event);
    this.#db
      .prepare('UPDATE runs SET state = ?, reason_code = ? WHERE eval_run_id = ?')
      .run(to, reason, run.evalRunId);
    this.#note(run.evalRunId, run.state, to, reason, nowMs);
  }

  prepare(run: NewRun, nowMs: number): void {
    this.#transaction(() => {
      this.#db
        .prepare(
          `INSERT INTO runs (eval_run_id, submission_id, agent_hash, plan, run_token_sha256, score_nonce,
             expires_at_ms, state) VALUES (?, ?, ?, ?, ?, ?, ?, 'prepared')`,
        )
        .run(
          run.evalRunId,
          run.submissionId,
          run.agentHash,
          run.planBytes,
          run.runTokenSha256,
          run.scoreNonce,
          run.expiresAtMs,
        );
      this.#note(run.evalRunId, null, 'prepared', null, nowMs);
    });
  }

  run(evalRunId: string): Run | null {
    const row = this.#db.prepare(`${SELECT_RUN} WHERE eval_run_id = ?`).get(evalRunId);
    return row ? toRun(row) : null;
  }

  runsIn(states: readonly RunState[]): Run[] {
    const marks = states.map(() => '?').join(', ');
    const rows = this.#db
      .prepare(`${SELECT_RUN} WHERE state IN (${marks}) ORDER BY runs.rowid`)
      .all(...states);
    return rows.map(toRun);
  }

  receipt(evalRunId: string): StoredReceipt | null {
    const row = this.#db.prepare('SELECT * FROM receipts WHERE eval_run_id = ?').get(evalRunId);
    if (!row) return null;
    return {
      evalRunId,
      resultSha256: text(row, 'result_sha256'),
      receivedAtMs: Number(row.received_at_ms),
      resultBytes: bytes(row, 'result'),
    };
  }

  receive(evalRunId: string, resultBytes: Buffer, nowMs: number): StoredReceipt {
    const resultSha256 = sha256Hex(resultBytes);
    return this.#transaction(() => {
      const run = this.#known(evalRunId);
      const stored = this.receipt(evalRunId);
      if (stored?.resultSha256 === resultSha256) return stored;
      if (stored)
        throw new EvaluatorError('result_conflict', 'result: another RESULT was received for this run');
      this.#move(run, 'receive', null, nowMs);
      this.#db
        .prepare(
          'INSERT INTO receipts (eval_run_id, result_sha256, received_at_ms, result) VALUES (?, ?, ?, ?)',
        )
        .run(evalRunId, resultSha256, nowMs, resultBytes);
      return { evalRunId, resultSha256, receivedAtMs: nowMs, resultBytes };
    });
  }

  markStarted(evalRunId: string, nowMs: number): void {
    this.#transaction(() => {
      this.#known(evalRunId);
      this.#db
        .prepare('UPDATE runs SET started_at_ms = ? WHERE eval_run_id = ? AND started_at_ms IS NULL')
        .run(nowMs, evalRunId);
    });
  }

  accept(evalRunId: string, scoreF64be: string, nowMs: number): void {
    this.#transaction(() => {
      const run = this.#known(evalRunId);
      this.#move(run, 'accept', null, nowMs);
      const consumed = this.#db
        .prepare(
          'INSERT INTO consumed_nonces (score_nonce, eval_run_id) VALUES (?, ?) ON CONFLICT DO NOTHING',
        )
        .run(run.scoreNonce, evalRunId);
      if (consumed.changes !== 1) {
        throw new EvaluatorError(
          'score_nonce_consumed',
          'ledger: the score nonce of this run was used before',
        );
      }
      this.#db
        .prepare('INSERT INTO scores (eval_run_id, score_f64be, accepted_at_ms) VALUES (?, ?, ?)')
        .run(evalRunId, scoreF64be, nowMs);
    });
  }

  reject(evalRunId: string, reason: Code, nowMs: number): void {
    this.#transaction(() => this.#move(this.#known(evalRunId), 'reject', reason, nowMs));
  }

  park(evalRunId: string, reason: Code, nowMs: number): void {
    this.#transaction(() => this.#move(this.#known(evalRunId), 'park', reason, nowMs));
  }

  closeOverdue(nowMs: number, parkedForMs: number): void {
    this.#transaction(() => {
      for (const run of this.runsIn(['prepared'])) {
        if (nowMs < run.expiresAtMs) continue;
        this.#move(run, run.startedAtMs === null ? 'expire' : 'abandon', 'run_expired', nowMs);
      }
      for (const run of this.runsIn(['parked'])) {
        const receivedAtMs = this.receipt(run.evalRunId)?.receivedAtMs ?? 0;
        if (nowMs >= receivedAtMs + parkedForMs) this.#move(run, 'expire', run.reasonCode, nowMs);
      }
    });
  }

  history(evalRunId: string): HistoryEntry[] {
    const rows = this.#db.prepare('SELECT * FROM history WHERE eval_run_id = ? ORDER BY seq').all(evalRunId);
    return rows.map((row) => ({
      from: row.from_state === null ? null : state(row.from_state ?? null),
      to: state(row.to_state ?? null),
      reasonCode: codeOrNull(row),
      atMs: Number(row.at_ms),
    }));
  }

  close(): void {
    this.#db.close();
  }
}
