import { parseAgentPackage } from '../agent/package.ts';
import type { AgentPackage } from '../agent/types.ts';
import { EvaluatorError } from '../errors.ts';
import type { Assignment } from '../wire/assignment.ts';
import { sha256Hex } from '../wire/digest.ts';
import type { ReviewHost } from './config.ts';
import { fetchBytes } from './fetch.ts';

/**
 * Step 2: the submitted ZIP, hashed before anything reads it, unpacked in memory under the limits of an agent
 * package. It is never imported and never run.
 * @throws artifact_unavailable, artifact_hash_mismatch, agent_package_refused, agent_manifest_invalid.
 */
export async function fetchArtifact({ artifact }: Assignment, host: ReviewHost): Promise<AgentPackage> {
  const { fetch_path: path, zip_size_bytes: size, zip_sha256: expected } = artifact;
  const zip = await fetchBytes({ name: 'agent', path, maxBytes: size, code: 'artifact_unavailable' }, host);
  const found = sha256Hex(zip);
  if (zip.length !== size || found !== expected) {
    throw new EvaluatorError(
      'artifact_hash_mismatch',
      `agent: ${zip.length} bytes with SHA-256 ${found}, the assignment says ${size} and ${expected}`,
    );
  }
  return parseAgentPackage(zip);
}
