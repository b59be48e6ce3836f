import { EvaluatorError } from '../../guest/errors.ts';
import { type Assignment, assignmentDigest } from '../../guest/wire/assignment.ts';
import { digest } from '../../guest/wire/digest.ts';
import type { ReviewCore } from '../../guest/wire/review.ts';
import { requireEqual } from '../verify/require-equal.ts';

/** What binds a review to its assignment: each field of the core that repeats one of it. */

/** @throws review_ids_mismatch. */
export function verifyIds(core: ReviewCore, assignment: Assignment): void {
  const fields = [
    'challenge_id',
    'session_id',
    'assignment_id',
    'attempt',
    'submission_id',
    'review_nonce',
  ] as const;
  for (const field of fields) {
    requireEqual('review_ids_mismatch', `review: ${field}`, core[field], assignment[field]);
  }
}

/** @throws review_assignment_mismatch. */
export function verifyAssignmentDigest(core: ReviewCore, assignment: Assignment): void {
  const expected = assignmentDigest(assignment);
  requireEqual('review_assignment_mismatch', 'review: assignment_digest', core.assignment_digest, expected);
}

/** @throws review_artifact_mismatch. */
export function verifyReviewed({ artifact }: ReviewCore, assignment: Assignment): void {
  for (const field of ['agent_hash', 'zip_sha256', 'zip_size_bytes'] as const) {
    const expected = assignment.artifact[field];
    requireEqual('review_artifact_mismatch', `review: artifact.${field}`, artifact[field], expected);
  }
}

/** @throws review_rules_mismatch. */
export function verifyRules({ rules }: ReviewCore, assignment: Assignment): void {
  for (const field of ['snapshot_sha256', 'revision_id'] as const) {
    requireEqual('review_rules_mismatch', `review: rules.${field}`, rules[field], assignment.rules[field]);
  }
}

/** @throws review_policy_mismatch. */
export function verifyPolicy({ policy }: ReviewCore, assignment: Assignment): void {
  const { routing, ...pinned } = assignment.policy;
  const expected = { ...pinned, routing_sha256: digest(routing) };
  requireEqual('review_policy_mismatch', 'review: policy', policy, expected);
}

/** @throws review_corpus_mismatch. */
export function verifyCorpus({ similarity }: ReviewCore, assignment: Assignment): void {
  const { corpus_sha256: expected } = assignment.similarity;
  requireEqual(
    'review_corpus_mismatch',
    'review: similarity.corpus_sha256',
    similarity.corpus_sha256,
    expected,
  );
}

/**
 * A model was asked if, and only if, this very request was announced before: else a guest's owner could have
 * several asked and tell of one.
 * @throws review_call_mismatch.
 */
export function verifyModelCall({ model }: ReviewCore, announcedRequest: string | null): void {
  const asked = model.outcome === 'not_asked' ? null : model.request_sha256;
  requireEqual(
    'review_call_mismatch',
    'review: request of the model that was announced',
    asked,
    announcedRequest,
  );
}

/** Issued, then started, then finished, then received (spec/09). @throws review_times_invalid. */
export function verifyTimes(core: ReviewCore, assignment: Assignment, receivedAtMs: number): void {
  const code = 'review_times_invalid';
  requireEqual(code, 'review: issued_at_ms', core.issued_at_ms, assignment.issued_at_ms);
  const { submission_received_at_ms: submitted } = assignment;
  requireEqual(code, 'review: submission_received_at_ms', core.submission_received_at_ms, submitted);
  const times = [assignment.issued_at_ms, core.started_at_ms, core.finished_at_ms, receivedAtMs];
  if (receivedAtMs >= assignment.expires_at_ms || times.some((time, i) => time < (times[i - 1] ?? 0))) {
    const said = 'issued, started, finished, received';
    throw new EvaluatorError(
      code,
      `review: not in the order ${said}, within its window: ${times.join(', ')}`,
    );
  }
}
