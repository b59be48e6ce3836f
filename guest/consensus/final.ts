import { EvaluatorError } from '../errors.ts';
import { compensatedMean, decodeF64be, encodeF64be } from '../wire/f64.ts';
import type { ScoreRecord, TaskRecord } from '../wire/score-record.ts';
import { trackKind } from './track-kind.ts';

/**
 * The run's score: the mean of all task scores, none left out, in the plan's order. Both figures are null
 * on behavioural tracks, where only a holder of the labels can compute them; `passed_tasks` is null on
 * repositories too, where a task has a score and no verdict (spec/02).
 * @throws track_unknown; record_score_mismatch when a task has no score on a track that needs one.
 */
export function finalScore(
  track: string,
  tasks: readonly Pick<TaskRecord, 'task_id' | 'verdict' | 'score_f64be'>[],
): ScoreRecord['final'] {
  const kind = trackKind(track);
  if (kind === 'behavioural') return { score_f64be: null, passed_tasks: null, total_tasks: tasks.length };
  const scores = tasks.map((task) => {
    if (task.score_f64be !== null) return decodeF64be(task.score_f64be);
    throw new EvaluatorError('record_score_mismatch', `task ${task.task_id}: no score on track "${track}"`);
  });
  return {
    score_f64be: encodeF64be(compensatedMean(scores)),
    passed_tasks: kind === 'terminal-bench' ? tasks.filter((task) => task.verdict === 'PASS').length : null,
    total_tasks: tasks.length,
  };
}
