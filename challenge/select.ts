import { createHmac } from 'node:crypto';
import { EvaluatorError } from '../guest/errors.ts';
import { sha256Hex } from '../guest/wire/digest.ts';

export interface DrawSubject {
  hotkey: string;
  agentHash: string;
  /** The sealed cache's id; an unsealed one has only its digest. */
  cacheId: string;
  mechanismDigest: string;
}

/**
 * The seed of a draw, hex: the same for the same agent within an epoch, and not to be guessed without the
 * epoch secret (spec/05: a public or re-drawable seed could be ground by ZIP comments).
 */
export function selectionSeed(epochSecret: Buffer, subject: DrawSubject): string {
  const { hotkey, agentHash, cacheId, mechanismDigest } = subject;
  const message = [hotkey, agentHash, cacheId, mechanismDigest].join(':');
  return createHmac('sha256', epochSecret).update(message).digest('hex');
}

/**
 * The first `n` tasks in the order of sha256(seed ":" task_id), listed ascending by id (spec/05).
 * @throws selection_impossible when there are fewer than `n`.
 */
export function selectTasks<T extends { task_id: string }>(
  tasks: readonly T[],
  seed: string,
  n: number,
): T[] {
  if (n > tasks.length) {
    throw new EvaluatorError(
      'selection_impossible',
      `select: ${n} tasks asked of a cache with ${tasks.length}`,
    );
  }
  return tasks
    .map((task) => ({ task, rank: sha256Hex(`${seed}:${task.task_id}`) }))
    .sort((a, b) => (a.rank < b.rank ? -1 : 1))
    .slice(0, n)
    .map(({ task }) => task)
    .sort((a, b) => (a.task_id < b.task_id ? -1 : 1));
}
