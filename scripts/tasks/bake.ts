import { chmod, mkdir, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { EvaluatorError } from '../../guest/errors.ts';
import { cacheDigest, encodeManifest, type Manifest, type ManifestTask } from '../../guest/tasks/manifest.ts';
import { SEALED_FOLDER, sealedName } from '../../guest/tasks/sealed-blob.ts';
import { checkTasks, keepStable, type ToCheck } from './check.ts';
import type { TaskCheck } from './check-task.ts';
import { describeTask, testScript, unservedBy, writeTask } from './describe.ts';
import { connectImageStore } from './image-store.ts';
import { newCacheSeal, type Sealing, salted, writeSealed } from './seal.ts';
import { findTasks, readTask, type SourceTask } from './source.ts';
import type { SilentRegistries } from './task-image.ts';
import { unlessAborted } from './unless-aborted.ts';

export interface BakeOptions {
  /** Folders of plain tasks. */
  from: readonly string[];
  /** Absent or empty; written whole or not at all. */
  out: string;
  /** Task names; empty means all. */
  only: readonly string[];
  /** Tasks of this track alone; null: of every track. */
  track: string | null;
  /** Tasks whose services must go on while their tests run, where their own task.toml may not say so. */
  live: readonly string[];
  engineSocket: string;
  /** null: tests lie in plain. */
  seal: Sealing | null;
  /** Writes the verifier's tools, a tar, for tasks with these test.sh; null for a cache without. */
  toolchain:
    | ((options: { outFile: string; scripts: readonly string[] }) => Promise<{ digest: string }>)
    | null;
  /** null: nothing is run; a mode is what the task says. Needs `toolchain`. */
  check: BakeCheck | null;
  /** Ends the bake with its reason; what was begun is removed. */
  signal: AbortSignal;
  onProgress(message: string): void;
}

/** How a bake checks its tasks. */
export interface BakeCheck {
  reps: number;
  /** What becomes of the cache when a task cannot be built, or fails its check. */
  failing: 'refuse' | 'leave_out';
  logs: string | null;
  /** Told of every check before anything is refused. */
  onChecked(found: { checks: readonly TaskCheck[]; unbuilt: readonly EvaluatorError[] }): void;
}

export interface BakeResult {
  cacheDigest: string;
  manifest: Manifest;
}

async function verifyOutput(out: string): Promise<void> {
  const entries = await readdir(out).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw new EvaluatorError('bake_output_exists', `${out}: not a folder`, { cause: error });
  });
  if (entries.length > 0)
    throw new EvaluatorError('bake_output_exists', `${out}: not empty; name a new folder or remove this one`);
}

function chooseTasks(found: ReadonlyMap<string, string>, options: BakeOptions): [string, string][] {
  for (const name of [...options.only, ...options.live]) {
    if (!found.has(name))
      throw new EvaluatorError(
        'task_unknown',
        `no task ${JSON.stringify(name)} in ${options.from.join(', ')}`,
      );
  }
  return [...found].filter(([name]) => options.only.length === 0 || options.only.includes(name));
}

/** One refusal that names every task that cannot be baked, so that they need not be found one by one. */
function refusal(failures: readonly EvaluatorError[]): EvaluatorError | null {
  const [first] = failures;
  if (first === undefined || failures.length === 1) return first ?? null;
  const list = failures.map((failure) => `${failure.code}: ${failure.message}`).join('\n');
  return new EvaluatorError(first.code, `${failures.length} tasks cannot be baked\n${list}`, {
    cause: first,
  });
}

/** @throws task_unknown when that very task was asked for. */
function isOfOtherTrack({ taskId, config }: SourceTask, { track, only }: BakeOptions): boolean {
  if (track === null || config.track === track) return false;
  if (only.includes(taskId))
    throw new EvaluatorError('task_unknown', `task ${taskId}: it is of track ${config.track}, not ${track}`);
  return true;
}

