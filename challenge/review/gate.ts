import { EvaluatorError } from '../../guest/errors.ts';
import { sha256Hex } from '../../guest/wire/digest.ts';
import type { ReviewStore } from '../reviews.ts';
import { bytesOf, judgeReview, type ReviewPolicy } from './accept.ts';
import type { ReviewFile, ReviewLedger, Session } from './ledger.ts';
import type { ReviewBytes } from './verify.ts';

/** A review admits a run for a day (spec/07), by the challenge's clock. */
export const REVIEW_FRESH_MS = 24 * 3_600_000;

function refuse(code: 'review_missing' | 'review_not_allowed' | 'review_revoked', why: string): never {
  throw new EvaluatorError(code, `prepare: ${why}`);
}

function verifyState({ sessionId, state }: Session): void {
  if (state === 'allowed') return;
  if (state === 'revoked') refuse('review_revoked', `the allow of ${sessionId} was taken back`);
  if (state === 'reopened') refuse('review_missing', `${sessionId} was set aside; review the agent again`);
  refuse('review_not_allowed', `the newest review of this agent, ${sessionId}, ended ${state}`);
}

/** The report's bytes are those of its receipt. */
function verifyKept({ report }: ReviewFile): void {
  if (report === null || sha256Hex(report.reportBytes) === report.reportSha256) return;
  throw new EvaluatorError('review_bytes_changed', 'prepare: the stored report is not the one received');
}

/**
 * Bytes that verify now, decide allow and are at most a day old: nothing else admits, least of all a state in a
 * database. Age counts from the time that the quote covers.
 * @returns the review digest: a plan's authorizing_review_digest.
 * @throws review_not_allowed, review_stale, review_from_future; what refuses a report; collateral_unavailable.
 */
export async function admitReview(
  bytes: ReviewBytes,
  agentHash: string,
  policy: ReviewPolicy,
  nowMs: number,
): Promise<{ digest: string }> {
  const judgement = await judgeReview(bytes, agentHash, policy, nowMs);
  if (judgement.kind !== 'verified') {
    throw new EvaluatorError(judgement.reason, 'prepare: the review of this agent does not verify any more');
  }
  const { verdict, finishedAtMs, reviewDigest } = judgement.review;
  if (verdict !== 'allow') refuse('review_not_allowed', `the review of this agent says ${verdict}`);
  if (finishedAtMs > nowMs) {
    throw new EvaluatorError('review_from_future', 'prepare: the review is dated after this clock');
  }
  if (nowMs - finishedAtMs > REVIEW_FRESH_MS) {
    throw new EvaluatorError(
      'review_stale',
      'prepare: the review is older than a day; review the agent again',
    );
  }
  return { digest: reviewDigest };
}

/** Admits by the accepted reports of a ledger, each verified anew from its stored bytes (spec/09). */
export function acceptedReviews(ledger: ReviewLedger, policy: ReviewPolicy): ReviewStore {
  return {
    async admit(agentHash, nowMs) {
      const file = ledger.newestConcluded(agentHash);
      if (!file) return refuse('review_missing', 'this agent has no review');
      verifyState(file.session);
      const bytes = bytesOf(file);
      verifyKept(file);
      return admitReview(bytes, agentHash, policy, nowMs);
    },
    verifyStanding(reviewDigest) {
      const session = ledger.sessionOf(reviewDigest);
      if (!session) return refuse('review_missing', 'the review that admitted this run is not kept here');
      if (session.state !== 'allowed') {
        refuse('review_revoked', `the review that admitted this run is ${session.state}`);
      }
    },
  };
}
