import { EvaluatorError } from '../errors.ts';
import type { CachedTask } from '../tasks/types.ts';
import type { TrialTask } from '../trial/session.ts';
import type { TrackRules } from '../wire/mechanism.ts';
import type { PlanTask } from '../wire/plan.ts';
import type { Limits } from '../wire/score-record.ts';

const MIB = 1024 * 1024;

/** A task's budgets and limits: the plan's, else the mechanism's, else the task's own (spec/02). */
export function limitsOf(task: CachedTask, planned: PlanTask, rules: TrackRules): Limits {
  const { environment } = task.config;
  const cpus = rules.cpus === 'task' ? environment.cpus : rules.cpus;
  const memoryMb = rules.memory_mb === 'task' ? environment.memoryMb : rules.memory_mb;
  const timeoutMs = Math.round(task.config.agent.timeoutSec * 1000);
  const cpuDefault = rules.cpu_budget_ms === 'task' ? Math.round(timeoutMs * cpus) : rules.cpu_budget_ms;
  const wallDefault = rules.wall_budget_ms === 'task' ? timeoutMs : rules.wall_budget_ms;
  return {
    nano_cpus: Math.round(cpus * 1e9),
    // Multiplied, not shifted: 2048 << 20 is negative.
    memory_bytes: memoryMb * MIB,
    storage_bytes: environment.storageMb * MIB,
    cpu_budget_ms: planned.budgets?.cpu_budget_ms ?? cpuDefault,
    wall_budget_ms: planned.budgets?.wall_budget_ms ?? wallDefault,
  };
}

/** The cached task is the one the plan ordered. @throws task_digest_mismatch, plan_inconsistent. */
export function verifyPlannedTask(task: CachedTask, planned: PlanTask, track: string): void {
  const differs = (what: string, cached: string, ordered: string) =>
    new EvaluatorError(
      'task_digest_mismatch',
      `task ${task.taskId}: ${what} is ${cached} in the cache, ${ordered} in the plan`,
    );
  if (task.taskDigest !== planned.task_digest)
    throw differs('task_digest', task.taskDigest, planned.task_digest);
  if (task.image !== planned.image) throw differs('image', task.image, planned.image);
  if (task.verifierMode !== planned.verifier) throw differs('verifier', task.verifierMode, planned.verifier);
  if (task.track !== track) throw differs('track', task.track, track);
  if (planned.network === 'open' && !task.config.environment.allowInternet) {
    throw new EvaluatorError(
      'plan_inconsistent',
      `task ${task.taskId}: network is open, but the task does not allow internet`,
    );
  }
}

/** What a trial of this task needs, from the cache, the plan, the mechanism and the image. */
export function toTrialTask(
  task: CachedTask,
  planned: PlanTask,
  rules: TrackRules,
  image: TrialTask['image'],
): TrialTask {
  const { config } = task;
  return {
    taskId: task.taskId,
    image,
    instruction: task.instruction,
    limits: limitsOf(task, planned, rules),
    pids: rules.pids,
    capAdd: config.environment.capAdd,
    network: planned.network,
    env: config.environment.env,
    files: [],
    verifier: {
      mode: task.verifierMode,
      artifactPaths: task.artifactPaths,
      timeoutMs: Math.round(config.verifier.timeoutSec * 1000),
      env: config.verifier.env,
    },
  };
}
