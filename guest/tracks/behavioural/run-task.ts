import { parseBehaviouralResult } from '../audit/agent-result.ts';
import { runAudit } from '../audit/run-rep.ts';
import { diskNeed, finishRep, ordersOf, repNeed, repsOf, together, withCapacity } from '../reps.ts';
import type { RunTask } from '../track.ts';

/**
 * Behavioural tracks: an agent says of an artifact ALLOW, WARN or BLOCK. Whether that is right is not known
 * here, and nothing that says so is opened: only a holder of the labels computes a score (spec/02).
 */
export const runTask: RunTask = async (run, task, agent, index) => {
  const orders = ordersOf(index);
  return withCapacity(run, diskNeed(task, agent, run.r), orders.task, async () => {
    const audited = await task.audited();
    const runRep = async (rep: number) => {
      const { first, answer, written, probeSha256 } = await runAudit(
        run,
        task,
        agent,
        rep,
        audited,
        parseBehaviouralResult,
      );
      const value = answer === null ? null : { verdict: answer };
      return finishRep(run, task, first, { value, probeSha256, verifierMode: null }, { answer: written });
    };
    return together(
      run,
      repsOf(run).map((rep) => withCapacity(run, repNeed(task, agent), orders.life(rep), () => runRep(rep))),
    );
  });
};
