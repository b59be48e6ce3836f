import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, expect } from 'vitest';
import { ensureTestImage } from '../docker/fixtures.ts';
import { childrenOf, evaluator, guestOf, type StartedEvaluator, startEvaluator } from './evaluator.ts';
import { scratchFolder } from './scratch.ts';
import { ownedObjects, SMALL_TASK, writeAgent, writeTasks } from './small-run.ts';
import { removeTaskImages } from './task-images.ts';

/** A run that can be ended. */
export interface Run extends StartedEvaluator {
  name: string;
  guest: number;
  /** Its temporary folder. */
  scratch: string;
}

/** What is on the engine of a guest, by its owner label. */
export async function objectsOf(guest: number): Promise<string[]> {
  return (await ownedObjects()).filter((line) => line.includes(`:${guest}:`));
}

export async function expectNothingLeft({ name, guest, scratch, child }: Run): Promise<void> {
  expect(await objectsOf(guest), name).toEqual([]);
  expect(childrenOf(child.pid ?? 0), name).toEqual([]);
  expect(childrenOf(guest), name).toEqual([]);
  expect(readdirSync(scratch), name).toEqual([]);
}

/** Runs of an agent that sleeps, on one small task. */
export function sleepingRuns() {
  const folder = scratchFolder();
  const cache = join(folder, 'cache');
  let tasks = '';
  let sleeper = '';
  removeTaskImages(['small']);
  beforeAll(async () => {
    await ensureTestImage();
    const open = SMALL_TASK['task.toml']?.replace('allow_internet = false', 'allow_internet = true') ?? '';
    tasks = await writeTasks(join(folder, 'tasks'), { small: { ...SMALL_TASK, 'task.toml': open } });
    sleeper = await writeAgent(join(folder, 'sleeper'), 'sleep 100\n');
    const baked = await evaluator(['bake', '--from', tasks, '--out', cache]);
    expect(baked.code, baked.stderr).toBe(0);
  });

  const start = (name: string, agent: 'oracle' | 'sleeper', reps = '1') => {
    const scratch = join(folder, `${name}-tmp`);
    mkdirSync(scratch);
    const path = agent === 'oracle' ? ['oracle', '--solutions', tasks] : [sleeper];
    const options = ['--cache', cache, '--agent', ...path, '--reps', reps, '--out', join(folder, name)];
    return { name, scratch, ...startEvaluator(['run', ...options, '--json'], { TMPDIR: scratch }) };
  };

  /** Starts a run and waits until its containers, volume and network are there. */
  const running = async (name: string, reps = '1'): Promise<Run> => {
    const started = start(name, 'sleeper', reps);
    await started.says(/"stage":"run","mark":"begin"/);
    const guest = await guestOf(started);
    for (
      let kinds: string[] = [];
      !['container', 'network', 'volume'].every((kind) => kinds.includes(kind));
    ) {
      kinds = (await objectsOf(guest)).map((line) => line.split(' ')[0] ?? '');
      await sleep(50);
    }
    return { ...started, guest };
  };

  /** A run that is ended so soon after its guest began leaves nothing. */
  const expectEndsEarly = async (ms: number): Promise<void> => {
    const started = start(`early-${ms}`, 'sleeper');
    const run = { ...started, guest: await guestOf(started) };
    await started.says(/"stage":"preflight","mark":"begin"/);
    await sleep(ms);
    run.child.kill('SIGTERM');
    expect((await run.ended).code).toBe(143);
    await expectNothingLeft(run);
  };
  return { folder, cache, start, running, expectEndsEarly };
}
