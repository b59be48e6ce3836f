import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connectDocker } from '../../guest/engine/docker.ts';
import { readManifest } from '../../guest/tasks/cache.ts';
import { parseTaskToml } from '../../guest/tasks/task-toml.ts';
import { GUEST_BASE } from '../images/base.ts';
import { readyBase } from '../images/build.ts';
import { findTasks } from '../tasks/source.ts';
import { meetsShippedFloors } from './guest-image.ts';
import { SHIPPED_MECHANISM } from './guest-process.ts';
import type { RunOptions } from './options.ts';
import { verifyRound } from './terms.ts';

type Chosen = Pick<RunOptions, 'cache' | 'track' | 'tasks'>;

/**
 * How many tasks a run is of, before any is baked or hashed.
 * @throws cache_unreadable, task_unknown, task_toml_invalid, and the other codes of a folder of tasks.
 */
export async function countChosen({ cache, track, tasks }: Chosen): Promise<number> {
  if (tasks.length > 0) return new Set(tasks).size;
  if (existsSync(join(cache, 'manifest.json')))
    return (await readManifest(cache)).tasks.filter((task) => task.track === track).length;
  const files = [...(await findTasks([cache])).values()].map((folder) => join(folder, 'task.toml'));
  const configs = await Promise.all(files.map(async (file) => parseTaskToml(await readFile(file), file)));
  return configs.filter((config) => config.track === track).length;
}

/**
 * Refuses, before tasks are baked for an image that is built of them, what its mechanism will not have, and a
 * machine that cannot build it. That of an engine below the shipped floors is a desk's, with rounds of any size.
 * @throws build_unavailable, plan_contradicts_mechanism, track_unknown, engine_*, and the codes of `countChosen`.
 */
export async function verifyImageTerms(options: RunOptions): Promise<void> {
  if (options.image?.kind !== 'built') return;
  if (await meetsShippedFloors(connectDocker(options.engineSocket))) {
    const tasks = await countChosen(options);
    // None is refused by its name.
    if (tasks > 0) verifyRound(options, await readFile(SHIPPED_MECHANISM), tasks);
  }
  await readyBase(GUEST_BASE, 'buildah');
}
