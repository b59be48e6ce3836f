import { parseQuote } from '../guest/attest/quote.ts';
import { EvaluatorError } from '../guest/errors.ts';
import { sha256Hex } from '../guest/wire/digest.ts';
import { parsePlan } from '../guest/wire/plan.ts';
import { parseResult, type Result } from '../guest/wire/result.ts';
import type { Ledger, Run, StoredReceipt } from './ledger/ledger.ts';
import { isAwaiting } from './ledger/machine.ts';
import { MAX_PARKED } from './ledger/parking.ts';
import { verifyReportData } from './verify/evidence.ts';
import { expectedReportData } from './verify/result.ts';

/** A receipt as it travels: canonical, closed. */
export function receiptDocument(receipt: StoredReceipt) {
  return {
    schema_version: 1,
    eval_run_id: receipt.evalRunId,
    result_sha256: receipt.resultSha256,
    received_at_ms: receipt.receivedAtMs,
  };
}

function verifyOpen(run: Run, nowMs: number): void {
  // Before the clock: a run that has its receipt is closed for other bytes, whatever the time.
  if (run.state === 'received' || run.state === 'parked') {
    throw new EvaluatorError('result_conflict', 'result: another RESULT was received for this run');
  }
  if (run.state === 'expired' || (isAwaiting(run.state) && nowMs >= run.expiresAtMs)) {
    throw new EvaluatorError('run_expired', 'run: its plan has expired');
  }
  if (!isAwaiting(run.state)) throw new EvaluatorError('run_closed', `run: it is closed (${run.state})`);
}

/**
 * The body claims report data that fits the stored plan. Nothing is verified yet: it only keeps garbage
 * from taking the one place there is.
 */
function verifyClaim(result: Result, run: Run): void {
  const expected = expectedReportData(result, parsePlan(run.planBytes));
  const { attestation } = result.execution_proof;
  verifyReportData(Buffer.from(attestation.report_data, 'hex'), expected);
  verifyReportData(parseQuote(Buffer.from(attestation.tdx_quote, 'hex')).reportData, expected);
}

export interface Reception {
  /** `stored`: the same bytes had been received before. */
  kind: 'received' | 'stored';
  receipt: StoredReceipt;
}

/**
 * Everything between a complete, authorised body and its receipt, in the order of spec/07. The receipt is
 * committed when this returns.
 * @throws json_*, schema_invalid, result_ids_mismatch, result_conflict, run_closed, run_expired,
 *   verifier_backlog_full, quote_malformed, report_data_mismatch.
 */
export function receiveResult(ledger: Ledger, run: Run, body: Buffer, nowMs: number): Reception {
  const stored = ledger.receipt(run.evalRunId);
  if (stored?.resultSha256 === sha256Hex(body)) return { kind: 'stored', receipt: stored };
  const result = parseResult(body);
  if (result.eval_run_id !== run.evalRunId || result.submission_id !== run.submissionId) {
    throw new EvaluatorError('result_ids_mismatch', 'result: its ids are not those of the run in the URL');
  }
  verifyOpen(run, nowMs);
  if (ledger.countIn(['parked']) >= MAX_PARKED) {
    throw new EvaluatorError('verifier_backlog_full', 'challenge: too many receipts wait for collateral');
  }
  verifyClaim(result, run);
  return { kind: 'received', receipt: ledger.receive(run.evalRunId, body, nowMs) };
}
