import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { EvaluatorError } from '../errors.ts';
import { sha256Hex } from '../wire/digest.ts';
import { hashFile, readRegularFile } from './folder.ts';
import type { ManifestTask } from './manifest.ts';
import { openSealed } from './seal.ts';
import { SALT_PATH } from './sealed-tar.ts';
import { digestFiles, type FileDigest, taskDigest } from './source-digest.ts';
import type { TaskFile } from './types.ts';

export const SEALED_FOLDER = 'sealed';

export function sealedName(entry: Pick<ManifestTask, 'task_id'>): string {
  return `${entry.task_id}.sealed`;
}

function missing(entry: ManifestTask, cause: unknown): EvaluatorError {
  return new EvaluatorError(
    'cache_file_missing',
    `task ${entry.task_id}: ${SEALED_FOLDER}/${sealedName(entry)} cannot be read`,
    { cause },
  );
}

function changed(entry: ManifestTask): EvaluatorError {
  return new EvaluatorError(
    'cache_file_changed',
    `task ${entry.task_id}: ${SEALED_FOLDER}/${sealedName(entry)} differs from what was baked`,
  );
}

/** The blob is the one of the manifest; needs no key. @throws cache_file_missing, cache_file_changed. */
export async function verifySealed(directory: string, entry: ManifestTask): Promise<void> {
  if (entry.sealed === null) return;
  const folder = join(directory, SEALED_FOLDER);
  let sha256: string;
  let size: number;
  try {
    sha256 = await hashFile(folder, sealedName(entry));
    size = (await stat(join(folder, sealedName(entry)))).size;
  } catch (cause) {
    throw missing(entry, cause);
  }
  if (sha256 !== entry.sealed.sha256 || size !== entry.sealed.size) throw changed(entry);
}

/** A task of a cache on disk, as far as its tests need it. */
interface SealedTask {
  directory: string;
  cacheId: string | null;
  entry: ManifestTask;
  publicFiles: readonly FileDigest[];
}

/**
 * Opens a task's tests in memory and recomputes the task digest over the public and the unsealed files. The
 * salt has done its work then and is left out.
 * @throws cache_not_sealed, cache_file_missing, cache_file_changed, sealed_unopenable, sealed_malformed,
 * sealed_digest_mismatch, task_file_*.
 */
export async function unsealTests(task: SealedTask, key: Buffer): Promise<TaskFile[]> {
  const { directory, cacheId, entry, publicFiles } = task;
  const { task_id: taskId, task_digest: expected } = entry;
  if (cacheId === null || entry.sealed === null)
    throw new EvaluatorError('cache_not_sealed', `task ${taskId}: its tests are not sealed`);
  const blob = await readRegularFile(join(directory, SEALED_FOLDER), sealedName(entry)).catch((cause) => {
    throw missing(entry, cause);
  });
  // What was checked when the cache was opened may have changed since.
  if (sha256Hex(blob) !== entry.sealed.sha256) throw changed(entry);
  const files = await openSealed(blob, key, { cacheId, taskDigest: expected, taskId });
  if (taskDigest([...publicFiles, ...digestFiles(files)]) !== expected)
    throw new EvaluatorError(
      'sealed_digest_mismatch',
      `task ${taskId}: its public and unsealed files do not have the digest of manifest.json; bake again`,
    );
  return files.filter((file) => file.path !== SALT_PATH);
}
