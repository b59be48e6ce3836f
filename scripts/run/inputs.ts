import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parseAgentPackage } from '../../guest/agent/package.ts';
import type { AgentPackage } from '../../guest/agent/types.ts';
import { EvaluatorError } from '../../guest/errors.ts';
import { openCache } from '../../guest/tasks/cache.ts';
import type { CachedTask, TaskCache } from '../../guest/tasks/types.ts';
import type { PlanTask } from '../../guest/wire/plan.ts';
import { builtinAgent, isBuiltinAgent } from '../agent/builtin.ts';
import { zipDirectory } from '../agent/zip-directory.ts';
import { bakeTasks } from '../tasks/bake.ts';
import { buildToolchain } from '../toolchain/build.ts';
import type { RunOptions } from './options.ts';

/** The agent that was asked for: built in, a ZIP as it is, or a folder zipped deterministically. */
export async function loadAgent(agent: string): Promise<AgentPackage> {
  if (isBuiltinAgent(agent)) return builtinAgent(agent);
  const zip = statSync(agent).isDirectory() ? await zipDirectory(agent) : readFileSync(agent);
  return parseAgentPackage(zip);
}

export interface LoadedCache {
  cache: TaskCache;
  /** Plain tasks with solutions, where there are any. */
  solutions: string | null;
}

/** The baked cache that was given, or a bake of the plain folder, made below `work`. */
export async function loadCache(
  options: RunOptions,
  work: string,
  onProgress: (message: string) => void,
): Promise<LoadedCache> {
  if (existsSync(join(options.cache, 'manifest.json'))) {
    return { cache: await openCache(options.cache), solutions: options.solutions };
  }
  const out = join(work, 'cache');
  await bakeTasks({
    from: [options.cache],
    out,
    only: options.tasks,
    live: [],
    seal: null,
    engineSocket: options.engineSocket,
    toolchain: buildToolchain,
    onProgress,
  });
  return { cache: await openCache(out), solutions: options.solutions ?? options.cache };
}

function planTask(task: CachedTask, weight: RunOptions['weight']): PlanTask {
  const open = weight === 'calibration' && task.config.environment.allowInternet;
  return {
    task_id: task.taskId,
    task_digest: task.taskDigest,
    image: task.image,
    verifier: task.verifierMode,
    network: open ? 'open' : 'none',
    budgets: null,
  };
}

/** The chosen tasks as a plan orders them. @throws task_unknown. */
export function planTasks(cache: TaskCache, options: RunOptions): PlanTask[] {
  const unknown = options.tasks.find((name) => !cache.taskIds.includes(name));
  if (unknown !== undefined) {
    throw new EvaluatorError(
      'task_unknown',
      `--tasks: no task ${JSON.stringify(unknown)} in ${options.cache}; it has ${cache.taskIds.join(', ')}`,
    );
  }
  const chosen =
    options.tasks.length > 0 ? cache.taskIds.filter((name) => options.tasks.includes(name)) : cache.taskIds;
  return chosen.map((name) => planTask(cache.task(name), options.weight));
}
