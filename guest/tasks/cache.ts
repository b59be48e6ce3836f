import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { EvaluatorError } from '../errors.ts';
import { sha256Hex } from '../wire/digest.ts';
import { type FoundFile, hashFile, listFolder, readRegularFile } from './folder.ts';
import { cacheDigest, type Manifest, type ManifestTask, parseManifest } from './manifest.ts';
import { SEALED_FOLDER, sealedName, unsealTests, verifySealed } from './sealed-blob.ts';
import { type FileDigest, isPublicFile, publicDigest, taskDigest } from './source-digest.ts';
import { parseTaskToml } from './task-toml.ts';
import type { CachedTask, TaskCache, TaskFile } from './types.ts';

const TOOLCHAIN = 'toolchain.tar';
const TESTS = 'tests/';
/** What an agent is to audit, in a task's public half. */
export const AUDITED_FOLDER = 'environment/artifact/';

interface CheckedTask {
  task: CachedTask;
  entry: ManifestTask;
  files: readonly (FoundFile & FileDigest)[];
}

/** What a cache says it holds, unchecked. @throws cache_unreadable, and the codes of `parseManifest`. */
export async function readManifest(directory: string): Promise<Manifest> {
  let bytes: Buffer;
  try {
    bytes = await readRegularFile(directory, 'manifest.json');
  } catch (cause) {
    throw new EvaluatorError(
      'cache_unreadable',
      `${directory}: no readable manifest.json; make a cache with \`evaluator bake --from DIR --out DIR\``,
      { cause },
    );
  }
  return parseManifest(bytes);
}

async function verifyTopLevel(directory: string, manifest: Manifest): Promise<void> {
  const expected = new Set(['manifest.json', ...manifest.tasks.map((task) => task.task_id)]);
  if (manifest.toolchain_digest !== null) expected.add(TOOLCHAIN);
  if (manifest.cache_id !== null) expected.add(SEALED_FOLDER);
  await refuseOthers(directory, expected);
  if (manifest.cache_id !== null)
    await refuseOthers(join(directory, SEALED_FOLDER), new Set(manifest.tasks.map(sealedName)));
}

async function refuseOthers(directory: string, expected: ReadonlySet<string>): Promise<void> {
  for (const name of await readdir(directory).catch(() => [])) {
    if (!expected.has(name))
      throw new EvaluatorError(
        'cache_file_extra',
        `${directory}: ${JSON.stringify(name)} is not in manifest.json`,
      );
  }
}

async function verifyToolchain(directory: string, manifest: Manifest): Promise<string | null> {
  if (manifest.toolchain_digest === null) return null;
  let found: string;
  try {
    found = await hashFile(directory, TOOLCHAIN);
  } catch (cause) {
    throw new EvaluatorError(
      'cache_toolchain_missing',
      `${directory}: ${TOOLCHAIN} cannot be read; bake again`,
      { cause },
    );
  }
  if (found !== manifest.toolchain_digest)
    throw new EvaluatorError(
      'cache_toolchain_changed',
      `${directory}: ${TOOLCHAIN} is not the one of manifest.json`,
    );
  return join(directory, TOOLCHAIN);
}

function verifyFiles(entry: ManifestTask, files: readonly FileDigest[]): void {
  const { task_id: name, file_count: expected } = entry;
  const counts = `task ${name}: ${files.length} files, ${expected} were baked`;
  if (files.length < expected) throw new EvaluatorError('cache_file_missing', counts);
  if (files.length > expected) throw new EvaluatorError('cache_file_extra', counts);
  if (publicDigest(files) !== entry.public_digest)
    throw new EvaluatorError(
      'cache_file_changed',
      `task ${name}: a public file is not as it was baked; bake again`,
    );
  if (entry.sealed === null && taskDigest(files) !== entry.task_digest)
    throw new EvaluatorError(
      'cache_file_changed',
      `task ${name}: a file of tests/ is not as it was baked; bake again`,
    );
}

async function verifyTaskFolder(folder: string, name: string): Promise<void> {
  const stat = await lstat(folder).catch(() => null);
  if (stat?.isSymbolicLink())
    throw new EvaluatorError('task_file_symlink', `task ${name}: ${folder} is a symbolic link`);
  if (!stat?.isDirectory())
    throw new EvaluatorError('cache_task_missing', `task ${name}: there is no folder ${folder}`);
}

