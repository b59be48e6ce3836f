import type { AgentPackage } from '../agent/types.ts';
import type { ImageInfo } from '../engine/port.ts';
import { EvaluatorError } from '../errors.ts';
import { TASK_IMAGE_EXPECTATION, verifyTaskImage } from '../tasks/image-rules.ts';
import { withStartRetries } from '../trial/faults.ts';
import type { BrokeredAgent, TrialContext } from '../trial/session.ts';
import type { EvalPlan } from '../wire/plan.ts';
import { wantsInference } from './model-access.ts';

type PullContext = Pick<TrialContext, 'engine' | 'signal' | 'counters' | 'maxStartRetries'>;

/**
 * A plan names a runtime image if, and only if, something runs from it: a brokered agent, or the proxy of a task
 * with `network: inference`.
 * @throws plan_inconsistent.
 */
export function verifyRuntimePlanned({ manifest }: AgentPackage, plan: EvalPlan): void {
  const named = plan.agent_runtime_image !== null;
  if (named === (manifest.kind === 'brokered' || wantsInference(plan))) return;
  throw new EvaluatorError(
    'plan_inconsistent',
    `plan: agent_runtime_image is ${named ? 'named' : 'null'}, but the agent is of kind ${manifest.kind}` +
      ` and ${wantsInference(plan) ? 'a' : 'no'} task has network inference`,
  );
}

async function present({ engine, ...context }: PullContext, ref: string): Promise<ImageInfo> {
  const found = await engine.image(ref);
  if (found) return found;
  const missing = (why: string) => new EvaluatorError('image_missing', `agent runtime: image ${ref} ${why}`);
  if (!ref.includes('@')) throw missing('is not on this engine; make it with `evaluator base --for agents`');
  await withStartRetries(context, () => engine.pull(ref));
  const pulled = await engine.image(ref);
  if (!pulled) throw missing('is absent after its pull');
  return pulled;
}

/**
 * The image that sandboxes and model proxies are made from, as the plan pins it; null where there are none.
 * @throws plan_inconsistent, image_*, engine_*.
 */
export async function resolveRuntime(
  context: PullContext,
  agent: AgentPackage,
  plan: EvalPlan,
): Promise<BrokeredAgent['runtime'] | null> {
  verifyRuntimePlanned(agent, plan);
  const ref = plan.agent_runtime_image;
  if (ref === null) return null;
  const image = await present(context, ref);
  verifyTaskImage(image, TASK_IMAGE_EXPECTATION, 'agent runtime');
  if (ref.startsWith('sha256:') && image.id !== ref)
    throw new EvaluatorError(
      'image_changed',
      `agent runtime: the engine has ${image.id}, the plan says ${ref}`,
    );
  return { imageId: image.id, env: image.env };
}
