import type { Assignment } from '../wire/assignment.ts';
import { type ModelReading, NOT_ASKED, readModelReply } from '../wire/model-reply.ts';
import { type Decision, decide } from '../wire/review-decision.ts';
import type { Examined } from './examine.ts';
import type { PlannedRequest } from './request.ts';
import type { Similarity } from './static/similarity.ts';

/** A decision with what it was made of. */
export interface Weighed {
  reading: ModelReading;
  similarity: Similarity;
  decision: Decision;
}

/** Step 7: reads the reply, and decides as the challenge will again. */
export function weigh(
  { policy }: Pick<Assignment, 'policy'>,
  { findings }: Pick<PlannedRequest, 'findings'>,
  reply: Buffer | null,
  { similarity }: Pick<Examined, 'similarity'>,
): Weighed {
  const reading = reply === null ? NOT_ASKED : readModelReply(reply, policy.model);
  const decision = decide({ findings, similarity: similarity.containment, model: reading });
  return { reading, similarity, decision };
}
