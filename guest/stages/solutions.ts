import { lstat, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Upload } from '../trial/session.ts';

/**
 * The solution/ folder of a plain task, for the oracle of a local run; nothing when no folder was given.
 * Placed at /solution, all executable.
 */
export async function readSolution(solutionsDirectory: string | null, taskId: string): Promise<Upload[]> {
  if (solutionsDirectory === null) return [];
  const root = join(solutionsDirectory, taskId, 'solution');
  const found = await readdir(root, { recursive: true, withFileTypes: true }).catch(() => []);
  const uploads: Upload[] = [];
  for (const entry of found) {
    const path = join(entry.parentPath, entry.name);
    if (!(await lstat(path)).isFile()) continue;
    uploads.push({
      path: `solution/${path.slice(root.length + 1)}`,
      bytes: await readFile(path),
      executable: true,
    });
  }
  return uploads.sort((a, b) => (a.path < b.path ? -1 : 1));
}
