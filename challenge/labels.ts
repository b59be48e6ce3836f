import { EvaluatorError } from '../guest/errors.ts';
import { openCache } from '../guest/tasks/cache.ts';
import { LABEL_FILE, type Label, labelSchema } from '../guest/tasks/label.ts';
import { taskKey } from '../guest/tasks/task-key.ts';
import type { TaskCache, TaskFile } from '../guest/tasks/types.ts';
import { parseForeignJson } from '../guest/wire/foreign-json.ts';
import type { EvalPlan } from '../guest/wire/plan.ts';
import { parseSchema } from '../guest/wire/scalars.ts';

const LIMITS = { maxBytes: 4096, maxDepth: 4 };

/** What the artifacts of behavioural tasks are, by task digest: whoever has this can compute a score. */
export interface LabelStore {
  /** The labels of a plan's tasks, in its order. @throws score_not_computable when one is not here. */
  labelsOf(plan: Pick<EvalPlan, 'tasks'>): Label[];
}

function storeOf(labels: ReadonlyMap<string, Label>): LabelStore {
  return {
    labelsOf: ({ tasks }) =>
      tasks.map(({ task_id, task_digest }) => {
        const label = labels.get(task_digest);
        if (label !== undefined) return label;
        throw new EvaluatorError('score_not_computable', `task ${task_id}: its label is not known here`);
      }),
  };
}

/** Of a challenge whose tracks need none. */
export const NO_LABELS: LabelStore = storeOf(new Map());

function labelIn(files: readonly TaskFile[], taskId: string): Label {
  const file = files.find(({ path }) => path === LABEL_FILE);
  try {
    if (file) return parseSchema(labelSchema, parseForeignJson(file.bytes, LIMITS), LABEL_FILE).class;
  } catch (error) {
    if (!(error instanceof EvaluatorError)) throw error;
    throw new EvaluatorError('ground_truth_invalid', `task ${taskId}: ${error.message}`, { cause: error });
  }
  throw new EvaluatorError('ground_truth_invalid', `task ${taskId}: no ${LABEL_FILE}`);
}

function hidden(cache: TaskCache, taskId: string, goldenKey: Buffer | null): Promise<TaskFile[]> {
  if (goldenKey === null || cache.cacheId === null) return cache.tests(taskId);
  return cache.unseal(taskId, taskKey(goldenKey, cache.cacheId, cache.task(taskId).taskDigest));
}

/**
 * Reads the labels of one track from a baked cache. Each lies under its task's digest, which a plan pins: a
 * label can be taken for no other task's.
 * @param cacheDigest the cache that plans are made of; another one in `directory` is refused.
 * @param goldenKey what the cache is sealed under; null when its tests lie in plain.
 * @throws cache_*, sealed_*, cache_digest_mismatch, ground_truth_invalid.
 */
export async function readLabels(
  directory: string,
  cacheDigest: string,
  track: string,
  goldenKey: Buffer | null,
): Promise<LabelStore> {
  const cache = await openCache(directory);
  if (cache.cacheDigest !== cacheDigest) {
    const message = `${directory}: cache_digest is ${cache.cacheDigest}, plans say ${cacheDigest}`;
    throw new EvaluatorError('cache_digest_mismatch', message);
  }
  const labels = new Map<string, Label>();
  for (const taskId of cache.taskIds) {
    const { taskDigest, track: own } = cache.task(taskId);
    if (own === track) labels.set(taskDigest, labelIn(await hidden(cache, taskId, goldenKey), taskId));
  }
  return storeOf(labels);
}
