import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { readGoldenKey } from '../../challenge/golden-key.ts';
import { parseAgentPackage } from '../../guest/agent/package.ts';
import type { AgentPackage } from '../../guest/agent/types.ts';
import { trackKind } from '../../guest/consensus/track-kind.ts';
import { connectDocker } from '../../guest/engine/docker.ts';
import { EvaluatorError } from '../../guest/errors.ts';
import { verifyEngineFloor } from '../../guest/stages/engine-floor.ts';
import { openCache } from '../../guest/tasks/cache.ts';
import type { CachedTask, TaskCache } from '../../guest/tasks/types.ts';
import { parseMechanism } from '../../guest/wire/mechanism.ts';
import type { PlanTask } from '../../guest/wire/plan.ts';
import { builtinAgent, isBuiltinAgent } from '../agent/builtin.ts';
import { zipDirectory } from '../agent/zip-directory.ts';
import { bakeTasks } from '../tasks/bake.ts';
import { writeGoldenKey } from '../tasks/golden-key.ts';
import { engineAbsence } from '../tasks/image-store.ts';
import { buildTaskToolchain } from '../toolchain/build.ts';
import type { RunOptions } from './options.ts';

/**
 * The agent that was asked for: built in, a ZIP as it is, or a folder zipped deterministically.
 * @throws usage, agent_package_refused, agent_manifest_invalid.
 */
export async function loadAgent(agent: string): Promise<AgentPackage> {
  if (isBuiltinAgent(agent)) return builtinAgent(agent);
  return parseAgentPackage(await readPackage(agent));
}

async function readPackage(path: string): Promise<Buffer> {
  try {
    const found = statSync(path);
    if (found.isDirectory()) return await zipDirectory(path);
    if (found.isFile()) return readFileSync(path);
  } catch (cause) {
    if (cause instanceof EvaluatorError) throw cause;
    throw new EvaluatorError('usage', `--agent ${path}: cannot be read (${(cause as Error).message})`, {
      cause,
    });
  }
  throw new EvaluatorError('usage', `--agent ${path}: neither a folder nor a file`);
}

/**
 * An engine answers at the socket, and is new enough for this run.
 * @throws engine_absent, engine_below_floor.
 */
export async function verifyEngineReady(options: RunOptions, mechanismFile: string): Promise<void> {
  const info = await connectDocker(options.engineSocket)
    .info()
    .catch((error) => {
      throw engineAbsence(options.engineSocket, error);
    });
  verifyEngineFloor(info, parseMechanism(readFileSync(mechanismFile)).mechanism.floors);
}

export interface LoadedCache {
  cache: TaskCache;
  /** Plain tasks with solutions, where there are any. */
  solutions: string | null;
  /** The file of the key that the cache is sealed under; null when its tests lie in plain. */
  goldenKey: string | null;
  /** Whether this run has baked it, or was given it. */
  origin: 'given' | 'made';
  /** The chosen tasks, as a plan orders them. */
  planned: readonly PlanTask[];
}

function verifyGoldenKeyGiven(cache: TaskCache, options: RunOptions): void {
  if ((cache.cacheId === null) === (options.goldenKey === null)) return;
  throw new EvaluatorError(
    'usage',
    cache.cacheId === null
      ? `--golden-key: ${options.cache} is not sealed; leave the option out`
      : `--cache ${options.cache} is sealed: name the key it was baked under with --golden-key`,
  );
}

/** The baked cache that was given, or a sealed bake of the plain folder, made below `work`. */
async function bakedCache(
  options: RunOptions,
  work: string,
  onProgress: (message: string) => void,
): Promise<Omit<LoadedCache, 'planned'>> {
  if (existsSync(join(options.cache, 'manifest.json'))) {
    const cache = await openCache(options.cache);
    verifyGoldenKeyGiven(cache, options);
    return { cache, solutions: options.solutions, goldenKey: options.goldenKey, origin: 'given' };
  }
  const goldenKey = options.goldenKey ?? join(work, 'golden.key');
  if (options.goldenKey === null) await writeGoldenKey(goldenKey);
  const out = join(work, 'cache');
  await bakeTasks({
    from: [options.cache],
    out,
    only: options.tasks,
    track: options.track,
    live: [],
    seal: { goldenKey: readGoldenKey(goldenKey), random: randomBytes },
    engineSocket: options.engineSocket,
    toolchain: (made) => buildTaskToolchain({ ...made, policy: 'served' }),
    check: null,
    // A run that is ended ends as a whole, and takes its scratch folder along.
    signal: new AbortController().signal,
    onProgress,
  });
  return {
    cache: await openCache(out),
    solutions: options.solutions ?? options.cache,
    goldenKey,
    origin: 'made',
  };
}

/**
 * The tasks to be run, from a cache whose every byte was checked.
 * @throws usage, cache_*, task_*, image_*, engine_*, cache_not_sealed.
 */
export async function loadCache(
  options: RunOptions,
  work: string,
  onProgress: (message: string) => void,
): Promise<LoadedCache> {
  const { cache, solutions, goldenKey, origin } = await bakedCache(options, work, onProgress);
  if (options.weight === 'ranked' && cache.cacheId === null) {
    throw new EvaluatorError(
      'cache_not_sealed',
      `--cache ${options.cache}: its tests lie in plain; a ranked run needs a sealed cache (\`bake --seal\`)`,
    );
  }
  if (options.agent === 'oracle' && solutions === null) {
    throw new EvaluatorError(
      'usage',
      '--agent oracle: a baked cache has no solutions; name the plain tasks with --solutions',
    );
  }
  return { cache, solutions, goldenKey, origin, planned: planTasks(cache, options) };
}

/** Where the mechanism offers a model, the agent of every task reaches that alone. */
export function withModelAccess(loaded: LoadedCache, mechanismFile: string): LoadedCache {
  if (parseMechanism(readFileSync(mechanismFile)).mechanism.inference === null) return loaded;
  return { ...loaded, planned: loaded.planned.map((task) => ({ ...task, network: 'inference' })) };
}

function planTask(task: CachedTask, weight: RunOptions['weight']): PlanTask {
  const isTerminal = trackKind(task.track) === 'terminal-bench';
  const open = isTerminal && weight === 'calibration' && task.config.environment.allowInternet;
  return {
    task_id: task.taskId,
    task_digest: task.taskDigest,
    image: task.image,
    verifier: task.verifierMode,
    network: open ? 'open' : 'none',
    budgets: null,
  };
}

/** The chosen tasks of the track, as a plan orders them. @throws task_unknown. */
function planTasks(cache: TaskCache, options: RunOptions): PlanTask[] {
  const ofTrack = cache.taskIds.filter((name) => cache.task(name).track === options.track);
  const unknown = options.tasks.find((name) => !ofTrack.includes(name));
  if (unknown !== undefined) {
    throw new EvaluatorError(
      'task_unknown',
      `--tasks: no task ${JSON.stringify(unknown)} of track ${options.track} in ${options.cache}; it has ${ofTrack.join(', ')}`,
    );
  }
  if (ofTrack.length === 0)
    throw new EvaluatorError('task_unknown', `--track ${options.track}: ${options.cache} has no such task`);
  const chosen = options.tasks.length > 0 ? ofTrack.filter((name) => options.tasks.includes(name)) : ofTrack;
  return chosen.map((name) => planTask(cache.task(name), options.weight));
}
