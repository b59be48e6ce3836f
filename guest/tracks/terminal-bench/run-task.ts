import pLimit from 'p-limit';
import { EvaluatorError } from '../../errors.ts';
import { RepFailed } from '../../trial/faults.ts';
import { type FirstLife, runFirstLife } from '../../trial/first-life.ts';
import { encodeF64be } from '../../wire/f64.ts';
import type { RepRecord } from '../../wire/score-record.ts';
import { diskNeed, finishRep, ordersOf, repNeed, repsOf, together, withCapacity } from '../reps.ts';
import type { RunTask, TrackRun } from '../track.ts';
import { publishedReward } from './published-reward.ts';
import { type Verification, type VerifiedTask, verifyRep } from './verify.ts';

async function finish(
  run: TrackRun,
  task: VerifiedTask,
  first: FirstLife,
  verified: Verification | null,
): Promise<RepRecord> {
  if (run.policy === null)
    throw new EvaluatorError('plan_inconsistent', 'plan: terminal-bench needs a policy');
  const reward = verified ? publishedReward(verified.reward, run.policy) : null;
  const judgement = {
    value: reward === null ? null : { reward_f64be: encodeF64be(reward) },
    probeSha256: null,
    verifierMode: first.failure === null ? task.trial.verifier.mode : null,
  };
  return finishRep(run, task, first, judgement, {
    verifierMs: Math.round(verified?.verifierMs ?? 0),
    testOutput: verified?.testOutput ?? null,
  });
}

/** Verifies a completed rep; a container that cannot take its tests turns it into a failed one. */
async function verified(run: TrackRun, task: VerifiedTask, first: FirstLife): Promise<RepRecord> {
  try {
    const start = run.context.clock.monotonicMs();
    const verification = await verifyRep(run.context, first.sandbox, task);
    first.phases.add('tests', verification.verifierMs);
    first.phases.add('verify', run.context.clock.monotonicMs() - start - verification.verifierMs);
    return await finish(run, task, first, verification);
  } catch (error) {
    if (!(error instanceof RepFailed)) throw error;
    return finish(run, task, { ...first, failure: error.failure }, null);
  }
}

/**
 * Terminal-bench: the containers of completed reps are kept until the last agent of the task has ended, and only
 * then see the tests (spec/03, 7).
 */
export const runTask: RunTask = async (run, task, agent, index) => {
  const { mode } = task.trial.verifier;
  const orders = ordersOf(index);
  const runRep = async (rep: number): Promise<FirstLife | RepRecord> => {
    const first = await runFirstLife(run.context, task.trial, agent, rep, run.runStartMs);
    if (first.failure !== null) return finish(run, task, first, null);
    return mode === 'live' ? verified(run, task, first) : first;
  };
  return withCapacity(run, diskNeed(task, agent, run.r), orders.task, async () => {
    const lives = await together(
      run,
      repsOf(run).map((rep) => withCapacity(run, repNeed(task, agent), orders.life(rep), () => runRep(rep))),
    );
    // One after another where each needs disk beside its agent's container.
    const atOnce = pLimit(mode === 'artifact' ? 1 : run.r);
    const verifyLater = (first: FirstLife, rep: number) =>
      atOnce(() => withCapacity(run, repNeed(task, null), orders.end(rep), () => verified(run, task, first)));
    return together(
      run,
      lives.map(async (life, rep) => ('outcome' in life ? life : verifyLater(life, rep))),
    );
  });
};
