import { timingSafeEqual } from 'node:crypto';
import { EvaluatorError } from '../errors.ts';
import {
  type Assignment,
  MAX_ASSIGNMENT_BYTES,
  parseAssignment,
  reviewRoutes,
  verifyAssignment,
  verifyAssignmentWindow,
} from '../wire/assignment.ts';
import { sha256Hex } from '../wire/digest.ts';
import type { ReviewHost } from './config.ts';
import { fetchBytes } from './fetch.ts';
import { OWN_POLICY } from './prompt.ts';

/** It is the one that was asked for, at the address and by the CA that the guest was started with. */
function verifyAsked(assignment: Assignment, { inputs }: ReviewHost): void {
  const asked = [
    ['assignment_id', assignment.assignment_id === inputs.assignmentId],
    ['api_base_url', assignment.api_base_url === inputs.apiBaseUrl],
    ['server_ca_pem', inputs.serverCaPem === null || assignment.server_ca_pem === inputs.serverCaPem],
  ] as const;
  const wrong = asked.find(([, same]) => !same);
  if (wrong)
    throw new EvaluatorError(
      'assignment_mismatch',
      `assignment: ${wrong[0]} is not what this guest was given`,
    );
  const token = Buffer.from(sha256Hex(inputs.token), 'hex');
  if (!timingSafeEqual(token, Buffer.from(assignment.session_token_sha256, 'hex')))
    throw new EvaluatorError('review_token_mismatch', 'REVIEW_SESSION_TOKEN: not the one of this assignment');
}

/** It asks for what this image does. */
function verifyPolicy({ policy }: Assignment): void {
  const fields = Object.keys(OWN_POLICY) as (keyof typeof OWN_POLICY)[];
  const wrong = fields.find((field) => policy[field] !== OWN_POLICY[field]);
  if (wrong)
    throw new EvaluatorError(
      'policy_not_offered',
      `assignment: policy.${wrong} is not the one of this image (${OWN_POLICY[wrong]})`,
    );
}

/**
 * Step 1: the signed assignment, within its window.
 * @throws assignment_unavailable, json_*, schema_invalid, assignment_*, signer_*, review_token_mismatch,
 *   policy_not_offered.
 */
export async function readAssignment(host: ReviewHost): Promise<Assignment> {
  const bytes = await fetchBytes(
    {
      name: 'assignment',
      path: reviewRoutes(host.inputs.assignmentId).assignment,
      maxBytes: MAX_ASSIGNMENT_BYTES,
      code: 'assignment_unavailable',
    },
    host,
  );
  const assignment = parseAssignment(bytes);
  verifyAssignment(assignment, host.planRoot);
  verifyAsked(assignment, host);
  host.progress.serverCaPem = assignment.server_ca_pem;
  verifyAssignmentWindow(assignment, host.nowMs());
  verifyPolicy(assignment);
  return assignment;
}
