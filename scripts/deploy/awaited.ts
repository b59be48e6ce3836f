import { timingSafeEqual } from 'node:crypto';
import { VM_SHAPES } from '../../compose/known-measurements.ts';
import type { Composed } from '../../compose/parse.ts';
import { EvaluatorError } from '../../guest/errors.ts';
import { apiBaseUrl, parseSessionToken, reviewRoutes } from '../../guest/wire/assignment.ts';
import { sha256Hex } from '../../guest/wire/digest.ts';
import { type EvalPlan, parsePlan } from '../../guest/wire/plan.ts';
import { verifyPlanSignatures, verifyPlanWindow } from '../../guest/wire/plan-signature.ts';
import { parseSchema, pem } from '../../guest/wire/scalars.ts';

/** Who says what came of a deployment, and how they are asked. */
export interface Awaited {
  role: Composed['role'];
  /** Of the run's or session's state. */
  url: string;
  /** A bearer, never logged. */
  token: string;
  /** The only issuer that is believed; null: the public ones. */
  caPem: string | null;
  /** Of the RESULT that a log may have; null: a review prints none. */
  evalRunId: string | null;
}

/** What would be deployed, as far as a plan orders it. */
export interface Deployed {
  composed: Composed;
  composeHash: string;
  instanceType: string;
}

function verifyOrdered(plan: EvalPlan, { composed, composeHash, instanceType }: Deployed): void {
  const { eval_app: app } = plan;
  const shape = VM_SHAPES[instanceType];
  const refuse = (what: string, ours: string, planned: string) =>
    new EvaluatorError(
      'deploy_not_planned',
      `${what}: would be ${ours}, the plan orders ${planned}; nothing was created`,
    );
  if (app.image_ref !== composed.imageRef) throw refuse('image', composed.imageRef, app.image_ref);
  if (app.compose_hash !== composeHash) throw refuse('compose hash', composeHash, app.compose_hash);
  if (shape?.vcpu !== app.vm_shape.vcpu || shape.memory_mb !== app.vm_shape.memory_mb)
    throw refuse('shape', instanceType, `${app.vm_shape.vcpu} vCPU, ${app.vm_shape.memory_mb} MiB`);
}

/**
 * The signed plan among the variables: everything that its guest would refuse it for, asked before a VM is paid.
 * @throws json_*, schema_invalid, plan_*, signer_*, run_token_mismatch, deploy_not_planned.
 */
function awaitRun(deployed: Deployed, values: Readonly<Record<string, string>>, nowMs: number): Awaited {
  const { EVAL_PLAN = '', EVAL_RUN_TOKEN = '' } = values;
  const plan = parsePlan(Buffer.from(EVAL_PLAN, 'base64url'));
  verifyPlanSignatures(plan, deployed.composed.planRoot);
  verifyPlanWindow(plan, nowMs);
  const tokenHash = Buffer.from(sha256Hex(EVAL_RUN_TOKEN), 'hex');
  if (!timingSafeEqual(tokenHash, Buffer.from(plan.run_token_sha256, 'hex')))
    throw new EvaluatorError('run_token_mismatch', 'EVAL_RUN_TOKEN: not the token of this plan');
  verifyOrdered(plan, deployed);
  return {
    role: 'eval',
    url: plan.result.url.replace(/\/result$/, ''),
    token: EVAL_RUN_TOKEN,
    caPem: plan.server_ca_pem,
    evalRunId: plan.eval_run_id,
  };
}

/** @throws schema_invalid, review_token_malformed. */
function awaitSession(values: Readonly<Record<string, string>>): Awaited {
  const { REVIEW_API_BASE_URL, REVIEW_SESSION_TOKEN = '', REVIEW_SERVER_CA } = values;
  const { assignmentId } = parseSessionToken(REVIEW_SESSION_TOKEN);
  const base = parseSchema(apiBaseUrl, REVIEW_API_BASE_URL, 'REVIEW_API_BASE_URL');
  return {
    role: 'review',
    url: `${base}${reviewRoutes(assignmentId).assignment}/state`,
    token: REVIEW_SESSION_TOKEN,
    caPem:
      REVIEW_SERVER_CA === undefined
        ? null
        : parseSchema(pem, Buffer.from(REVIEW_SERVER_CA, 'base64url').toString('latin1'), 'REVIEW_SERVER_CA'),
    evalRunId: null,
  };
}

/**
 * Reads from the variables who judges what is deployed.
 * @throws json_*, schema_invalid, plan_*, signer_*, run_token_mismatch, deploy_not_planned, review_token_malformed.
 */
export function readAwaited(
  deployed: Deployed,
  values: Readonly<Record<string, string>>,
  nowMs: number,
): Awaited {
  return deployed.composed.role === 'eval' ? awaitRun(deployed, values, nowMs) : awaitSession(values);
}
