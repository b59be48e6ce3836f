import { type Code, EvaluatorError, isEvaluatorError } from '../../guest/errors.ts';
import type { Allowlist } from '../../guest/wire/measurement.ts';
import type { PlanRoot } from '../../guest/wire/plan-signature.ts';
import type { CollateralSource } from '../accept.ts';
import { createSerialQueue } from '../serial-queue.ts';
import { failedCheck } from '../verify/checklist.ts';
import { isOutage } from '../verify/outage.ts';
import type { ReviewFile, ReviewLedger, Session } from './ledger.ts';
import { quoteOf } from './quote-of.ts';
import { type REVIEW_CHECKS, type ReviewBytes, type VerifiedReview, verifyReview } from './verify.ts';

/** What a report is judged by; nothing of it comes from the report. */
export interface ReviewPolicy {
  /** The root that assignments are signed under. */
  root: PlanRoot;
  /** Of the review image: no eval image is in it (spec/06). */
  allowlist: Allowlist;
  rootDer: Buffer;
  acceptedTcb: ReadonlySet<string>;
  collateral: CollateralSource;
}

export type ReviewJudgement =
  | { kind: 'verified'; review: VerifiedReview }
  | { kind: 'trust_failed'; reason: Code }
  /** The challenge cannot judge now: it is tried again. */
  | { kind: 'verifier_unavailable'; reason: Code };

/** The bytes of a review. @throws review_bytes_missing when some were never stored, or no longer are. */
export function bytesOf({ assignment, announcement, report }: ReviewFile): ReviewBytes {
  if (!assignment || !report) {
    throw new EvaluatorError('review_bytes_missing', 'review: its assignment or report is not in the ledger');
  }
  return {
    assignmentBytes: assignment.assignmentBytes,
    reportBytes: report.reportBytes,
    announcedRequest: announcement?.plannedRequestSha256 ?? null,
    receivedAtMs: report.receivedAtMs,
  };
}

/** Checks of the assignment, which is this challenge's own: that it does not hold any more says nothing of a report. */
const OWN_CHECKS: ReadonlySet<string> = new Set<(typeof REVIEW_CHECKS)[number]>([
  'assignment_document',
  'assignment_signatures',
]);

/** Judges bytes at `nowMs`; writes nothing. */
export async function judgeReview(
  bytes: ReviewBytes,
  agentHash: string,
  policy: ReviewPolicy,
  nowMs: number,
): Promise<ReviewJudgement> {
  let collateral: unknown;
  try {
    collateral = await policy.collateral(quoteOf(bytes.reportBytes));
  } catch (error) {
    if (!isEvaluatorError(error)) throw error;
    const kind = isOutage(error.code) ? 'verifier_unavailable' : 'trust_failed';
    return { kind, reason: error.code };
  }
  const { checks, review } = await verifyReview({ ...bytes, ...policy, agentHash, collateral, nowMs });
  if (review) return { kind: 'verified', review };
  const failed = failedCheck(checks);
  const reason = failed?.code ?? 'verifier_failed';
  const isOurs = isOutage(reason) || (failed !== undefined && OWN_CHECKS.has(failed.name));
  return { kind: isOurs ? 'verifier_unavailable' : 'trust_failed', reason };
}

/** Writes a judgement into the ledger; a parked session that cannot be judged yet stays as it is. */
function settleReview(
  ledger: ReviewLedger,
  { sessionId, state }: Session,
  judgement: ReviewJudgement,
  nowMs: number,
): void {
  if (judgement.kind === 'verifier_unavailable') {
    if (state !== 'parked') ledger.park(sessionId, judgement.reason, nowMs);
    return;
  }
  if (judgement.kind === 'trust_failed') {
    ledger.distrust(sessionId, judgement.reason, nowMs);
    return;
  }
  const { verdict, reviewDigest } = judgement.review;
  try {
    ledger.conclude(sessionId, { verdict, reviewDigest }, nowMs);
  } catch (error) {
    if (!isEvaluatorError(error, 'review_nonce_consumed')) throw error;
    ledger.distrust(sessionId, error.code, nowMs);
  }
}

export interface ReviewAcceptor {
  /** Judges a session's report after those before it; does not wait. */
  enqueue(sessionId: string): void;
  /** Enqueues whatever has a receipt and no judgement: at start, and to retry parked ones. */
  enqueueOpen(): void;
  idle(): Promise<void>;
}

export interface ReviewAcceptorOptions {
  ledger: ReviewLedger;
  policy: ReviewPolicy;
  /** Milliseconds since the epoch. */
  now: () => number;
  /** Told of each judgement, and of a verifier that failed: its session stays open and is tried again. */
  onJudged: (sessionId: string, outcome: ReviewJudgement | EvaluatorError) => void;
}

/** One judgement at a time. */
export function createReviewAcceptor(options: ReviewAcceptorOptions): ReviewAcceptor {
  const { ledger, policy, now, onJudged } = options;
  const judgeOne = async (sessionId: string): Promise<void> => {
    try {
      const file = ledger.file(sessionId);
      if (!file || (file.session.state !== 'received' && file.session.state !== 'parked')) return;
      const judgement = await judgeReview(bytesOf(file), file.session.agentHash, policy, now());
      settleReview(ledger, file.session, judgement, now());
      onJudged(sessionId, judgement);
    } catch (cause) {
      const message = cause instanceof Error ? cause.message : 'unknown';
      onJudged(sessionId, new EvaluatorError('verifier_failed', `verifier: ${message}`, { cause }));
    }
  };
  const { enqueue, idle } = createSerialQueue(judgeOne);
  return {
    enqueue,
    idle,
    enqueueOpen: () => {
      for (const { sessionId } of ledger.sessionsIn(['received', 'parked'])) enqueue(sessionId);
    },
  };
}
