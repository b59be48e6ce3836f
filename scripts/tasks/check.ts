import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { EvaluatorError } from '../../guest/errors.ts';
import { shown } from '../../guest/stages/rep-logs.ts';
import type { ManifestTask } from '../../guest/tasks/manifest.ts';
import type { OnLog } from './check-inputs.ts';
import { withCheckSession } from './check-session.ts';
import { checkTask, type TaskCheck } from './check-task.ts';
import { readTask } from './source.ts';

export interface CheckOptions {
  /** Of the oracle, and of nop. */
  reps: number;
  engineSocket: string;
  toolchainTar: string;
  /** Where what agents and tests printed is kept; null: nowhere. */
  logs: string | null;
  signal: AbortSignal;
  onProgress(message: string): void;
}

/** A task to check: its entry so far, and where its plain files lie. */
export interface ToCheck {
  entry: ManifestTask;
  directory: string;
}

/** Keeps each rep's output below `folder`/<task>/<agent>-<rep>-<mode>. */
function logInto(folder: string | null): OnLog {
  return async (taskId, agent, rep, { first, mode, testOutput }) => {
    if (folder === null) return;
    const target = join(folder, taskId, `${agent}-${rep}-${mode}`);
    await mkdir(target, { recursive: true });
    const output = await first.output();
    if (output) {
      await writeFile(join(target, 'agent.stdout'), shown(output.stdout));
      await writeFile(join(target, 'agent.stderr'), shown(output.stderr));
    }
    if (testOutput) await writeFile(join(target, 'tests.output'), testOutput);
  };
}

/**
 * Checks tasks, as many at once as the machine holds: oracle to 1 and nop to 0 in the strictest mode that can be
 * (spec/05). @throws engine_*, task_*: what no single task is the reason of.
 */
export async function checkTasks(tasks: readonly ToCheck[], options: CheckOptions): Promise<TaskCheck[]> {
  const [first] = tasks;
  if (first === undefined) return [];
  const { engineSocket, toolchainTar, reps, signal, onProgress } = options;
  return withCheckSession(
    { engineSocket, toolchainTar, anyImage: first.entry.image, signal },
    async (session) => {
      const onLog = logInto(options.logs);
      return Promise.all(
        tasks.map(async ({ entry, directory }) => {
          const source = await readTask(entry.task_id, directory);
          const check = await checkTask(session, { source, entry }, reps, onLog);
          onProgress(
            `checked ${entry.task_id}: ${check.verdict}${check.mode === null ? '' : `, ${check.mode}`}`,
          );
          return check;
        }),
      );
    },
  );
}

/**
 * The manifest entries of the stable tasks, as their checks found them.
 * @throws bake_check_failed naming every other task, unless those are to be left out; and when none is stable.
 */
export function keepStable(
  tasks: readonly ToCheck[],
  checks: readonly TaskCheck[],
  failing: 'refuse' | 'leave_out',
): ManifestTask[] {
  const found = new Map(checks.map((check) => [check.taskId, check]));
  const kept = tasks.flatMap(({ entry }) => {
    const { mode, artifactPaths, evidence } = found.get(entry.task_id) ?? { mode: null };
    return mode === null ? [] : [{ ...entry, verifier: mode, artifact_paths: [...artifactPaths], evidence }];
  });
  const bad = checks.filter(({ mode }) => mode === null);
  if (kept.length === 0 || (bad.length > 0 && failing === 'refuse')) {
    const list = bad.map(({ taskId, verdict, reason }) => `task ${taskId}: ${verdict}: ${reason}`).join('\n');
    throw new EvaluatorError(
      'bake_check_failed',
      `${bad.length} of ${checks.length} tasks are not stable: the oracle must pass and nop must fail\n${list}`,
    );
  }
  return kept;
}
