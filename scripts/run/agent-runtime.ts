import type { AgentPackage } from '../../guest/agent/types.ts';
import { wantsInference } from '../../guest/stages/model-access.ts';
import type { PlanTask } from '../../guest/wire/plan.ts';
import { makeAgentRuntime } from '../images/agent-runtime.ts';
import { LOCKED_NODE } from '../images/base.ts';

/**
 * The image that a brokered agent's sandboxes and the proxies of model access are made from, as a plan names it;
 * made on this engine when it is not there. Null where there are neither.
 * @throws engine_absent, base_unavailable, build_unavailable, build_failed.
 */
export async function runtimeImageOf(
  { manifest }: AgentPackage,
  planned: readonly PlanTask[],
  engineSocket: string,
  onProgress: (message: string) => void,
): Promise<string | null> {
  if (manifest.kind === 'container' && !wantsInference({ tasks: planned })) return null;
  return (await makeAgentRuntime(LOCKED_NODE, engineSocket, onProgress)).image;
}
