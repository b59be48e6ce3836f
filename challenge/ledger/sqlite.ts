import type { DatabaseSync } from 'node:sqlite';
import { type Code, EvaluatorError } from '../../guest/errors.ts';
import { sha256Hex } from '../../guest/wire/digest.ts';
import { verifyNoStandingRun } from './admission.ts';
import { openDatabase, transaction } from './database.ts';
import type { Attempt, Grant, GrantFacts, NewAttempt, StoredStart } from './grants.ts';
import type { HistoryEntry, Ledger, NewRun, Run, RunSummary, StoredReceipt } from './ledger.ts';
import { AWAITING, nextState, type RunEvent, type RunState } from './machine.ts';
import { verifyOperatorReason } from './operator-reason.ts';
import { toHistory } from './rows.ts';
import {
  attemptRun,
  closeAttempt,
  insertAttempt,
  insertGrant,
  insertStart,
  interruptAttempts,
  selectAttempts,
  selectGrants,
  selectStart,
  verifyStartable,
} from './sqlite-grants.ts';
import {
  countRunsIn,
  selectReceipt,
  selectReceivedAtMs,
  selectRun,
  selectRunsIn,
  selectSealedRuns,
} from './sqlite-select.ts';

/** The embedded ledger: SQLite in WAL mode, every change in an immediate, fully synchronous transaction. */
export class SqliteLedger implements Ledger {
  readonly #db: DatabaseSync;

  /** @param path a file, or `:memory:`. @throws ledger_unreadable. */
  constructor(path: string) {
    this.#db = openDatabase(path);
  }

  #transaction<T>(work: () => T): T {
    return transaction(this.#db, work);
  }

  #known(evalRunId: string): Run {
    const run = this.run(evalRunId);
    if (run) return run;
    throw new EvaluatorError('run_unknown', 'ledger: no such run');
  }

  #note(evalRunId: string, entry: HistoryEntry): void {
    this.#db
      .prepare(
        `INSERT INTO history (eval_run_id, from_state, to_state, reason_code, note, at_ms)
         VALUES (?, ?, ?, ?, ?, ?)`,
      )
      .run(evalRunId, entry.from, entry.to, entry.reasonCode, entry.note, entry.atMs);
  }

  /** The only place where a state changes. */
  #move(
    run: RunSummary,
    event: RunEvent,
    reasonCode: Code | null,
    atMs: number,
    note: string | null = null,
  ): void {
    const to = nextState(run.state, event);
    this.#db
      .prepare('UPDATE runs SET state = ?, reason_code = ? WHERE eval_run_id = ?')
      .run(to, reasonCode, run.evalRunId);
    this.#note(run.evalRunId, { from: run.state, to, reasonCode, note, atMs });
  }

  prepare(run: NewRun, nowMs: number): void {
    this.#transaction(() => {
      if (run.keyNonce !== null) verifyNoStandingRun(this.#sealedRunsOf(run.agentHash));
      this.#db
        .prepare(
          `INSERT INTO runs (eval_run_id, submission_id, agent_hash, plan, run_token_sha256, score_nonce,
             key_nonce, expires_at_ms, state) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'prepared')`,
        )
        .run(
          run.evalRunId,
          run.submissionId,
          run.agentHash,
          run.planBytes,
          run.runTokenSha256,
          run.scoreNonce,
          run.keyNonce,
          run.expiresAtMs,
        );
      const entry = { from: null, to: 'prepared', reasonCode: null, note: null, atMs: nowMs } as const;
      this.#note(run.evalRunId, entry);
    });
  }

  #sealedRunsOf(agentHash: string) {
    const runs = selectSealedRuns(this.#db, agentHash);
    return runs.map((run) => ({ ...run, started: this.started(run.evalRunId) !== null }));
  }

  run(evalRunId: string): Run | null {
    return selectRun(this.#db, evalRunId);
  }

  runsIn(states: readonly RunState[]): RunSummary[] {
    return selectRunsIn(this.#db, states);
  }

  countIn(states: readonly RunState[]): number {
    return countRunsIn(this.#db, states);
  }

  receipt(evalRunId: string): StoredReceipt | null {
    return selectReceipt(this.#db, evalRunId);
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

  beginAttempt(evalRunId: string, asked: NewAttempt, maxGrants: number, nowMs: number): Attempt {
    return this.#transaction(() => insertAttempt(this.#db, this.#known(evalRunId), asked, maxGrants, nowMs));
  }

  endAttempt(attemptId: number, outcome: 'denied' | 'refused' | 'outage', reason: Code): void {
    this.#transaction(() => closeAttempt(this.#db, attemptId, outcome, reason));
  }

  interruptAttempts(): void {
    this.#transaction(() => interruptAttempts(this.#db));
  }

  grant(attemptId: number, facts: GrantFacts, maxGrants: number, nowMs: number): Grant {
    return this.#transaction(() => {
      const run = this.#known(attemptRun(this.#db, attemptId));
      insertGrant(this.#db, run, attemptId, facts, maxGrants, nowMs);
      this.#move(run, 'grant', null, nowMs);
      const granted = this.grants(run.evalRunId).at(-1);
      if (!granted) throw new EvaluatorError('ledger_unreadable', 'ledger: a grant was not written');
      return granted;
    });
  }

  attempts(evalRunId: string): Attempt[] {
    return selectAttempts(this.#db, evalRunId);
  }

  grants(evalRunId: string): Grant[] {
    return selectGrants(this.#db, evalRunId);
  }

  start(evalRunId: string, grantId: string, spkiDigest: string, nowMs: number): StoredStart {
    return this.#transaction(() => {
      const run = this.#known(evalRunId);
      verifyStartable(this.grants(evalRunId), grantId, spkiDigest);
      const stored = this.started(evalRunId);
      if (stored) return stored;
      if (nowMs >= run.expiresAtMs) throw new EvaluatorError('run_expired', 'run: its plan has expired');
      if (run.state !== 'granted') {
        throw new EvaluatorError('run_closed', `run: it is closed (${run.state})`);
      }
      this.#move(run, 'start', null, nowMs);
      const start = { evalRunId, grantId, receivedAtMs: nowMs };
      insertStart(this.#db, start);
      return start;
    });
  }

  started(evalRunId: string): StoredStart | null {
    return selectStart(this.#db, evalRunId);
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
      for (const run of this.runsIn(AWAITING)) {
        if (nowMs < run.expiresAtMs) continue;
        this.#move(run, run.state === 'started' ? 'abandon' : 'expire', 'run_expired', nowMs);
      }
      for (const run of this.runsIn(['parked'])) {
        const receivedAtMs = selectReceivedAtMs(this.#db, run.evalRunId) ?? 0;
        if (nowMs >= receivedAtMs + parkedForMs) this.#move(run, 'expire', run.reasonCode, nowMs);
      }
    });
  }

  reopen(evalRunId: string, reason: string, nowMs: number): void {
    verifyOperatorReason(reason);
    this.#transaction(() => this.#move(this.#known(evalRunId), 'reopen', null, nowMs, reason));
  }

  history(evalRunId: string): HistoryEntry[] {
    const rows = this.#db.prepare('SELECT * FROM history WHERE eval_run_id = ? ORDER BY seq').all(evalRunId);
    return rows.map(toHistory);
  }

  close(): void {
    this.#db.close();
  }
}
