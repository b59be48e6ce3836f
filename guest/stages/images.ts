import pLimit from 'p-limit';
import type { ImageInfo } from '../engine/port.ts';
import { EvaluatorError } from '../errors.ts';
import { TASK_IMAGE_EXPECTATION, verifyTaskImage } from '../tasks/image-rules.ts';
import type { CachedTask } from '../tasks/types.ts';
import { withStartRetries } from '../trial/faults.ts';
import type { TrialContext, TrialTask } from '../trial/session.ts';

const PULLS_AT_ONCE = 2;

type PullContext = Pick<TrialContext, 'engine' | 'signal' | 'counters' | 'maxStartRetries'>;

async function present(context: PullContext, task: CachedTask): Promise<ImageInfo> {
  const { engine } = context;
  const found = await engine.image(task.image);
  if (found) return found;
  if (task.imageSource !== 'pulled') {
    throw new EvaluatorError(
      'image_missing',
      `task ${task.taskId}: image ${task.image} is not on this engine; bake the task here again`,
    );
  }
  await withStartRetries(context, () => engine.pull(task.image));
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
  context: PullContext,
  tasks: readonly CachedTask[],
): Promise<Map<string, TrialTask['image']>> {
  const limit = pLimit(PULLS_AT_ONCE);
  const resolved = await Promise.all(
    tasks.map((task) =>
      limit(async () => {
        const image = await present(context, task);
        verifyTaskImage(image, TASK_IMAGE_EXPECTATION, `task ${task.taskId}`);
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
