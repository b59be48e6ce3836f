import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect } from 'vitest';
import { LOCKED_NODE, makeGuestBase } from '../../scripts/images/base.ts';
import { ensureTestImage } from '../docker/fixtures.ts';
import { type Ended, evaluator, type StartedEvaluator, startEvaluator } from './evaluator.ts';
import { guestOf, inspect, removeImages, type Seen, trialsOf } from './guest-container.ts';
import { scratchFolder } from './scratch.ts';
import { SMALL_TASK, writeAgent, writeTasks } from './small-run.ts';
import { removeTaskImages } from './task-images.ts';

export interface ImageRun extends StartedEvaluator {
  /** Its temporary folder. */
  scratch: string;
}

/** The run that has built the image, and how it went. */
export interface Built {
  ended: Ended;
  tag: string;
  seen: Seen;
}

/** Ranked runs of two reps, with the guest as the image that the first of them, `built`, has built. */
export function imageRuns() {
  const folder = scratchFolder();
  const place = (name: string) => join(folder, name);
  let built: Built | null = null;

  const start = (
    name: string,
    image: readonly string[],
    agent: 'solver' | 'sleeper',
    program?: string,
  ): ImageRun => {
    const scratch = place(`${name}-tmp`);
    mkdirSync(scratch);
    const sealed = ['--cache', place('sealed'), '--golden-key', place('golden.key')];
    const reps = ['--reps', '2', '--concurrency', '2'];
    const options = [...sealed, ...reps, '--agent', place(agent), '--ranked', '--out', place(name), '--json'];
    const args = ['--image', ...image, ...options];
    const started = program
      ? startEvaluator(args, { TMPDIR: scratch }, program)
      : startEvaluator(['run', ...args], { TMPDIR: scratch });
    return { scratch, ...started };
  };

  /** What `built` has built. */
  const first = (): Built => {
    if (built === null) throw new Error('no image was built');
    return built;
  };

  /** A run of the image that is here, when its agents sleep. */
  const running = async (name: string): Promise<ImageRun & { guest: string; desk: string }> => {
    const run = start(name, [first().tag], 'sleeper');
    await run.says(/"stage":"run","mark":"begin"/);
    const { guest, desk } = await guestOf(run);
    await trialsOf(guest, 2);
    return { ...run, guest, desk };
  };

  removeTaskImages(['small']);
  beforeAll(async () => {
    await ensureTestImage();
    await makeGuestBase(LOCKED_NODE, () => {});
    const tasks = await writeTasks(place('tasks'), { small: SMALL_TASK });
    // Long enough to be looked at.
    await writeAgent(place('solver'), 'echo right > /app/answer\nsleep 3\n');
    await writeAgent(place('sleeper'), 'sleep 100\n');
    expect((await evaluator(['keygen', '--out', place('golden.key')])).code).toBe(0);
    const seal = ['--seal', place('golden.key'), '--out', place('sealed')];
    const baked = await evaluator(['bake', '--from', tasks, ...seal]);
    expect(baked.code, baked.stderr).toBe(0);

    const run = start('built', [], 'solver');
    await run.says(/"stage":"run","mark":"begin"/);
    const { guest, desk } = await guestOf(run);
    const trials = await Promise.all((await trialsOf(guest, 2)).map(inspect));
    const container = await inspect(guest);
    const status = readFileSync(`/proc/${container.State.Pid}/status`, 'utf8');
    const { RepoTags } = await inspect(container.Image);
    const tag = RepoTags.find((name) => name.startsWith('cvm-evaluator/')) ?? '';
    const ended = await run.ended;
    built = { ended, tag, seen: { guest: container, desk, trials, status } };
    expect(ended.code, ended.stderr).toBe(0);
  }, 600_000);
  afterAll(async () => {
    if (built !== null) await removeImages(built.tag);
  });
  return { folder, place, start, running, first };
}