async function checkTask(directory: string, entry: ManifestTask): Promise<CheckedTask> {
  const name = entry.task_id;
  const folder = join(directory, name);
  await verifyTaskFolder(folder, name);
  const found = await listFolder(folder, `task ${name}`, () => true);
  const files: (FoundFile & FileDigest)[] = [];
  for (const file of found) {
    const allowed = isPublicFile(file.path) || (entry.sealed === null && file.path.startsWith(TESTS));
    if (!allowed)
      throw new EvaluatorError('cache_file_extra', `task ${name}: ${file.path} has no place in a baked task`);
    files.push({ ...file, sha256: await hashFile(folder, file.path) });
  }
  verifyFiles(entry, files);
  await verifySealed(directory, entry);

  const config = parseTaskToml(await readRegularFile(folder, 'task.toml'), `${name}/task.toml`);
  return {
    entry,
    files,
    task: {
      taskId: name,
      taskDigest: entry.task_digest,
      track: entry.track,
      config,
      instruction: await readRegularFile(folder, 'instruction.md'),
      image: entry.image,
      imageSource: entry.image_source,
      imageBase: entry.base,
      evidence: entry.evidence,
      verifierMode: entry.verifier,
      artifactPaths: entry.artifact_paths,
    },
  };
}

/** Reads what lies below `prefix` once more: what was checked at the start may have changed since. */
async function readBelow(directory: string, checked: CheckedTask, prefix: string): Promise<TaskFile[]> {
  const name = checked.entry.task_id;
  const folder = join(directory, name);
  const files: TaskFile[] = [];
  for (const { path, executable, sha256 } of checked.files) {
    if (!path.startsWith(prefix)) continue;
    let bytes: Buffer;
    try {
      bytes = await readRegularFile(folder, path);
    } catch (cause) {
      throw new EvaluatorError('cache_file_missing', `task ${name}: ${path} cannot be read any more`, {
        cause,
      });
    }
    if (sha256Hex(bytes) !== sha256)
      throw new EvaluatorError(
        'cache_file_changed',
        `task ${name}: ${path} changed after the cache was opened`,
      );
    files.push({ path, bytes, executable });
  }
  return files;
}

/**
 * Opens a baked cache after checking every file of it against the manifest: nothing missing, changed or extra,
 * no link, no device (spec/05). Needs no key.
 * @throws cache_unreadable, cache_task_missing, cache_file_missing, cache_file_extra, cache_file_changed,
 * cache_toolchain_missing, cache_toolchain_changed, task_file_*, task_toml_invalid, json_*, schema_invalid. Its tests():
 * cache_sealed, cache_file_*; its unseal(): cache_not_sealed, cache_file_*, sealed_*.
 */
export async function openCache(directory: string): Promise<TaskCache> {
  const manifest = await readManifest(directory);
  await verifyTopLevel(directory, manifest);
  const toolchainPath = await verifyToolchain(directory, manifest);
  const checked = new Map<string, CheckedTask>();
  for (const entry of manifest.tasks) checked.set(entry.task_id, await checkTask(directory, entry));

  const lookUp = (taskId: string): CheckedTask => {
    const found = checked.get(taskId);
    if (found) return found;
    throw new EvaluatorError(
      'task_unknown',
      `no task ${JSON.stringify(taskId.slice(0, 128))} in ${directory}`,
    );
  };
  return {
    directory,
    cacheDigest: cacheDigest(manifest),
    cacheId: manifest.cache_id,
    toolchainDigest: manifest.toolchain_digest,
    toolchainPath,
    taskIds: [...checked.keys()],
    task: (taskId) => lookUp(taskId).task,
    async tests(taskId) {
      const found = lookUp(taskId);
      if (manifest.cache_id !== null)
        throw new EvaluatorError(
          'cache_sealed',
          `task ${taskId}: its tests are sealed; this needs the task's key`,
        );
      return readBelow(directory, found, TESTS);
    },
    audited: (taskId) => readBelow(directory, lookUp(taskId), AUDITED_FOLDER),
    async unseal(taskId, key) {
      const { entry, files } = lookUp(taskId);
      return unsealTests({ directory, cacheId: manifest.cache_id, entry, publicFiles: files }, key);
    },
  };
}
