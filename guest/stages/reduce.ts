import { finalScore } from '../consensus/final.ts';
import { reduceTask } from '../consensus/task.ts';
import { trackRules } from '../wire/mechanism.ts';
import { planDigest } from '../wire/plan.ts';
import type { ScoreRecord, TaskRecord } from '../wire/score-record.ts';
import type { UnlockedOrder } from './order.ts';
import type { RunOutcome } from './run.ts';

/** Pure: the reps of each task become its verdict, the tasks the score, and all of it the record to sign. */
export function reduce(order: UnlockedOrder, outcome: RunOutcome): ScoreRecord {
  const { plan, pinned, cache, context } = order;
  const rules = trackRules(pinned.mechanism, plan.track);
  const tasks = order.tasks.map((task, i): TaskRecord => {
    const reps = [...(outcome.reps[i] ?? [])];
    return {
      task_id: task.trial.taskId,
      image_source: task.trial.image.source,
      limits: task.trial.limits,
      ...reduceTask(plan.track, rules, plan.policy, reps),
      reps,
    };
  });
  return {
    schema_version: 2,
    eval_run_id: plan.eval_run_id,
    grant_id: order.grantId,
    plan_digest: planDigest(plan),
    mechanism_digest: pinned.digest,
    cache_digest: cache.cacheDigest,
    toolchain_digest: cache.toolchainDigest,
    track: plan.track,
    r: plan.r,
    ranked: plan.ranked,
    tasks,
    final: finalScore(plan.track, tasks),
    agent_runtime_image: plan.agent_runtime_image,
    dependencies: [...order.dependencies],
    machine: { cpus: context.info.cpus, memory_bytes: context.info.memoryBytes },
    infra: {
      faults: context.counters.faults,
      retried: tasks.flatMap((task) => task.reps).reduce((sum, rep) => sum + rep.start_retries, 0),
    },
  };
}
