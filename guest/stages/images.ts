import pLimit from 'p-limit';
import type { Engine, ImageInfo } from '../engine/port.ts';
import { EvaluatorError } from '../errors.ts';
import type { CachedTask } from '../tasks/types.ts';
import { LABEL } from '../trial/labels.ts';
import type { TrialTask } from '../trial/session.ts';

const PULLS_AT_ONCE = 2;

function unsupported(task: CachedTask, what: string): EvaluatorError {
  return new EvaluatorError('image_unsupported', `task ${task.taskId}: image ${task.image} ${what}`);
}

/** @throws image_unsupported: VOLUME cannot be overridden, and a label of ours would meet the sweep (spec/08). */
export function verifyImage(task: CachedTask, image: ImageInfo): void {
  if (image.os !== 'linux' || image.architecture !== 'amd64') {
    throw unsupported(task, `is for ${image.os}/${image.architecture}, not linux/amd64`);
  }
  if (image.volumes.length > 0) throw unsupported(task, `declares VOLUME ${image.volumes[0]}`);
  const label = Object.values(LABEL).find((name) => Object.hasOwn(image.labels, name));
  if (label) throw unsupported(task, `carries the label ${label}`);
}

async function present(engine: Engine, task: CachedTask): Promise<ImageInfo> {
  const found = await engine.image(task.image);
  if (found) return found;
  if (task.imageSource !== 'pulled') {
    throw new EvaluatorError(
      'image_missing',
      `task ${task.taskId}: image ${task.image} is not on this engine; bake the task here again`,
    );
  }
  await engine.pull(task.image);
  const pulled = await engine.image(task.image);
  if (!pulled)
    throw new EvaluatorError(
      'image_missing',
      `task ${task.taskId}: image ${task.image} is absent after its pull`,
    );
  return pulled;
}

/** The images of all tasks, pulled by digest where needed, checked, by task id. @throws image_*, engine_*. */
export async function resolveImages(
  engine: Engine,
  tasks: readonly CachedTask[],
): Promise<Map<string, TrialTask['image']>> {
  const limit = pLimit(PULLS_AT_ONCE);
  const resolved = await Promise.all(
    tasks.map((task) =>
      limit(async () => {
        const image = await present(engine, task);
        verifyImage(task, image);
        const { id, env } = image;
        return [
          task.taskId,
          { id, env, workdir: image.workingDir || '/', source: task.imageSource },
        ] as const;
      }),
    ),
  );
  return new Map(resolved);
}
