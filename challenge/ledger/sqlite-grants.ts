import type { DatabaseSync } from 'node:sqlite';
import { type Code, EvaluatorError } from '../../guest/errors.ts';
import { encodeCanonical } from '../../guest/wire/canonical.ts';
import {
  type Attempt,
  type AttemptOutcome,
  COUNTED_OUTCOMES,
  type Grant,
  type GrantFacts,
  type NewAttempt,
  type StoredStart,
} from './grants.ts';
import type { Run } from './ledger.ts';
import { toAttempt, toGrant, toStart } from './rows.ts';

/** Statements about attempts, grants and starts. Each runs inside a transaction of the ledger's. */

const SELECT_GRANT = 'SELECT * FROM grants JOIN attempts USING (attempt_id)';

/** Why a run gives no key any more, said as the guest shall hear it. */
function verifyGrantable(run: Run, nowMs: number): void {
  if (run.state === 'started') {
    throw new EvaluatorError('run_started', 'run: its agents have started; no further key is given');
  }
  if (run.state === 'expired' || nowMs >= run.expiresAtMs) {
    throw new EvaluatorError('run_expired', 'run: its plan has expired');
  }
  if (run.state !== 'prepared' && run.state !== 'granted') {
    throw new EvaluatorError('run_closed', `run: it is closed (${run.state})`);
  }
}

function verifyLeft(db: DatabaseSync, evalRunId: string, maxGrants: number): void {
  const marks = COUNTED_OUTCOMES.map(() => '?').join(', ');
  const used = db
    .prepare(`SELECT count(*) AS n FROM attempts WHERE eval_run_id = ? AND outcome IN (${marks})`)
    .get(evalRunId, ...COUNTED_OUTCOMES);
  if (Number(used?.n) >= maxGrants) {
    throw new EvaluatorError('grants_exhausted', `run: all of its ${maxGrants} attempts are used up`);
  }
}

function setOutcome(db: DatabaseSync, attemptId: number, outcome: AttemptOutcome, reason: Code | null): void {
  const { changes } = db
    .prepare("UPDATE attempts SET outcome = ?, reason_code = ? WHERE attempt_id = ? AND outcome = 'pending'")
    .run(outcome, reason, attemptId);
  if (changes !== 1) {
    throw new EvaluatorError('ledger_transition_refused', 'ledger: this attempt has ended before');
  }
}

export function insertAttempt(
  db: DatabaseSync,
  run: Run,
  asked: NewAttempt,
  maxGrants: number,
  nowMs: number,
): Attempt {
  verifyGrantable(run, nowMs);
  verifyLeft(db, run.evalRunId, maxGrants);
  const row = db
    .prepare(
      `INSERT INTO attempts (eval_run_id, attempt, nonce, spki_digest, at_ms, outcome)
       SELECT ?, 1 + count(*), ?, ?, ?, 'pending' FROM attempts WHERE eval_run_id = ? RETURNING *`,
    )
    .get(run.evalRunId, asked.nonce, asked.spkiDigest, nowMs, run.evalRunId);
  if (!row) throw new EvaluatorError('ledger_unreadable', 'ledger: an attempt was not written');
  return toAttempt(row);
}

export function closeAttempt(
  db: DatabaseSync,
  attemptId: number,
  outcome: 'denied' | 'refused' | 'outage',
  reason: Code,
): void {
  setOutcome(db, attemptId, outcome, reason);
}

export function interruptAttempts(db: DatabaseSync): void {
  db.exec("UPDATE attempts SET outcome = 'interrupted' WHERE outcome = 'pending'");
}

export function attemptRun(db: DatabaseSync, attemptId: number): string {
  const row = db.prepare('SELECT eval_run_id FROM attempts WHERE attempt_id = ?').get(attemptId);
  if (row) return String(row.eval_run_id);
  throw new EvaluatorError('run_unknown', 'ledger: no such attempt');
}

export function insertGrant(
  db: DatabaseSync,
  run: Run,
  attemptId: number,
  facts: GrantFacts,
  maxGrants: number,
  nowMs: number,
): void {
  verifyGrantable(run, nowMs);
  verifyLeft(db, run.evalRunId, maxGrants);
  setOutcome(db, attemptId, 'granted', null);
  db.prepare(
    `INSERT INTO grants (grant_id, attempt_id, measurement, app_id, instance_id, platform, granted_at_ms)
     VALUES (?, ?, ?, ?, ?, ?, ?)`,
  ).run(
    facts.grantId,
    attemptId,
    encodeCanonical(facts.measurement).toString('ascii'),
    facts.appId,
    facts.instanceId,
    facts.platform,
    nowMs,
  );
}

export function selectAttempts(db: DatabaseSync, evalRunId: string): Attempt[] {
  return db
    .prepare('SELECT * FROM attempts WHERE eval_run_id = ? ORDER BY attempt')
    .all(evalRunId)
    .map(toAttempt);
}

/** Oldest first, by commit: an attempt that began earlier may have been granted later. */
export function selectGrants(db: DatabaseSync, evalRunId: string): Grant[] {
  return db
    .prepare(`${SELECT_GRANT} WHERE eval_run_id = ? ORDER BY grants.rowid`)
    .all(evalRunId)
    .map(toGrant);
}

export function selectStart(db: DatabaseSync, evalRunId: string): StoredStart | null {
  const row = db.prepare('SELECT * FROM started WHERE eval_run_id = ?').get(evalRunId);
  return row ? toStart(row) : null;
}

/** The grant that may start now. @throws grant_unknown, grant_certificate_mismatch, grant_superseded. */
export function verifyStartable(grants: readonly Grant[], grantId: string, spkiDigest: string): void {
  const grant = grants.find((one) => one.grantId === grantId);
  if (!grant) throw new EvaluatorError('grant_unknown', 'started: no such grant of this run');
  if (grant.spkiDigest !== spkiDigest) {
    throw new EvaluatorError(
      'grant_certificate_mismatch',
      'started: the grant was given to another certificate',
    );
  }
  if (grants.at(-1) !== grant) {
    throw new EvaluatorError('grant_superseded', 'started: a newer grant has taken the place of this one');
  }
}

export function insertStart(db: DatabaseSync, start: StoredStart): void {
  db.prepare('INSERT INTO started (eval_run_id, grant_id, received_at_ms) VALUES (?, ?, ?)').run(
    start.evalRunId,
    start.grantId,
    start.receivedAtMs,
  );
}
