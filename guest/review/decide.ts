import type { Assignment } from '../wire/assignment.ts';
import { observeModel } from '../wire/model-observation.ts';
import type { ReviewCore } from '../wire/review.ts';
import { type Decision, decide } from '../wire/review-decision.ts';
import type { Examined } from './examine.ts';
import type { PlannedRequest } from './request.ts';
import type { Similarity } from './static/similarity.ts';

/** A decision with what it was made of. */
export interface Weighed {
  model: ReviewCore['model'];
  similarity: Similarity;
  decision: Decision;
}

/** Step 7: reads the reply, and decides as the challenge will again. */
export function weigh(
  { policy }: Pick<Assignment, 'policy'>,
  { bytes, findings }: Pick<PlannedRequest, 'bytes' | 'findings'>,
  reply: Buffer | null,
  { similarity }: Pick<Examined, 'similarity'>,
): Weighed {
  const { reading, observation } = observeModel({ request: bytes, response: reply }, policy.model);
  const decision = decide({ findings, similarity: similarity.containment, model: reading });
  return { model: observation, similarity, decision };
}
