import { type KeyObject, sign, verify } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { EvaluatorError } from '../guest/errors.ts';
import { decodeCanonical, encodeCanonical } from '../guest/wire/canonical.ts';
import { digest } from '../guest/wire/digest.ts';
import { ed25519Key, signedBytes } from '../guest/wire/plan-signature.ts';
import { ed25519Signature, hex, int, parseSchema, sha256 } from '../guest/wire/scalars.ts';
import { writeSecret } from './secrets.ts';

const CONTEXT = 'cvm-evaluator/review-record/v1';
const MAX_RECORD_BYTES = 8 * 1024 * 1024;
/** A review admits a run for a day (spec/07), by the challenge's clock. */
export const REVIEW_FRESH_MS = 24 * 3_600_000;
/** Between the clocks of whoever signs reviews and whoever prepares runs. */
const SKEW_MS = 60_000;

/** What came of one review, signed with the challenge's review key so that it can be verified anew. */
export const reviewRecordSchema = z.strictObject({
  schema_version: z.literal(1),
  agent_hash: sha256,
  verdict: z.enum(['allow', 'reject', 'escalate']),
  issued_at_ms: int,
  /** The bytes that the verdict was read from, hex. */
  report: hex.max(4 * 1024 * 1024),
  signature: ed25519Signature,
});
export type ReviewRecord = z.infer<typeof reviewRecordSchema>;

/** What a run of an agent is admitted by. */
export interface ReviewStore {
  /**
   * The agent's review, verified anew from its stored bytes.
   * @returns its digest: the plan's authorizing_review_digest.
   * @throws review_missing, review_malformed, review_signature_invalid, review_not_allowed, review_revoked,
   *   review_stale, review_from_future.
   */
  admit(agentHash: string, nowMs: number): { digest: string };
  /** The review that admitted a run still stands. @throws review_revoked. */
  verifyStanding(reviewDigest: string): void;
}

/** Signs a review's outcome. */
export function signReviewRecord(record: Omit<ReviewRecord, 'signature'>, key: KeyObject): ReviewRecord {
  return { ...record, signature: sign(null, signedBytes(CONTEXT, record), key).toString('hex') };
}

/** For a challenge without reviews: it admits nobody, so nothing ranked is prepared. */
export const NO_REVIEWS: ReviewStore = {
  admit: () => {
    throw new EvaluatorError(
      'review_missing',
      'prepare: a ranked run needs a review, and none are kept here',
    );
  },
  verifyStanding: () => undefined,
};

function parseRecord(bytes: Buffer, agentHash: string, publicKeyHex: string): ReviewRecord {
  let record: ReviewRecord;
  try {
    record = parseSchema(reviewRecordSchema, decodeCanonical(bytes, MAX_RECORD_BYTES), 'review');
  } catch (cause) {
    throw new EvaluatorError('review_malformed', `prepare: the review of this agent is unreadable`, {
      cause,
    });
  }
  const { signature, ...signed } = record;
  if (!verify(null, signedBytes(CONTEXT, signed), ed25519Key(publicKeyHex), Buffer.from(signature, 'hex'))) {
    throw new EvaluatorError(
      'review_signature_invalid',
      'prepare: the review is not signed by the review key',
    );
  }
  if (record.agent_hash !== agentHash) {
    throw new EvaluatorError('review_malformed', 'prepare: the review kept for this agent is of another');
  }
  return record;
}

function verifyAdmits({ verdict, issued_at_ms: issuedAtMs }: ReviewRecord, nowMs: number): void {
  if (verdict !== 'allow') {
    throw new EvaluatorError('review_not_allowed', `prepare: the review of this agent says ${verdict}`);
  }
  if (issuedAtMs > nowMs + SKEW_MS) {
    throw new EvaluatorError('review_from_future', 'prepare: the review is dated after this clock');
  }
  if (nowMs - issuedAtMs > REVIEW_FRESH_MS) {
    throw new EvaluatorError(
      'review_stale',
      'prepare: the review is older than a day; review the agent again',
    );
  }
}

/** Reviews in a folder: `<agent hash>.json`, and beside it an empty `<digest>.revoked` for one taken back. */
export function fileReviews(directory: string, publicKeyHex: string): ReviewStore {
  const verifyStanding = (reviewDigest: string): void => {
    if (!existsSync(join(directory, `${reviewDigest}.revoked`))) return;
    throw new EvaluatorError('review_revoked', 'review: the one that admits this run was revoked');
  };
  return {
    verifyStanding,
    admit(agentHash, nowMs) {
      const path = join(directory, `${agentHash}.json`);
      if (!existsSync(path)) throw new EvaluatorError('review_missing', 'prepare: this agent has no review');
      const record = parseRecord(readFileSync(path), agentHash, publicKeyHex);
      const found = { digest: digest(record) };
      verifyStanding(found.digest);
      verifyAdmits(record, nowMs);
      return found;
    },
  };
}

/** Keeps a review where `fileReviews` finds it. */
export function writeReview(directory: string, record: ReviewRecord): void {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  writeSecret(join(directory, `${record.agent_hash}.json`), encodeCanonical(record));
}

/** Takes back the review with this digest: what it admitted is no longer accepted. */
export function revokeReview(directory: string, reviewDigest: string): void {
  writeSecret(join(directory, `${reviewDigest}.revoked`), '');
}
