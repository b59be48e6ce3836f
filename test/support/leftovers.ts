import { mkdirSync, readdirSync, rmSync } from 'node:fs';

/** The temporary folder of everything that a run of the tests starts. */
function folderOf(project: { config: { env?: Partial<Record<string, string>> } }): string {
  const folder = project.config.env?.TMPDIR;
  if (folder === undefined) throw new Error('vitest.config.ts names no TMPDIR');
  return folder;
}

/** Vitest's global setup: what a test leaves in the temporary folder fails the run, by name, and is removed. */
export default function setup(project: Parameters<typeof folderOf>[0]): () => void {
  const folder = folderOf(project);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return () => {
    // Another project of the same run may have been here first.
    mkdirSync(folder, { recursive: true });
    const left = readdirSync(folder);
    rmSync(folder, { recursive: true, force: true });
    if (left.length === 0) return;
    process.exitCode = 1;
    process.stderr.write(`left in the temporary folder by a test: ${left.join(', ')}\n`);
  };
}
