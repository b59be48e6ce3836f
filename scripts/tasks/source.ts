import { access, readdir } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { EvaluatorError } from '../../guest/errors.ts';
import { listFolder, readRegularFile } from '../../guest/tasks/folder.ts';
import { SEALED_FOLDER } from '../../guest/tasks/sealed-blob.ts';
import { isPackageFile } from '../../guest/tasks/source-digest.ts';
import { parseTaskToml } from '../../guest/tasks/task-toml.ts';
import type { TaskConfig, TaskFile } from '../../guest/tasks/types.ts';
import { taskId as taskIdSchema } from '../../guest/wire/scalars.ts';
import { DEFAULT_IGNORE, parseIgnore } from './ignore.ts';
import { verifyTrackFiles } from './track-files.ts';

const MAX_TASK_BYTES = 512 * 1024 * 1024;
/** What lies beside the tasks in a cache. */
const RESERVED = new Set(['manifest.json', 'toolchain.tar', SEALED_FOLDER]);
const COMPOSE = /^environment\/(?:docker-)?compose\.ya?ml$/;

/** A plain task, as its author wrote it. */
export interface SourceTask {
  taskId: string;
  directory: string;
  config: TaskConfig;
  /** Every file of the package, solution/ included. */
  files: readonly TaskFile[];
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

/**
 * Finds the tasks of folders: those that are a task, and the tasks directly below those that are not.
 * @returns directory by task name, ascending.
 * @throws task_unknown (a folder holds none), task_duplicate, task_file_name, task_unsupported (a reserved name).
 */
export async function findTasks(folders: readonly string[]): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (const folder of folders) {
    const candidates = [resolve(folder)];
    if (!(await exists(join(folder, 'task.toml')))) {
      const entries = await readdir(folder, { withFileTypes: true }).catch((cause) => {
        throw new EvaluatorError('task_unknown', `${folder}: no such folder of tasks`, { cause });
      });
      const below = entries
        .filter((entry) => entry.isDirectory())
        .map((entry) => resolve(folder, entry.name));
      candidates.splice(0, 1, ...below);
    }
    let isEmpty = true;
    for (const directory of candidates) {
      if (!(await exists(join(directory, 'task.toml')))) continue;
      isEmpty = false;
      const name = basename(directory);
      if (!taskIdSchema.safeParse(name).success)
        throw new EvaluatorError(
          'task_file_name',
          `${directory}: ${JSON.stringify(name)} is no name for a task`,
        );
      if (RESERVED.has(name))
        throw new EvaluatorError(
          'task_unsupported',
          `${directory}: ${name} is reserved in a cache; rename the task`,
        );
      const other = found.get(name);
      if (other !== undefined && other !== directory)
        throw new EvaluatorError('task_duplicate', `two tasks are called ${name}: ${other} and ${directory}`);
      found.set(name, directory);
    }
    if (isEmpty)
      throw new EvaluatorError('task_unknown', `${folder}: no task.toml in it or directly below it`);
  }
  return new Map([...found].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/**
 * Reads one task package: every file that its digest covers.
 * @throws task_incomplete, task_unsupported, task_toml_invalid, track_unknown, ground_truth_invalid, task_file_*.
 */
export async function readTask(taskId: string, directory: string): Promise<SourceTask> {
  const ownIgnore = join(directory, '.gitignore');
  const isIgnored = parseIgnore(
    (await exists(ownIgnore))
      ? (await readRegularFile(directory, '.gitignore')).toString('utf8')
      : DEFAULT_IGNORE,
  );
  const where = `task ${taskId}`;
  const found = await listFolder(directory, where, (path) => isPackageFile(path) && !isIgnored(path));
  const total = found.reduce((sum, file) => sum + file.sizeBytes, 0);
  if (total > MAX_TASK_BYTES)
    throw new EvaluatorError(
      'task_unsupported',
      `${where}: ${total} bytes, at most ${MAX_TASK_BYTES} are baked`,
    );
  const paths = new Set(found.map((file) => file.path));
  if (!paths.has('task.toml')) throw new EvaluatorError('task_incomplete', `${where}: task.toml is missing`);
  const foreign = [...paths].find((path) => path.startsWith('steps/') || COMPOSE.test(path));
  if (foreign !== undefined)
    throw new EvaluatorError(
      'task_unsupported',
      `${where}: ${foreign}: only one container and one step are run`,
    );

  const files: TaskFile[] = [];
  for (const { path, executable } of found)
    files.push({ path, executable, bytes: await readRegularFile(directory, path) });
  const toml = await readRegularFile(directory, 'task.toml');
  const task = { taskId, directory, files, config: parseTaskToml(toml, join(directory, 'task.toml')) };
  verifyTrackFiles(task);
  return task;
}
