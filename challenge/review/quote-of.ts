import { parseReviewSubmission } from '../../guest/wire/review.ts';

/** The quote of a report, for whom collateral is wanted. @throws json_*, schema_invalid. */
export function quoteOf(reportBytes: Buffer): Buffer {
  return Buffer.from(parseReviewSubmission(reportBytes).report.attestation.tdx_quote, 'hex');
}
