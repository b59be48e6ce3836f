import { EvaluatorError } from '../../errors.ts';
import { encodeF64be } from '../../wire/f64.ts';
import { type Finding, parseRepositoryResult } from '../audit/agent-result.ts';
import { type AuditedRep, runAudit } from '../audit/run-rep.ts';
import { diskNeed, finishRep, ordersOf, repNeed, repsOf, together, withCapacity } from '../reps.ts';
import type { RunTask, TrackTask } from '../track.ts';
import { GROUND_TRUTH_FILE, type GroundTruth, parseGroundTruth } from './ground-truth.ts';
import { scoreFindings } from './score.ts';

/** What is planted in this task's repository; read only when no agent of it will start again. */
async function groundTruth(task: TrackTask): Promise<GroundTruth> {
  const file = (await task.tests()).find(({ path }) => path === GROUND_TRUTH_FILE);
  if (file) return parseGroundTruth(file.bytes, `task ${task.trial.taskId}`);
  throw new EvaluatorError('ground_truth_invalid', `task ${task.trial.taskId}: no ${GROUND_TRUTH_FILE}`);
}

/**
 * Repositories: an agent reports findings, and each completed rep's are scored alone against the sealed ground
 * truth, which is opened when the last agent of the task is dead (spec/02).
 */
export const runTask: RunTask = async (run, task, agent, index) => {
  const orders = ordersOf(index);
  return withCapacity(run, diskNeed(task, agent, run.r), orders.task, async () => {
    const audited = await task.audited();
    const reps = await together(
      run,
      repsOf(run).map((rep) =>
        withCapacity(run, repNeed(task, agent), orders.life(rep), () =>
          runAudit(run, task, agent, rep, audited, parseRepositoryResult),
        ),
      ),
    );
    const truth = await groundTruth(task);
    const finish = ({ first, answer, written, probeSha256 }: AuditedRep<Finding[]>) => {
      const value = answer && { score_f64be: encodeF64be(scoreFindings(answer, truth)) };
      return finishRep(run, task, first, { value, probeSha256, verifierMode: null }, { answer: written });
    };
    return together(run, reps.map(finish));
  });
};
