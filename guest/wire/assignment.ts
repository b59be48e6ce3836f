import type { KeyObject } from 'node:crypto';
import { sign, verify } from 'node:crypto';
import { z } from 'zod';
import { EvaluatorError } from '../errors.ts';
import { decodeCanonical } from './canonical.ts';
import { digest } from './digest.ts';
import { keyProviderSchema, measurementSchema, vmShapeSchema } from './measurement.ts';
import { routingSchema } from './model-request.ts';
import { signerSchema } from './plan.ts';
import { ed25519Key, type PlanRoot, signedBytes, verifySigner } from './plan-signature.ts';
import {
  ed25519Signature,
  id,
  imageDigestRef,
  int,
  parseSchema,
  pem,
  positiveInt,
  sha256,
} from './scalars.ts';

const CONTEXT = 'cvm-evaluator/assignment/v1';
export const MAX_ASSIGNMENT_BYTES = 128 * 1024;
/** How long a review may take from the assignment's issue to its report (spec/09). */
export const REVIEW_WINDOW_MS = 30 * 60_000;
/** Of the guest's clock, at the start. */
const SKEW_MS = 5 * 60_000;

/** An https origin: scheme, host and port, nothing after. */
export const apiBaseUrl = z
  .string()
  .max(512)
  .regex(/^https:\/\/[A-Za-z0-9.[\]:-]+$/, 'must be https://host[:port]');
/** A path below the origin, without query, dot segments or empty segments. */
const fetchPath = z
  .string()
  .max(512)
  .regex(/^\/review\/v1(?:\/(?!\.{1,2}(?:\/|$))[A-Za-z0-9._~%-]+)+$/, 'must be a path below /review/v1/');

/** The challenge's signed order for one review (spec/09). */
export const assignmentSchema = z.strictObject({
  challenge_id: id,
  signer: signerSchema,
  api_base_url: apiBaseUrl,
  server_ca_pem: pem,
  session_id: id,
  assignment_id: id,
  /** 1 for a session's first. */
  attempt: positiveInt.max(1000),
  submission_id: id,
  artifact: z.strictObject({
    agent_hash: sha256,
    zip_sha256: sha256,
    zip_size_bytes: positiveInt,
    fetch_path: fetchPath,
  }),
  rules: z.strictObject({ snapshot_sha256: sha256, revision_id: id, fetch_path: fetchPath }),
  policy: z.strictObject({
    model: id,
    routing: routingSchema,
    /** SHA-256 of the system message's UTF-8 bytes. */
    prompt_sha256: sha256,
    tool_schema_sha256: sha256,
    verifier_version: id,
  }),
  similarity: z.strictObject({ corpus_sha256: sha256, fetch_path: fetchPath }),
  review_app: z.strictObject({
    image_ref: imageDigestRef,
    compose_hash: sha256,
    measurement: measurementSchema,
    key_provider: keyProviderSchema,
    vm_shape: vmShapeSchema,
  }),
  review_nonce: id,
  submission_received_at_ms: int,
  issued_at_ms: int,
  expires_at_ms: int,
  session_token_sha256: sha256,
  assignment_signature: ed25519Signature,
});
export type Assignment = z.infer<typeof assignmentSchema>;
type UnsignedAssignment = Omit<Assignment, 'assignment_signature'>;

function inconsistency(assignment: Assignment): string | null {
  const { artifact, review_app: app, policy } = assignment;
  if (artifact.agent_hash !== artifact.zip_sha256)
    return 'artifact.agent_hash: differs from artifact.zip_sha256, which it is';
  if (app.compose_hash !== app.measurement.compose_hash)
    return 'review_app.compose_hash: differs from measurement.compose_hash';
  if (policy.routing.order[0] !== policy.routing.only[0])
    return 'policy.routing.only: names another provider than order';
  if (assignment.submission_received_at_ms > assignment.issued_at_ms)
    return 'submission_received_at_ms: is after issued_at_ms';
  const window = assignment.expires_at_ms - assignment.issued_at_ms;
  if (window <= 0 || window > REVIEW_WINDOW_MS)
    return 'expires_at_ms: must be after issued_at_ms, by at most 30 minutes';
  return null;
}

