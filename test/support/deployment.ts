import { composeHash } from '../../compose/app-compose.ts';
import { type Composed, renderComposed } from '../../compose/parse.ts';
import { encodeCanonical } from '../../guest/wire/canonical.ts';
import { sha256Hex } from '../../guest/wire/digest.ts';
import type { EvalPlan } from '../../guest/wire/plan.ts';
import { planKeys, signedPlan } from './plan.ts';

export const IMAGE = `ghcr.io/owner/evaluator@sha256:${'a'.repeat(64)}`;
export const KEY_PROVIDER_ID = 'c0ffee';
export const RUN_TOKEN = 'run-token-that-nobody-may-see';
export const MODEL_KEY = 'model-key-that-nobody-may-see';

/** What a test deploys: a plan and the compose that it orders. */
export interface Planned {
  composed: Composed;
  plan: EvalPlan;
  /** Of the compose, with their values. */
  values: Record<string, string>;
  appCompose: Buffer;
}

/** A plan that orders tdx.small with one agent variable, valid from now on for an hour. */
export function planned(overrides: Partial<EvalPlan> = {}): Planned {
  const keys = planKeys();
  const composed: Composed = {
    role: 'eval',
    imageRef: IMAGE,
    planRoot: keys.planRoot,
    envNames: ['EVAL_PLAN', 'EVAL_RUN_TOKEN', 'MODEL_KEY'],
    keyProviderId: KEY_PROVIDER_ID,
  };
  const appCompose = renderComposed(composed);
  const base = signedPlan(keys);
  const hash = composeHash(appCompose);
  const now = Date.now();
  const { signer } = signedPlan(keys);
  const plan = signedPlan(keys, {
    // The plan's signer is valid at its own time of issue; the window is judged by this clock.
    signer,
    expires_at_ms: now + 3_600_000,
    run_token_sha256: sha256Hex(RUN_TOKEN),
    eval_app: {
      ...base.eval_app,
      image_ref: IMAGE,
      compose_hash: hash,
      measurement: { ...base.eval_app.measurement, compose_hash: hash },
      vm_shape: { vcpu: 1, memory_mb: 2048 },
    },
    ...overrides,
  });
  const values = {
    EVAL_PLAN: Buffer.from(encodeCanonical(plan)).toString('base64url'),
    EVAL_RUN_TOKEN: RUN_TOKEN,
    MODEL_KEY,
  };
  return { composed, plan, values, appCompose };
}
