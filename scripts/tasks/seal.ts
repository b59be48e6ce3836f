import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { EvaluatorError } from '../../guest/errors.ts';
import type { ManifestTask } from '../../guest/tasks/manifest.ts';
import { NONCE_BYTES, sealTests } from '../../guest/tasks/seal.ts';
import { SEALED_FOLDER, sealedName } from '../../guest/tasks/sealed-blob.ts';
import { SALT_BYTES, SALT_PATH } from '../../guest/tasks/sealed-tar.ts';
import { KEY_BYTES, taskKey } from '../../guest/tasks/task-key.ts';
import { sha256Hex } from '../../guest/wire/digest.ts';
import type { SourceTask } from './source.ts';

/** How a bake seals tests. */
export interface Sealing {
  goldenKey: Buffer;
  /** Fresh random bytes for cache_id, salts and nonces; a test gives its own. */
  random: (bytes: number) => Buffer;
}

/** One bake's sealing: its own cache_id, so that no two caches share a task key. */
export interface CacheSeal extends Sealing {
  /** 64 lower-case hex digits. */
  cacheId: string;
}

export function newCacheSeal(sealing: Sealing): CacheSeal {
  return { ...sealing, cacheId: sealing.random(KEY_BYTES).toString('hex') };
}

/** The task with its salt, which every digest of a sealed task covers. @throws task_unsupported. */
export function salted(task: SourceTask, seal: CacheSeal): SourceTask {
  if (task.files.some((file) => file.path === SALT_PATH))
    throw new EvaluatorError(
      'task_unsupported',
      `task ${task.taskId}: ${SALT_PATH} is the name of the salt; rename it`,
    );
  const salt = { path: SALT_PATH, bytes: seal.random(SALT_BYTES), executable: false };
  return { ...task, files: [...task.files, salt] };
}

/**
 * Writes a salted task's tests as `sealed/<task>.sealed` below a cache.
 * @returns the manifest entry that pins the blob. @throws golden_key_invalid, task_unsupported, task_file_*.
 */
export async function writeSealed(
  directory: string,
  task: SourceTask,
  entry: ManifestTask,
  seal: CacheSeal,
): Promise<ManifestTask> {
  const { taskId } = task;
  const { cacheId } = seal;
  const taskDigest = entry.task_digest;
  const blob = await sealTests(
    task.files.filter((file) => file.path.startsWith('tests/')),
    taskKey(seal.goldenKey, cacheId, taskDigest),
    { cacheId, taskDigest, taskId },
    seal.random(NONCE_BYTES),
  );
  await mkdir(join(directory, SEALED_FOLDER), { recursive: true });
  await writeFile(join(directory, SEALED_FOLDER, sealedName(entry)), blob, { mode: 0o644, flag: 'wx' });
  return { ...entry, sealed: { sha256: sha256Hex(blob), size: blob.length } };
}
