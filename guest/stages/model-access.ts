import { EvaluatorError } from '../errors.ts';
import type { InferenceOffer } from '../inference/access.ts';
import type { Mechanism } from '../wire/mechanism.ts';
import type { PlanTask } from '../wire/plan.ts';
import type { GuestInputs } from './config.ts';

/** The VM's variable with the key of the model's endpoint: reserved, so that no agent is ever given it. */
export const INFERENCE_KEY = 'INFERENCE_API_KEY';

interface Tasks {
  tasks: readonly Pick<PlanTask, 'network'>[];
}

/** Whether any task of the plan has `network: inference`. */
export function wantsInference({ tasks }: Tasks): boolean {
  return tasks.some(({ network }) => network === 'inference');
}

/**
 * What the mechanism offers to agents of tasks with `network: inference`, without the image that it runs from;
 * null where the plan has no such task.
 * @throws network_unsupported, inference_key_missing.
 */
export function readInferenceOffer(
  plan: Tasks,
  { inference: rules }: Mechanism,
  { agentEnv }: Pick<GuestInputs, 'agentEnv'>,
): Omit<InferenceOffer, 'imageId'> | null {
  if (!wantsInference(plan)) return null;
  if (rules === null)
    throw new EvaluatorError(
      'network_unsupported',
      'plan: network "inference", but the mechanism offers no model',
    );
  const apiKey = agentEnv[INFERENCE_KEY];
  if (apiKey === undefined || !/^[\x21-\x7e]+$/.test(apiKey))
    throw new EvaluatorError(
      'inference_key_missing',
      `${INFERENCE_KEY}: the plan has network "inference", and the VM no key (visible ASCII) for ${rules.upstream}`,
    );
  return { rules, apiKey };
}
