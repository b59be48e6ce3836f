import { createHash } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { encodeManifest } from '../../guest/tasks/manifest.ts';
import { sealTests } from '../../guest/tasks/seal.ts';
import { digestFiles, isPublicFile, publicDigest, taskDigest } from '../../guest/tasks/source-digest.ts';
import { taskKey } from '../../guest/tasks/task-key.ts';
import type { TaskFile } from '../../guest/tasks/types.ts';
import { sha256Hex } from '../../guest/wire/digest.ts';
import { type Files, manifestTask, writeFiles } from './plain-task.ts';

export const GOLDEN_KEY = Buffer.alloc(32, 0x47);
export const CACHE_ID = 'c1'.repeat(32);

/** Bytes that follow from a label: salts and nonces of tests. */
export function labelled(label: string, bytes: number): Buffer {
  return createHash('sha512').update(label).digest().subarray(0, bytes);
}

export function toTaskFiles(files: Files): TaskFile[] {
  return Object.entries(files).map(([path, text]) => ({
    path,
    bytes: Buffer.from(text),
    executable: path.endsWith('.sh'),
  }));
}

/** A task's tests with their salt, and the digest that the task then has. */
export function saltedTask(taskId: string, files: Files): { tests: TaskFile[]; digest: string } {
  const salt = { path: 'tests/.salt', bytes: labelled(`salt ${taskId}`, 32), executable: false };
  const all = [...toTaskFiles(files), salt];
  return { tests: all.filter(({ path }) => path.startsWith('tests/')), digest: taskDigest(digestFiles(all)) };
}

/** Writes a sealed cache without an engine. @returns the key of each task. */
export async function writeSealedCache(
  folder: string,
  tasks: Readonly<Record<string, Files>>,
  toolchain: string | null = null,
): Promise<Map<string, Buffer>> {
  const keys = new Map<string, Buffer>();
  const entries = [];
  await mkdir(join(folder, 'sealed'), { recursive: true });
  if (toolchain !== null) await writeFile(join(folder, 'toolchain.tar'), toolchain);
  for (const [taskId, files] of Object.entries(tasks)) {
    const shown = Object.fromEntries(Object.entries(files).filter(([path]) => isPublicFile(path)));
    await writeFiles(join(folder, taskId), shown);
    const { tests, digest } = saltedTask(taskId, files);
    const key = taskKey(GOLDEN_KEY, CACHE_ID, digest);
    const context = { cacheId: CACHE_ID, taskDigest: digest, taskId };
    const blob = await sealTests(tests, key, context, labelled(`nonce ${taskId}`, 12));
    await writeFile(join(folder, 'sealed', `${taskId}.sealed`), blob);
    keys.set(taskId, key);
    entries.push({
      ...manifestTask(taskId, shown),
      task_digest: digest,
      public_digest: publicDigest(digestFiles(toTaskFiles(shown))),
      sealed: { sha256: sha256Hex(blob), size: blob.length },
    });
  }
  const manifest = encodeManifest({
    schema_version: 1,
    cache_id: CACHE_ID,
    toolchain_digest: toolchain === null ? null : sha256Hex(toolchain),
    tasks: entries,
  });
  await writeFile(join(folder, 'manifest.json'), manifest);
  return keys;
}