/**
 * Reads an assignment: canonical, closed, and the rules between its fields. Says nothing about who signed
 * it: see `verifyAssignment`.
 * @throws json_*, schema_invalid, assignment_inconsistent.
 */
export function parseAssignment(bytes: Uint8Array): Assignment {
  const assignment = parseSchema(
    assignmentSchema,
    decodeCanonical(bytes, MAX_ASSIGNMENT_BYTES),
    'assignment',
  );
  const problem = inconsistency(assignment);
  if (problem !== null) throw new EvaluatorError('assignment_inconsistent', `assignment: ${problem}`);
  return assignment;
}

/** The assignment as its signature covers it. */
export function unsignedAssignment(assignment: Assignment): UnsignedAssignment {
  const { assignment_signature: _, ...rest } = assignment;
  return rest;
}

/** The digest of the assignment without its signature: what a review is bound to. */
export function assignmentDigest(assignment: Assignment): string {
  return digest(unsignedAssignment(assignment));
}

/** Signs an assignment with its signer's key. */
export function signAssignment(assignment: UnsignedAssignment, signerKey: KeyObject): Assignment {
  const signature = sign(null, signedBytes(CONTEXT, assignment), signerKey).toString('hex');
  return { ...assignment, assignment_signature: signature };
}

/**
 * The assignment was issued under the measured root, as a plan is (spec/01).
 * @throws assignment_challenge_mismatch, signer_signature_invalid, signer_outside_window,
 *   assignment_signature_invalid.
 */
export function verifyAssignment(assignment: Assignment, root: PlanRoot): void {
  const { signer } = assignment;
  if (assignment.challenge_id !== root.challengeId || signer.challenge_id !== root.challengeId) {
    throw new EvaluatorError(
      'assignment_challenge_mismatch',
      `assignment: challenge_id is "${assignment.challenge_id}", this guest serves "${root.challengeId}"`,
    );
  }
  verifySigner({ name: 'assignment', signer, issuedAtMs: assignment.issued_at_ms }, root);
  const signed = signedBytes(CONTEXT, unsignedAssignment(assignment));
  const signature = Buffer.from(assignment.assignment_signature, 'hex');
  if (!verify(null, signed, ed25519Key(signer.public_key), signature)) {
    throw new EvaluatorError(
      'assignment_signature_invalid',
      "assignment: assignment_signature is not the signer's",
    );
  }
}

/**
 * The review may still be done at `nowMs` (ms since the epoch, the guest's clock; the challenge judges by its
 * own). Five minutes of clock difference are allowed at the start.
 * @throws assignment_not_yet_valid, assignment_expired.
 */
export function verifyAssignmentWindow(assignment: Assignment, nowMs: number): void {
  if (!Number.isFinite(nowMs) || nowMs + SKEW_MS < assignment.issued_at_ms) {
    throw new EvaluatorError(
      'assignment_not_yet_valid',
      'assignment: issued_at_ms lies in the future of this clock',
    );
  }
  if (nowMs >= assignment.expires_at_ms) {
    throw new EvaluatorError(
      'assignment_expired',
      `assignment: expired at ${new Date(assignment.expires_at_ms).toISOString()}; ask for a retry`,
    );
  }
}

/** What a session token says: `<assignment id>.<mac>`. @throws review_token_malformed, without the token. */
export function parseSessionToken(token: string): { assignmentId: string; mac: string } {
  const found = /^([\x21-\x7e]{1,128})\.([0-9a-f]{64})$/.exec(token);
  if (!found?.[1] || !found[2])
    throw new EvaluatorError(
      'review_token_malformed',
      'REVIEW_SESSION_TOKEN: must be <assignment id>.<64 hex digits>',
    );
  return { assignmentId: found[1], mac: found[2] };
}

/** The guest's routes at the challenge, below api_base_url. */
export const reviewRoutes = (assignmentId: string) => {
  const base = `/review/v1/assignments/${encodeURIComponent(assignmentId)}`;
  return {
    assignment: base,
    modelCallStarted: `${base}/model-call-started`,
    report: `${base}/report`,
    failure: `${base}/failure`,
  };
};
