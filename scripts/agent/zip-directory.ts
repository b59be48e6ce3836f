import { readdir, readFile, stat } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { MAX_PACKED_BYTES } from '../../guest/agent/package.ts';
import type { AgentFile } from '../../guest/agent/types.ts';
import { EvaluatorError } from '../../guest/errors.ts';
import { zipFiles } from './zip-files.ts';

async function readFiles(directory: string): Promise<AgentFile[]> {
  const entries = await readdir(directory, { withFileTypes: true, recursive: true });
  const files: AgentFile[] = [];
  let total = 0;
  for (const entry of entries) {
    const full = join(entry.parentPath, entry.name);
    const path = relative(directory, full).split(sep).join('/');
    if (entry.isDirectory()) continue;
    if (!entry.isFile()) {
      throw new EvaluatorError(
        'agent_package_refused',
        `agent folder: ${JSON.stringify(path)}: not a regular file (links are refused); replace it by a copy`,
      );
    }
    const { size, mode } = await stat(full);
    total += size;
    if (total > MAX_PACKED_BYTES) {
      throw new EvaluatorError(
        'agent_package_refused',
        `agent folder: more than ${MAX_PACKED_BYTES} bytes, and a folder is stored uncompressed; zip it first`,
      );
    }
    files.push({ path, bytes: await readFile(full), executable: (mode & 0o100) !== 0 });
  }
  return files;
}

/**
 * Zips a folder deterministically (see `zipFiles`). The result is not checked: `parseAgentPackage` does that.
 * @throws agent_package_refused on links and special files, and on more than a package may weigh.
 */
export async function zipDirectory(directory: string): Promise<Buffer> {
  return zipFiles(await readFiles(directory));
}
