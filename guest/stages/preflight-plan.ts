import { timingSafeEqual } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { verifyPlanAgainstMechanism } from '../consensus/plan-mechanism.ts';
import { trackKind } from '../consensus/track-kind.ts';
import { EvaluatorError } from '../errors.ts';
import { openCache } from '../tasks/cache.ts';
import type { TaskCache } from '../tasks/types.ts';
import { sha256Hex } from '../wire/digest.ts';
import { type PinnedMechanism, parseMechanism, trackRules } from '../wire/mechanism.ts';
import { type EvalPlan, parsePlan } from '../wire/plan.ts';
import { verifyPlanSignatures, verifyPlanWindow } from '../wire/plan-signature.ts';
import type { GuestConfig, Host } from './config.ts';
import { verifyPlannedTask } from './trial-task.ts';

/** The signed plan, within its window, handed in with the token it names. */
export function readPlan({ config, inputs, nowMs }: Host): EvalPlan {
  const plan = parsePlan(inputs.planBytes);
  verifyPlanSignatures(plan, config.planRoot);
  verifyPlanWindow(plan, nowMs());
  const token = Buffer.from(sha256Hex(inputs.runToken), 'hex');
  if (!timingSafeEqual(token, Buffer.from(plan.run_token_sha256, 'hex'))) {
    throw new EvaluatorError('run_token_mismatch', 'EVAL_RUN_TOKEN: not the token of this plan');
  }
  return plan;
}

/** What only a desk may do, and what this image does not offer yet. @throws usage, track_unknown. */
export function verifyOffered(plan: EvalPlan, config: GuestConfig): void {
  trackKind(plan.track);
  if (plan.ranked && (config.solutionsDirectory !== null || config.logsDirectory !== null)) {
    throw new EvaluatorError('usage', 'a ranked run takes neither --solutions nor --logs');
  }
}

/** The mechanism file that the plan pins. */
export async function readMechanism(plan: EvalPlan, file: string): Promise<PinnedMechanism> {
  const pinned = parseMechanism(await readFile(file));
  verifyPlanAgainstMechanism(plan, pinned);
  trackRules(pinned.mechanism, plan.track);
  return pinned;
}

/** A plan asks for keys if, and only if, there is something to open. */
function verifySealing(plan: EvalPlan, cache: TaskCache): void {
  if (plan.key_release !== null && cache.cacheId === null)
    throw new EvaluatorError(
      'cache_not_sealed',
      `${cache.directory}: not sealed, but the plan has a key release; bake with --seal`,
    );
  if (plan.key_release === null && cache.cacheId !== null)
    throw new EvaluatorError(
      'cache_sealed',
      `${cache.directory}: sealed, but the plan has no key release to open it with`,
    );
}

/** The cache that the plan pins, every file of it checked, with every task of the plan in it. */
export async function openPlannedCache(plan: EvalPlan, directory: string): Promise<TaskCache> {
  const cache = await openCache(directory);
  if (cache.cacheDigest !== plan.cache_digest) {
    throw new EvaluatorError(
      'cache_digest_mismatch',
      `${directory}: cache_digest is ${cache.cacheDigest}, the plan says ${plan.cache_digest}`,
    );
  }
  if (cache.toolchainDigest !== plan.toolchain_digest) {
    throw new EvaluatorError(
      'toolchain_digest_mismatch',
      `${directory}: toolchain_digest is ${cache.toolchainDigest}, the plan says ${plan.toolchain_digest}`,
    );
  }
  verifySealing(plan, cache);
  for (const planned of plan.tasks) verifyPlannedTask(cache.task(planned.task_id), planned, plan.track);
  return cache;
}
