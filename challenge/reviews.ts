import { EvaluatorError } from '../guest/errors.ts';
import { digest } from '../guest/wire/digest.ts';

/** What a run of an agent is admitted by. */
export interface ReviewStore {
  /**
   * The agent's review, verified anew from its stored bytes.
   * @returns its digest: the plan's authorizing_review_digest.
   * @throws review_missing, review_not_allowed, review_revoked, review_stale, review_from_future,
   *   review_bytes_missing, review_bytes_changed, and whatever a report is refused with.
   */
  admit(agentHash: string, nowMs: number): Promise<{ digest: string }>;
  /** The review that admitted a run still stands. @throws review_revoked, review_missing. */
  verifyStanding(reviewDigest: string): void;
}

function noneKept(): never {
  throw new EvaluatorError(
    'review_missing',
    'challenge: a ranked run needs a review, and none are kept here',
  );
}

/** For a challenge without reviews: it admits nobody, so nothing ranked is prepared, and none that was is accepted. */
export const NO_REVIEWS: ReviewStore = { admit: async () => noneKept(), verifyStanding: noneKept };

/**
 * At a desk, where a ranked run of one's own agent needs no review: every plan names a statement that says so
 * in place of a review's digest. No challenge that scores others is given this.
 */
export const UNREVIEWED: ReviewStore = {
  admit: async (agentHash) => ({
    digest: digest({ statement: 'local run: this agent was not reviewed', agent_hash: agentHash }),
  }),
  verifyStanding: () => undefined,
};
