import type { IncomingMessage } from 'node:http';
import type { Reply } from '../http/replies.ts';
import { PARKED_FOR_MS } from '../ledger/parking.ts';
import {
  createReviewAcceptor,
  type ReviewAcceptor,
  type ReviewJudgement,
  type ReviewPolicy,
} from './accept.ts';
import type { ReviewLedger } from './ledger.ts';
import { createReviewRoutes, type ReviewDocuments } from './routes.ts';

/** What a challenge needs to review. */
export interface ReviewOptions {
  ledger: ReviewLedger;
  policy: ReviewPolicy;
  documents: ReviewDocuments;
  /** Milliseconds since the epoch. */
  now: () => number;
  /** One event a call, for a log of JSON lines; without secrets. */
  log: (event: { event: string; [key: string]: unknown }) => void;
}

export interface ReviewService {
  acceptor: ReviewAcceptor;
  route: (request: IncomingMessage) => Promise<Reply>;
  /** Closes what waited too long, and judges what has a receipt and no judgement. */
  upkeep(): void;
}

function judgedEvent(sessionId: string, outcome: ReviewJudgement | Error) {
  if (outcome instanceof Error) {
    return { event: 'verifier_failed', session_id: sessionId, detail: outcome.message };
  }
  const [said, reason] =
    outcome.kind === 'verified' ? [outcome.review.verdict, null] : [outcome.kind, outcome.reason];
  return { event: 'review_judged', session_id: sessionId, outcome: said, reason_code: reason };
}

/** Reviews on an existing ledger: serves guests, receives, judges. */
export function createReviewService(options: ReviewOptions): ReviewService {
  const { ledger, now, log } = options;
  const acceptor = createReviewAcceptor({
    ...options,
    onJudged: (sessionId, outcome) => log(judgedEvent(sessionId, outcome)),
  });
  return {
    acceptor,
    route: createReviewRoutes({ ...options, acceptor }),
    upkeep: () => {
      ledger.closeOverdue(now(), PARKED_FOR_MS);
      acceptor.enqueueOpen();
    },
  };
}
