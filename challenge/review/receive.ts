import { parseQuote } from '../../guest/attest/quote.ts';
import { EvaluatorError } from '../../guest/errors.ts';
import { parseAssignment } from '../../guest/wire/assignment.ts';
import { sha256Hex } from '../../guest/wire/digest.ts';
import { parseReviewSubmission, type ReviewReport, reviewReportData } from '../../guest/wire/review.ts';
import { MAX_PARKED } from '../ledger/parking.ts';
import { verifyReportData } from '../verify/evidence.ts';
import { verifyIds } from './binding.ts';
import type { ReviewLedger, StoredAssignment, StoredReport } from './ledger.ts';

/** A receipt as it travels: canonical, closed. */
export function reportReceipt(stored: StoredReport) {
  return {
    schema_version: 1,
    assignment_id: stored.assignmentId,
    report_sha256: stored.reportSha256,
    received_at_ms: stored.receivedAtMs,
  };
}

/**
 * The report claims report data that fits the stored assignment. Nothing is verified yet: it only keeps
 * garbage from taking the one place there is.
 */
function verifyClaim({ review_core: core, attestation }: ReviewReport): void {
  const expected = reviewReportData(core);
  verifyReportData(Buffer.from(attestation.report_data, 'hex'), expected);
  verifyReportData(parseQuote(Buffer.from(attestation.tdx_quote, 'hex')).reportData, expected);
}

export interface ReportReception {
  /** `stored`: the same bytes had been received before. */
  kind: 'received' | 'stored';
  stored: StoredReport;
}

/**
 * Everything between a complete, authorised body and its receipt, in the order of spec/07. The receipt is
 * committed when this returns.
 * @throws json_*, schema_invalid, review_ids_mismatch, report_conflict, review_closed, assignment_expired,
 *   assignment_superseded, verifier_backlog_full, quote_malformed, report_data_mismatch.
 */
export function receiveReport(
  ledger: ReviewLedger,
  assignment: StoredAssignment,
  body: Buffer,
  nowMs: number,
): ReportReception {
  const { assignmentId } = assignment;
  const earlier = ledger.report(assignmentId);
  if (earlier?.reportSha256 === sha256Hex(body)) return { kind: 'stored', stored: earlier };
  const { report } = parseReviewSubmission(body);
  verifyIds(report.review_core, parseAssignment(assignment.assignmentBytes));
  if (ledger.sessionsIn(['parked']).length >= MAX_PARKED) {
    throw new EvaluatorError('verifier_backlog_full', 'challenge: too many reports wait for collateral');
  }
  if (!earlier) {
    ledger.verifyTaking(assignmentId, nowMs);
    verifyClaim(report);
  }
  return { kind: 'received', stored: ledger.receive(assignmentId, body, nowMs) };
}