async function bakeInto(work: string, options: BakeOptions): Promise<Manifest> {
  const chosen = chooseTasks(await findTasks(options.from), options);
  const store = await connectImageStore(options.engineSocket);
  const silent: SilentRegistries = new Set();
  const seal = options.seal && newCacheSeal(options.seal);
  const tasks: ToCheck[] = [];
  const scripts: string[] = [];
  const failures: EvaluatorError[] = [];
  for (const [taskId, directory] of chosen) {
    options.onProgress(`baking ${taskId}`);
    try {
      const plain = await readTask(taskId, directory);
      if (isOfOtherTrack(plain, options)) continue;
      for (const what of unservedBy(plain)) options.onProgress(`${taskId}: its tests will lack ${what}`);
      const task = seal === null ? plain : salted(plain, seal);
      const entry = await unlessAborted(options.signal, () =>
        describeTask(store, task, options.live, silent, seal),
      );
      await writeTask(work, task, seal);
      const written = seal === null ? entry : await writeSealed(work, task, entry, seal);
      tasks.push({ entry: written, directory });
      scripts.push(testScript(plain));
    } catch (error) {
      options.signal.throwIfAborted();
      if (!(error instanceof EvaluatorError) || error.code.startsWith('engine_')) throw error;
      failures.push(error);
    }
  }
  const refused = refusal(failures);
  if (refused !== null && options.check?.failing !== 'leave_out') throw refused;
  if (tasks.length === 0)
    throw new EvaluatorError(
      'task_unknown',
      `no task of track ${options.track} in ${options.from.join(', ')}`,
    );
  const outFile = join(work, 'toolchain.tar');
  const make = options.toolchain;
  const toolchain = make && (await unlessAborted(options.signal, () => make({ outFile, scripts })));
  return {
    schema_version: 1,
    cache_id: seal?.cacheId ?? null,
    toolchain_digest: toolchain?.digest ?? null,
    tasks: await checkedTasks(work, tasks, failures, options),
  };
}

/** The entries of the cache: what a check found is written into them, and what failed it is not among them. */
async function checkedTasks(
  work: string,
  tasks: readonly ToCheck[],
  unbuilt: readonly EvaluatorError[],
  { check, engineSocket, signal, onProgress }: BakeOptions,
): Promise<ManifestTask[]> {
  if (check === null) return tasks.map(({ entry }) => entry);
  const toolchainTar = join(work, 'toolchain.tar');
  const checks = await checkTasks(tasks, { ...check, engineSocket, toolchainTar, signal, onProgress });
  check.onChecked({ checks, unbuilt });
  const kept = keepStable(tasks, checks, check.failing);
  for (const { entry } of tasks)
    if (!kept.some((one) => one.task_id === entry.task_id)) await drop(work, entry);
  return kept;
}

async function drop(work: string, entry: ManifestTask): Promise<void> {
  await rm(join(work, entry.task_id), { recursive: true });
  if (entry.sealed !== null) await rm(join(work, SEALED_FOLDER, sealedName(entry)));
}

/**
 * Bakes plain tasks into a cache: public files, tests (sealed on request), and a manifest that pins every byte
 * and every image (spec/05). The same tasks and images give the same bytes, but for cache_id, salts and nonces.
 * @throws bake_output_exists, task_*, golden_key_invalid, image_*, engine_*, toolchain_*, bake_check_failed.
 */
export async function bakeTasks(options: BakeOptions): Promise<BakeResult> {
  const out = resolve(options.out);
  await verifyOutput(out);
  await mkdir(dirname(out), { recursive: true });
  const work = await mkdtemp(join(dirname(out), `.${basename(out)}-`));
  try {
    const manifest = await bakeInto(work, options);
    await writeFile(join(work, 'manifest.json'), encodeManifest(manifest), { mode: 0o644, flag: 'wx' });
    await chmod(work, 0o755);
    await rename(work, out);
    return { manifest, cacheDigest: cacheDigest(manifest) };
  } catch (error) {
    await rm(work, { recursive: true, force: true });
    throw error;
  }
}
