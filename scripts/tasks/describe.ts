import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { EvaluatorError } from '../../guest/errors.ts';
import { artifactPathsProblem } from '../../guest/tasks/artifact-paths.ts';
import type { ManifestTask } from '../../guest/tasks/manifest.ts';
import {
  digestFiles,
  isPublicFile,
  publicDigest,
  sourceDigest,
  taskDigest,
} from '../../guest/tasks/source-digest.ts';
import type { TaskFile } from '../../guest/tasks/types.ts';
import { readServed } from '../toolchain/served.ts';
import { unservedOf } from '../toolchain/survey-script.ts';
import type { ImageStore } from './image-store.ts';
import type { CacheSeal } from './seal.ts';
import type { SourceTask } from './source.ts';
import { resolveImage, type SilentRegistries } from './task-image.ts';

/** A tests/test.sh that writes a CTRF report proves that its tests ran. */
function evidenceOf(task: SourceTask): ManifestTask['evidence'] {
  return { kind: testScript(task).includes('ctrf.json') ? 'ctrf' : 'none', passed: null };
}

/** The text of tests/test.sh; empty where there is none. */
export function testScript(task: SourceTask): string {
  return textOf(task, 'tests/test.sh');
}

function textOf({ files }: SourceTask, path: string): string {
  return files.find((file) => file.path === path)?.bytes.toString('utf8') ?? '';
}

/** What test.sh asks for and the tools volume does not serve: its verification will end as `verifier_unserved`. */
export function unservedBy(task: SourceTask): string[] {
  return unservedOf(testScript(task), textOf(task, 'environment/Dockerfile'), readServed());
}

/** What mode `artifact` carries over: what the task names, else its image's WORKDIR. @throws task_unsupported. */
function artifactPaths({ taskId, config }: SourceTask, workdir: string): string[] {
  const named = config.verifier.artifactPaths;
  const paths = named.length > 0 ? [...named] : [workdir];
  const problem = artifactPathsProblem(paths);
  if (problem === null) return paths;
  throw new EvaluatorError('task_unsupported', `task ${taskId}: verifier mode artifact: ${problem}`);
}

/**
 * The manifest's entry of a plain task, as far as no check and no seal changes it; its image is pulled or built.
 * @throws task_unsupported, image_*, engine_*.
 */
export async function describeTask(
  store: ImageStore,
  task: SourceTask,
  live: readonly string[],
  silent: SilentRegistries,
  seal: CacheSeal | null,
): Promise<ManifestTask> {
  const digests = digestFiles(task.files);
  const digest = taskDigest(digests);
  const { image, source, base, workdir } = await resolveImage(store, task, silent);
  const verifier = live.includes(task.taskId) ? 'live' : task.config.verifier.mode;
  return {
    task_id: task.taskId,
    source_digest: sourceDigest(digests),
    task_digest: digest,
    public_digest: publicDigest(digests),
    file_count: plainFiles(task, seal).length,
    image,
    image_source: source,
    base,
    track: task.config.track,
    verifier,
    artifact_paths: verifier === 'artifact' ? artifactPaths(task, workdir) : [],
    evidence: evidenceOf(task),
    sealed: null,
  };
}

/** What of a task goes into a cache in plain: never its solution, and no test of a sealed one. */
function plainFiles(task: SourceTask, seal: CacheSeal | null): readonly TaskFile[] {
  return task.files.filter(({ path }) =>
    seal === null ? !path.startsWith('solution/') : isPublicFile(path),
  );
}

/** Writes what of a task goes into a cache in plain, below `directory`. */
export async function writeTask(directory: string, task: SourceTask, seal: CacheSeal | null): Promise<void> {
  for (const { path, bytes, executable } of plainFiles(task, seal)) {
    const target = join(directory, task.taskId, path);
    await mkdir(dirname(target), { recursive: true });
    await writeFile(target, bytes, { mode: executable ? 0o755 : 0o644, flag: 'wx' });
  }
}
