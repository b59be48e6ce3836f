import { EvaluatorError } from '../errors.ts';
import { SMALL_REPLY } from '../net/challenge-client.ts';
import { type Assignment, reviewRoutes } from '../wire/assignment.ts';
import { encodeCanonical } from '../wire/canonical.ts';
import type { ModelCallStarted } from '../wire/review.ts';
import { askPatiently, PATIENCE_MS, statusOf } from './ask.ts';
import type { ReviewHost } from './config.ts';
import type { PlannedRequest } from './request.ts';

/**
 * Step 5: names the one request to the challenge, and waits for its receipt. From here on a session without a
 * report counts as escalate, so that no verdict can be waited for and thrown away. A local review without a model
 * announces none.
 * @throws model_call_unannounced, model_call_refused.
 */
export async function announce(
  { assignment_id }: Assignment,
  { sha256 }: PlannedRequest,
  host: ReviewHost,
): Promise<void> {
  if (host.model === null) return;
  host.progress.plannedRequestSha256 = sha256;
  const notice: ModelCallStarted = { assignment_id, planned_request_sha256: sha256 };
  const reply = await askPatiently(
    {
      method: 'POST',
      path: reviewRoutes(assignment_id).modelCallStarted,
      body: encodeCanonical(notice),
      maxReplyBytes: SMALL_REPLY,
      untilMs: host.nowMs() + PATIENCE_MS,
    },
    host,
  );
  if (reply && reply.status >= 200 && reply.status < 300) return;
  const isRefused = reply !== null && reply.status >= 400 && reply.status < 500 && reply.status !== 429;
  throw new EvaluatorError(
    isRefused ? 'model_call_refused' : 'model_call_unannounced',
    `model-call-started: ${statusOf(reply)}; no model was asked`,
  );
}
