import type { SQLOutputValue } from 'node:sqlite';
import { CODES, type Code, EvaluatorError } from '../../guest/errors.ts';
import { decodeCanonical } from '../../guest/wire/canonical.ts';
import { measurementSchema } from '../../guest/wire/measurement.ts';
import { parseSchema } from '../../guest/wire/scalars.ts';
import { ATTEMPT_OUTCOMES, type Attempt, type Grant, type StoredStart } from './grants.ts';
import type { HistoryEntry, Run, RunSummary, StoredReceipt } from './ledger.ts';
import { RUN_STATES } from './machine.ts';

export type Row = Record<string, SQLOutputValue>;

export const text = (row: Row, column: string): string => String(row[column]);
export const textOrNull = (row: Row, column: string) => (row[column] === null ? null : String(row[column]));
export const bytes = (row: Row, column: string): Buffer => Buffer.from(row[column] as Uint8Array);

export function codeOrNull(row: Row): Code | null {
  const value = textOrNull(row, 'reason_code');
  if (value === null || Object.hasOwn(CODES, value)) return value as Code | null;
  throw new EvaluatorError('ledger_unreadable', `ledger: reason_code "${value}" is not one of ours`);
}

export function oneOf<T extends string>(names: readonly T[], row: Row, column: string): T {
  const known = names.find((name) => name === row[column]);
  if (known !== undefined) return known;
  throw new EvaluatorError('ledger_unreadable', `ledger: ${column} "${row[column]}" is not one of ours`);
}

/** @throws ledger_unreadable. */
export function toRunSummary(row: Row): RunSummary {
  return {
    evalRunId: text(row, 'eval_run_id'),
    submissionId: text(row, 'submission_id'),
    agentHash: text(row, 'agent_hash'),
    runTokenSha256: text(row, 'run_token_sha256'),
    scoreNonce: text(row, 'score_nonce'),
    keyNonce: textOrNull(row, 'key_nonce'),
    expiresAtMs: Number(row.expires_at_ms),
    state: oneOf(RUN_STATES, row, 'state'),
    reasonCode: codeOrNull(row),
    scoreF64be: textOrNull(row, 'score_f64be'),
  };
}

/** @throws ledger_unreadable. */
export function toRun(row: Row): Run {
  return { ...toRunSummary(row), planBytes: bytes(row, 'plan') };
}

export function toReceipt(row: Row): StoredReceipt {
  return {
    evalRunId: text(row, 'eval_run_id'),
    resultSha256: text(row, 'result_sha256'),
    receivedAtMs: Number(row.received_at_ms),
    resultBytes: bytes(row, 'result'),
  };
}

/** @throws ledger_unreadable. */
export function toHistory(row: Row): HistoryEntry {
  return {
    from: row.from_state === null ? null : oneOf(RUN_STATES, row, 'from_state'),
    to: oneOf(RUN_STATES, row, 'to_state'),
    reasonCode: codeOrNull(row),
    note: textOrNull(row, 'note'),
    atMs: Number(row.at_ms),
  };
}

/** @throws ledger_unreadable. */
export function toAttempt(row: Row): Attempt {
  return {
    attemptId: Number(row.attempt_id),
    evalRunId: text(row, 'eval_run_id'),
    attempt: Number(row.attempt),
    nonce: text(row, 'nonce'),
    spkiDigest: text(row, 'spki_digest'),
    atMs: Number(row.at_ms),
    outcome: oneOf(ATTEMPT_OUTCOMES, row, 'outcome'),
    reasonCode: codeOrNull(row),
  };
}

/** @throws json_*, schema_invalid when the stored measurement is not one. */
export function toGrant(row: Row): Grant {
  const measurement = decodeCanonical(Buffer.from(text(row, 'measurement')), 64 * 1024);
  return {
    grantId: text(row, 'grant_id'),
    attemptId: Number(row.attempt_id),
    evalRunId: text(row, 'eval_run_id'),
    nonce: text(row, 'nonce'),
    spkiDigest: text(row, 'spki_digest'),
    measurement: parseSchema(measurementSchema, measurement, 'ledger: measurement'),
    appId: text(row, 'app_id'),
    instanceId: text(row, 'instance_id'),
    platform: text(row, 'platform'),
    grantedAtMs: Number(row.granted_at_ms),
  };
}

export function toStart(row: Row): StoredStart {
  return {
    evalRunId: text(row, 'eval_run_id'),
    grantId: text(row, 'grant_id'),
    receivedAtMs: Number(row.received_at_ms),
  };
}
