import { parseAgentPackage } from '../agent/package.ts';
import type { AgentPackage } from '../agent/types.ts';
import { EvaluatorError } from '../errors.ts';
import { askChallenge } from '../net/challenge-client.ts';
import { sha256Hex } from '../wire/digest.ts';
import type { EvalPlan } from '../wire/plan.ts';

/**
 * Fetches the agent's ZIP from the plan's artifact_url: bearer token, size-capped, and hashed before
 * anything reads it.
 * @throws challenge_unreachable, artifact_unavailable, artifact_hash_mismatch, agent_package_refused,
 * agent_manifest_invalid.
 */
export async function fetchAgent(plan: EvalPlan, token: string): Promise<AgentPackage> {
  const { artifact_url: url, zip_size_bytes: size, agent_hash: expected } = plan.agent;
  const reply = await askChallenge({
    method: 'GET',
    url,
    token,
    caPem: plan.server_ca_pem,
    body: null,
    maxReplyBytes: size,
  });
  if (reply.status !== 200) {
    throw new EvaluatorError(
      'artifact_unavailable',
      `GET ${url}: status ${reply.status}, expected the agent's ZIP`,
    );
  }
  const found = sha256Hex(reply.body);
  if (reply.body.length !== size || found !== expected) {
    throw new EvaluatorError(
      'artifact_hash_mismatch',
      `agent: ${reply.body.length} bytes with SHA-256 ${found}, the plan says ${size} and ${expected}`,
    );
  }
  return parseAgentPackage(reply.body);
}

/** @throws plan_inconsistent when the package asks for a variable that the plan does not allow. */
export function verifyAgentEnv(agent: AgentPackage, plan: EvalPlan): void {
  const { env } = agent.manifest;
  const foreign = env === 'plan' ? undefined : env.find((name) => !plan.agent.env.includes(name));
  if (foreign !== undefined) {
    throw new EvaluatorError(
      'plan_inconsistent',
      `agent.yaml: env asks for ${foreign}, which the plan does not allow; leave it out, or name it with --agent-env`,
    );
  }
}
