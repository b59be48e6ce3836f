import { sha256Hex } from '../wire/digest.ts';
import { archiveFormat } from './archive-magic.ts';
import { AGENT_MANIFEST_NAME, parseAgentManifest } from './manifest.ts';
import { PYTHON_AGENT_NAME, pythonAgentManifest } from './python-agent.ts';
import { refused, shownName } from './refuse.ts';
import type { AgentFile, AgentManifest, AgentPackage } from './types.ts';
import { readZip, type ZipLimits } from './zip-read.ts';

/** Limits of an agent package (spec/08), in bytes. */
export const MAX_PACKED_BYTES = 1024 * 1024;
export const MAX_UNPACKED_BYTES = 20_000_000;
/** Names of 1 MiB can imply 250,000 directories. */
const MAX_PATHS = 10_000;
const LIMITS: ZipLimits = {
  packedBytes: MAX_PACKED_BYTES,
  unpackedBytes: MAX_UNPACKED_BYTES,
  ratio: 100,
  paths: MAX_PATHS,
};

/** What `agent.yaml` says; without one, what an `agent.py` stands for. */
function manifestOf(files: readonly AgentFile[]): AgentManifest {
  const top = (name: string) => files.find(({ path }) => path === name);
  const manifest = top(AGENT_MANIFEST_NAME);
  if (manifest !== undefined) return parseAgentManifest(manifest.bytes);
  const agent = top(PYTHON_AGENT_NAME);
  if (agent !== undefined) return pythonAgentManifest(agent);
  throw refused('archive', `no ${AGENT_MANIFEST_NAME} and no ${PYTHON_AGENT_NAME} at its top`);
}

/**
 * Opens an agent package: a ZIP of regular files that every reader reads alike, with `agent.yaml` or `agent.py`
 * at its top. Every byte of the ZIP is accounted for, every name is checked, every size is measured (spec/08).
 * @throws agent_package_refused, naming the entry; agent_manifest_invalid.
 */
export async function parseAgentPackage(zip: Buffer): Promise<AgentPackage> {
  const files = await readZip(zip, LIMITS);
  for (const { path, bytes } of files) {
    const format = archiveFormat(bytes);
    if (format !== null) throw refused(shownName(Buffer.from(path)), `a nested archive (${format})`);
  }
  return {
    agentHash: sha256Hex(zip),
    zip,
    manifest: manifestOf(files),
    files: files.sort((a, b) => (a.path < b.path ? -1 : 1)),
  };
}
