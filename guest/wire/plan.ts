import { z } from 'zod';
import { EvaluatorError } from '../errors.ts';
import { decodeCanonical } from './canonical.ts';
import { digest } from './digest.ts';
import { keyProviderSchema, measurementSchema, vmShapeSchema } from './measurement.ts';
import {
  ed25519PublicKey,
  ed25519Signature,
  envName,
  httpsUrl,
  id,
  imageDigestRef,
  imageRef,
  int,
  parseSchema,
  pem,
  positiveInt,
  sha256,
  taskId,
} from './scalars.ts';

/** 128 KiB: the largest plan that still fits the guest's environment (spec/06). */
export const MAX_PLAN_BYTES = 128 * 1024;

export const signerSchema = z.strictObject({
  public_key: ed25519PublicKey,
  challenge_id: id,
  not_before_ms: int,
  not_after_ms: int,
  root_signature: ed25519Signature,
});
export type Signer = z.infer<typeof signerSchema>;

export const policySchema = z.enum(['vote', 'mean']);
export type Policy = z.infer<typeof policySchema>;
export const verifierModeSchema = z.enum(['restart', 'artifact', 'live']);
export type VerifierMode = z.infer<typeof verifierModeSchema>;
export const networkSchema = z.enum(['none', 'inference', 'open']);
export type Network = z.infer<typeof networkSchema>;

export const planTaskSchema = z.strictObject({
  task_id: taskId,
  task_digest: sha256,
  image: imageRef,
  verifier: verifierModeSchema,
  network: networkSchema,
  /** null: the mechanism's. */
  budgets: z.strictObject({ cpu_budget_ms: positiveInt, wall_budget_ms: positiveInt }).nullable(),
});
export type PlanTask = z.infer<typeof planTaskSchema>;

export const planSchema = z.strictObject({
  schema_version: z.literal(2),
  challenge_id: id,
  signer: signerSchema,
  eval_run_id: id,
  submission_id: id,
  ranked: z.boolean(),
  track: id,
  policy: policySchema.nullable(),
  selection_seed: sha256,
  cache_digest: sha256,
  toolchain_digest: sha256.nullable(),
  agent_runtime_image: imageRef.nullable(),
  max_grants: positiveInt.max(16),
  authorizing_review_digest: sha256.nullable(),
  agent: z.strictObject({
    agent_hash: sha256,
    zip_size_bytes: positiveInt,
    artifact_url: httpsUrl,
    env: z.array(envName).max(64),
  }),
  mechanism_digest: sha256,
  r: positiveInt.max(64),
  tasks: z.array(planTaskSchema).min(1).max(1024),
  /** Refused outside 1..64, never clamped. */
  n_concurrent: positiveInt.max(64),
  eval_app: z.strictObject({
    image_ref: imageDigestRef,
    compose_hash: sha256,
    measurement: measurementSchema,
    key_provider: keyProviderSchema,
    vm_shape: vmShapeSchema,
  }),
  server_ca_pem: pem,
  key_release: z.strictObject({ url: httpsUrl, nonce: id }).nullable(),
  result: z.strictObject({ url: httpsUrl }),
  score_nonce: id,
  run_token_sha256: sha256,
  issued_at_ms: int,
  expires_at_ms: int,
  plan_signature: ed25519Signature,
});
export type EvalPlan = z.infer<typeof planSchema>;

function inconsistency(plan: EvalPlan): string | null {
  const ids = plan.tasks.map((task) => task.task_id);
  if (ids.some((name, i) => i > 0 && name <= (ids[i - 1] ?? '')))
    return 'tasks: must be strictly ascending by task_id';
  if (plan.issued_at_ms >= plan.expires_at_ms) return 'expires_at_ms: must be after issued_at_ms';
  if (plan.eval_app.compose_hash !== plan.eval_app.measurement.compose_hash)
    return 'eval_app.compose_hash: differs from measurement.compose_hash';
  if (plan.key_release?.nonce === plan.score_nonce) return 'key_release.nonce: must differ from score_nonce';
  if (
    plan.key_release &&
    !plan.key_release.url.endsWith(`/key-release/v1/runs/${encodeURIComponent(plan.eval_run_id)}`)
  ) {
    return 'key_release.url: must end in /key-release/v1/runs/{eval_run_id}';
  }
  if (!plan.result.url.endsWith(`/evaluation/v1/runs/${encodeURIComponent(plan.eval_run_id)}/result`)) {
    return 'result.url: must end in /evaluation/v1/runs/{eval_run_id}/result';
  }
  if (plan.track === 'terminal-bench' ? plan.policy === null : plan.policy !== null) {
    return 'policy: vote or mean on terminal-bench, null on every other track';
  }
  if (!plan.ranked) return null;
  if (plan.key_release === null) return 'key_release: a ranked plan needs a sealed cache and a key release';
  if (plan.authorizing_review_digest === null)
    return 'authorizing_review_digest: a ranked plan names the review that admitted it';
  if (plan.tasks.some((task) => task.network === 'open')) return 'tasks.network: never open in a ranked plan';
  return null;
}

/**
 * Reads a plan: canonical bytes, closed schema, and the rules between its fields (spec/01).
 * Says nothing about who signed it: see `verifyPlanSignatures`.
 * @throws json_*, schema_invalid, plan_inconsistent.
 */
export function parsePlan(bytes: Uint8Array): EvalPlan {
  const plan = parseSchema(planSchema, decodeCanonical(bytes, MAX_PLAN_BYTES), 'plan');
  const problem = inconsistency(plan);
  if (problem !== null) throw new EvaluatorError('plan_inconsistent', `plan: ${problem}`);
  return plan;
}

/** The plan as its signature covers it. */
export function unsignedPlan(plan: EvalPlan): Omit<EvalPlan, 'plan_signature'> {
  const { plan_signature: _, ...rest } = plan;
  return rest;
}

/** `plan_digest`: the digest of the plan without its signature. */
export function planDigest(plan: EvalPlan): string {
  return digest(unsignedPlan(plan));
}
