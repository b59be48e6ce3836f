import { z } from 'zod';
import { decodeCanonical } from './canonical.ts';
import { digest } from './digest.ts';
import { MODEL_OUTCOMES, reasonCode, verdictSchema } from './model-reply.ts';
import { DOMAIN, reportData } from './report-data.ts';
import { attestationSchema } from './result.ts';
import { containmentSchema, similarityLevelSchema } from './review-decision.ts';
import { base64 } from './review-inputs.ts';
import { id, int, parseSchema, positiveInt, sha256 } from './scalars.ts';

/** A planned request of 4 MiB, a reply of 1 MiB and findings of 6 MiB in base64, a quote and its log. */
export const MAX_REVIEW_REPORT_BYTES = 20 * 1024 * 1024;

/** What a foreign service said of itself: printable ASCII, cut at 128 characters. */
const foreignName = z.string().regex(/^[\x20-\x7e]{0,128}$/);

/** What was reviewed, how, and what came of it. Its digest is what the quote carries (spec/09). */
const reviewCoreSchema = z.strictObject({
  schema_version: z.literal(1),
  challenge_id: id,
  session_id: id,
  assignment_id: id,
  attempt: positiveInt,
  submission_id: id,
  assignment_digest: sha256,
  artifact: z.strictObject({
    agent_hash: sha256,
    zip_sha256: sha256,
    zip_size_bytes: positiveInt,
    files: positiveInt,
    unpacked_bytes: int,
  }),
  rules: z.strictObject({ snapshot_sha256: sha256, revision_id: id, files: positiveInt }),
  policy: z.strictObject({
    model: id,
    /** Of the routing object. */
    routing_sha256: sha256,
    prompt_sha256: sha256,
    tool_schema_sha256: sha256,
    verifier_version: id,
  }),
  model: z.strictObject({
    outcome: z.enum(MODEL_OUTCOMES),
    request_sha256: sha256,
    request_bytes: positiveInt,
    /** These five are null when no model was asked. */
    status: z.literal(200).nullable(),
    response_sha256: sha256.nullable(),
    response_bytes: int.nullable(),
    returned_model: foreignName.nullable(),
    provider: foreignName.nullable(),
  }),
  static_findings_sha256: sha256,
  similarity: z.strictObject({
    corpus_sha256: sha256,
    level: similarityLevelSchema,
    /** Of the nearest submission; null: nothing to compare. */
    containment: containmentSchema.nullable(),
    matched_agent_hash: sha256.nullable(),
  }),
  decision: z.strictObject({
    verdict: verdictSchema,
    reason_codes: z.array(reasonCode).min(1).max(64),
    evidence_digests: z.strictObject({
      planned_request_sha256: sha256,
      response_sha256: sha256.nullable(),
      findings_sha256: sha256,
    }),
  }),
  review_nonce: id,
  issued_at_ms: int,
  submission_received_at_ms: int,
  /** By the guest's clock. */
  started_at_ms: int,
  finished_at_ms: int,
});
export type ReviewCore = z.infer<typeof reviewCoreSchema>;

const reviewReportSchema = z.strictObject({
  schema_version: z.literal(1),
  domain: z.literal(DOMAIN.review),
  review_core: reviewCoreSchema,
  review_digest: sha256,
  report_data_hex: z.string().regex(/^[0-9a-f]{128}$/),
  attestation: attestationSchema,
});
export type ReviewReport = z.infer<typeof reviewReportSchema>;

/** The bytes that the decision can be recomputed from. */
const reviewEvidenceSchema = z.strictObject({
  planned_request_b64: base64,
  /** null: no model was asked. */
  response_b64: base64.nullable(),
  findings_b64: base64,
});
export type ReviewEvidence = z.infer<typeof reviewEvidenceSchema>;

/** What is POSTed: the report, and beside it the evidence. */
export const reviewSubmissionSchema = z.strictObject({
  schema_version: z.literal(1),
  report: reviewReportSchema,
  evidence: reviewEvidenceSchema,
});
export type ReviewSubmission = z.infer<typeof reviewSubmissionSchema>;

/** Announced, and acknowledged, before a connection to the model is opened. */
const modelCallStartedSchema = z.strictObject({
  assignment_id: id,
  planned_request_sha256: sha256,
});
export type ModelCallStarted = z.infer<typeof modelCallStartedSchema>;

const reviewFailureSchema = z.strictObject({
  assignment_id: id,
  planned_request_sha256: sha256.nullable(),
  reason_code: reasonCode,
});
export type ReviewFailure = z.infer<typeof reviewFailureSchema>;

/** Reads a posted report. @throws json_*, schema_invalid. */
export function parseReviewSubmission(bytes: Uint8Array): ReviewSubmission {
  return parseSchema(
    reviewSubmissionSchema,
    decodeCanonical(bytes, MAX_REVIEW_REPORT_BYTES),
    'review report',
  );
}

/** Reads an announced model call. @throws json_*, schema_invalid. */
export function parseModelCallStarted(bytes: Uint8Array): ModelCallStarted {
  return parseSchema(modelCallStartedSchema, decodeCanonical(bytes, 4096), 'model-call-started');
}

/** Reads a failure notice. @throws json_*, schema_invalid. */
export function parseReviewFailure(bytes: Uint8Array): ReviewFailure {
  return parseSchema(reviewFailureSchema, decodeCanonical(bytes, 4096), 'review failure');
}

export function reviewDigest(core: ReviewCore): string {
  return digest(core);
}

/** Preimage of the review domain: issued_at_ms and received_at_ms are the assignment's (spec/01). */
function reviewPreimage(core: ReviewCore) {
  return {
    domain: DOMAIN.review,
    schema_version: 2,
    review_digest: reviewDigest(core),
    session_id: core.session_id,
    review_nonce: core.review_nonce,
    issued_at_ms: core.issued_at_ms,
    received_at_ms: core.submission_received_at_ms,
  };
}

/** Report data of the review domain: what a review's quote must carry. */
export function reviewReportData(core: ReviewCore): Buffer {
  return reportData(reviewPreimage(core));
}
