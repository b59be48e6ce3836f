import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { encodeManifest, type ManifestTask } from '../../guest/tasks/manifest.ts';
import { digestFiles, publicDigest, sourceDigest, taskDigest } from '../../guest/tasks/source-digest.ts';
import { sha256Hex } from '../../guest/wire/digest.ts';

/** Content by relative path. */
export type Files = Readonly<Record<string, string>>;

/** The least that is a task. */
export const PLAIN_TASK: Files = {
  'task.toml': '[agent]\ntimeout_sec = 60.0\n',
  'instruction.md': 'Write `1` into /app/answer.\n',
  'environment/Dockerfile': 'FROM scratch\n',
  'tests/test.sh': '#!/bin/sh\ncp /app/answer /logs/verifier/reward.txt\n',
};

/** Writes files below a folder; `.sh` files are executable. */
export async function writeFiles(folder: string, files: Files): Promise<void> {
  for (const [path, text] of Object.entries(files)) {
    const target = join(folder, path);
    await mkdir(dirname(target), { recursive: true });
    await writeFile(target, text);
    await chmod(target, path.endsWith('.sh') ? 0o755 : 0o644);
  }
}

/** The manifest entry of a task with these files, as a bake would write it. */
export function manifestTask(taskId: string, files: Files): ManifestTask {
  const digests = digestFiles(
    Object.entries(files).map(([path, text]) => ({ path, bytes: Buffer.from(text), executable: false })),
  );
  return {
    task_id: taskId,
    source_digest: sourceDigest(digests),
    task_digest: taskDigest(digests),
    public_digest: publicDigest(digests),
    file_count: digests.length,
    image: `sha256:${'0'.repeat(64)}`,
    image_source: 'built',
    base: 'stand-in',
    track: /^track = "(.*)"$/m.exec(files['task.toml'] ?? '')?.[1] ?? 'terminal-bench',
    verifier: 'restart',
    artifact_paths: [],
    evidence: { kind: 'none', passed: null },
    sealed: null,
  };
}

/** Writes a cache without an engine: the tasks' files, `toolchain.tar` and the manifest that pins them. */
export async function writeCache(
  folder: string,
  tasks: Readonly<Record<string, Files>>,
  toolchain: string | null = null,
): Promise<void> {
  for (const [taskId, files] of Object.entries(tasks)) await writeFiles(join(folder, taskId), files);
  if (toolchain !== null) await writeFile(join(folder, 'toolchain.tar'), toolchain);
  const manifest = encodeManifest({
    schema_version: 1,
    cache_id: null,
    toolchain_digest: toolchain === null ? null : sha256Hex(toolchain),
    tasks: Object.entries(tasks).map(([taskId, files]) => manifestTask(taskId, files)),
  });
  await writeFile(join(folder, 'manifest.json'), manifest);
}
