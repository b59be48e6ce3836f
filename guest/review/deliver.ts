import { EvaluatorError } from '../errors.ts';
import { SMALL_REPLY } from '../net/challenge-client.ts';
import { type Assignment, reviewRoutes } from '../wire/assignment.ts';
import { encodeCanonical } from '../wire/canonical.ts';
import { parseForeignJson } from '../wire/foreign-json.ts';
import type { ReviewFailure, ReviewSubmission } from '../wire/review.ts';
import { askPatiently, statusOf } from './ask.ts';
import type { ReviewHost } from './config.ts';

/** A failure notice is a courtesy: it does not hold up the end. */
const FAILURE_PATIENCE_MS = 5_000;

/**
 * Step 9: POSTs the exact bytes of the report until there is a receipt or the assignment has expired.
 * @throws report_refused, report_undelivered.
 */
export async function deliverReport(
  order: Assignment,
  report: ReviewSubmission,
  host: ReviewHost,
): Promise<void> {
  const reply = await askPatiently(
    {
      method: 'POST',
      path: reviewRoutes(order.assignment_id).report,
      body: encodeCanonical(report),
      maxReplyBytes: SMALL_REPLY,
      untilMs: order.expires_at_ms,
      onAttempt: (attempt, status) =>
        host.journal.write({ event: 'delivery', what: 'report', attempt, status }),
    },
    host,
  );
  if (reply?.status === 202 || reply?.status === 200) {
    const receipt = parseForeignJson(reply.body, { maxBytes: SMALL_REPLY, maxDepth: 4 });
    host.journal.write({ event: 'receipt', receipt });
    return;
  }
  const isLast = reply !== null && reply.status < 500 && reply.status !== 429;
  throw new EvaluatorError(
    isLast ? 'report_refused' : 'report_undelivered',
    `report: ${statusOf(reply)}${isLast ? '' : ' before the assignment expired'}`,
  );
}

/** Tells the challenge that there will be no report, and why. Never throws: the exit code says it too. */
export async function deliverFailure(error: EvaluatorError, host: ReviewHost): Promise<void> {
  const { assignmentId } = host.inputs;
  const failure: ReviewFailure = {
    assignment_id: assignmentId,
    planned_request_sha256: host.progress.plannedRequestSha256,
    reason_code: error.code,
  };
  try {
    await askPatiently(
      {
        method: 'POST',
        path: reviewRoutes(assignmentId).failure,
        body: encodeCanonical(failure),
        maxReplyBytes: SMALL_REPLY,
        untilMs: host.nowMs() + FAILURE_PATIENCE_MS,
        onAttempt: (attempt, status) =>
          host.journal.write({ event: 'delivery', what: 'failure', attempt, status }),
      },
      host,
    );
  } catch {
    // Nobody is left to tell.
  }
}
