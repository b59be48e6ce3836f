import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { EvaluatorError } from '../../guest/errors.ts';
import { assignmentSchema } from '../../guest/wire/assignment.ts';
import { decodeCanonical, encodeCanonical } from '../../guest/wire/canonical.ts';
import { parseReviewSubmission, reviewDigest, reviewSubmissionSchema } from '../../guest/wire/review.ts';
import { int, parseSchema, sha256 } from '../../guest/wire/scalars.ts';
import type { ReviewStore } from '../reviews.ts';
import type { ReviewPolicy } from './accept.ts';
import { admitReview } from './gate.ts';
import { revocationsBeside, revoke, verifyNotRevoked } from './revocations.ts';
import type { ReviewBytes } from './verify.ts';

const MAX_FILE_BYTES = 24 * 1024 * 1024;

/** A review as it is carried from where it was accepted to where it admits a run. */
const reviewFileSchema = z.strictObject({
  schema_version: z.literal(1),
  assignment: assignmentSchema,
  submission: reviewSubmissionSchema,
  announced_request_sha256: sha256.nullable(),
  received_at_ms: int,
});

/** The exact bytes of a review file. @throws json_*, schema_invalid when the bytes are not a review's. */
export function encodeReviewFile(bytes: ReviewBytes): Buffer {
  const assignment = decodeCanonical(bytes.assignmentBytes, MAX_FILE_BYTES);
  return encodeCanonical({
    schema_version: 1,
    assignment: parseSchema(assignmentSchema, assignment, 'assignment'),
    submission: parseReviewSubmission(bytes.reportBytes),
    announced_request_sha256: bytes.announcedRequest,
    received_at_ms: bytes.receivedAtMs,
  });
}

/** Reads a review file; says nothing of whether it verifies. @throws json_*, schema_invalid. */
export function parseReviewFile(bytes: Buffer): ReviewBytes {
  const file = parseSchema(reviewFileSchema, decodeCanonical(bytes, MAX_FILE_BYTES), 'review file');
  return {
    assignmentBytes: encodeCanonical(file.assignment),
    reportBytes: encodeCanonical(file.submission),
    announcedRequest: file.announced_request_sha256,
    receivedAtMs: file.received_at_ms,
  };
}

function readReviewFile(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (cause) {
    throw new EvaluatorError('review_missing', `the review ${path} cannot be read`, { cause });
  }
}

/**
 * Admits by one accepted review that was brought as a file, read and verified anew each time, unless the list
 * beside it says that it was taken back.
 */
export function fileReview(path: string, policy: ReviewPolicy): ReviewStore {
  const verifyStanding = (digest: string) => verifyNotRevoked(revocationsBeside(path), digest);
  return {
    admit: async (agentHash, nowMs) => {
      const admitted = await admitReview(parseReviewFile(readReviewFile(path)), agentHash, policy, nowMs);
      verifyStanding(admitted.digest);
      return admitted;
    },
    verifyStanding,
  };
}

/**
 * Takes a review file back, by the digest of what it says.
 * @returns the digest. @throws review_missing, reopen_reason_invalid, review_revocations_missing,
 *   review_revocations_busy, json_*, schema_invalid.
 */
export function revokeReviewFile(path: string, reason: string, nowMs: number): string {
  const { reportBytes } = parseReviewFile(readReviewFile(path));
  const digest = reviewDigest(parseReviewSubmission(reportBytes).report.review_core);
  revoke(revocationsBeside(path), digest, reason, nowMs);
  return digest;
}
