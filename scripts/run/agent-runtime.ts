import type { AgentPackage } from '../../guest/agent/types.ts';
import { makeAgentRuntime } from '../images/agent-runtime.ts';
import { LOCKED_NODE } from '../images/base.ts';

/**
 * The image that a brokered agent's sandboxes are made from, as a plan names it; made on this engine when it is
 * not there. Null for a container agent.
 * @throws engine_absent, base_unavailable, build_unavailable, build_failed.
 */
export async function runtimeImageOf(
  { manifest }: AgentPackage,
  engineSocket: string,
  onProgress: (message: string) => void,
): Promise<string | null> {
  if (manifest.kind === 'container') return null;
  return (await makeAgentRuntime(LOCKED_NODE, engineSocket, onProgress)).image;
}
