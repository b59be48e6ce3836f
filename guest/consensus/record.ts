import { type Code, EvaluatorError } from '../errors.ts';
import { type PinnedMechanism, type TrackRules, trackRules } from '../wire/mechanism.ts';
import { type EvalPlan, type PlanTask, planDigest } from '../wire/plan.ts';
import type { ScoreRecord, TaskRecord } from '../wire/score-record.ts';
import { verifyDependencies } from './dependencies.ts';
import { finalScore } from './final.ts';
import { verifyPlanAgainstMechanism } from './plan-mechanism.ts';
import { verifyRep } from './rep-checks.ts';
import { reduceTask } from './task.ts';

function requireEqual(code: Code, field: string, found: unknown, expected: unknown): void {
  if (found !== expected) {
    throw new EvaluatorError(code, `record: ${field} is ${String(found)}, expected ${String(expected)}`);
  }
}

/** The record's head repeats what the plan ordered. */
function verifyHead(record: ScoreRecord, plan: EvalPlan, pinned: PinnedMechanism): void {
  requireEqual('record_run_mismatch', 'eval_run_id', record.eval_run_id, plan.eval_run_id);
  requireEqual('record_plan_mismatch', 'plan_digest', record.plan_digest, planDigest(plan));
  requireEqual('record_mechanism_mismatch', 'mechanism_digest', record.mechanism_digest, pinned.digest);
  requireEqual('record_cache_mismatch', 'cache_digest', record.cache_digest, plan.cache_digest);
  requireEqual(
    'record_toolchain_mismatch',
    'toolchain_digest',
    record.toolchain_digest,
    plan.toolchain_digest,
  );
  requireEqual(
    'record_runtime_mismatch',
    'agent_runtime_image',
    record.agent_runtime_image,
    plan.agent_runtime_image,
  );
  requireEqual(
    'record_grant_mismatch',
    'grant_id is null',
    record.grant_id === null,
    plan.key_release === null,
  );
  requireEqual('record_track_mismatch', 'track', record.track, plan.track);
  requireEqual('record_r_mismatch', 'r', record.r, plan.r);
  requireEqual('record_ranked_mismatch', 'ranked', record.ranked, plan.ranked);
  requireEqual('record_tasks_mismatch', 'number of tasks', record.tasks.length, plan.tasks.length);
}

const MIB = 1024 * 1024;

/** Limits that the plan or the mechanism pins; `task` ones are the cache's, which no record carries. */
function verifyLimits(task: TaskRecord, ordered: PlanTask, rules: TrackRules): void {
  const { nano_cpus, memory_bytes } = task.limits;
  const at = `task ${task.task_id} limits`;
  if (rules.cpus !== 'task')
    requireEqual('record_limits_mismatch', `${at}.nano_cpus`, nano_cpus, rules.cpus * 1e9);
  if (rules.memory_mb !== 'task')
    requireEqual('record_limits_mismatch', `${at}.memory_bytes`, memory_bytes, rules.memory_mb * MIB);
  for (const key of ['cpu_budget_ms', 'wall_budget_ms'] as const) {
    const pinned = ordered.budgets?.[key] ?? rules[key];
    if (pinned !== 'task') {
      requireEqual('record_limits_mismatch', `${at}.${key}`, task.limits[key], pinned);
    }
  }
}

function verifyTask(
  task: TaskRecord,
  ordered: PlanTask,
  plan: EvalPlan,
  { mechanism }: PinnedMechanism,
): void {
  const rules = trackRules(mechanism, plan.track);
  const at = `task ${task.task_id}`;
  requireEqual('record_tasks_mismatch', 'task_id', task.task_id, ordered.task_id);
  verifyLimits(task, ordered, rules);
  requireEqual('record_reps_mismatch', `${at} number of reps`, task.reps.length, plan.r);
  for (const [index, rep] of task.reps.entries()) {
    requireEqual('record_reps_mismatch', `${at} rep index`, rep.rep, index);
    verifyRep(rep, task, ordered, plan, mechanism);
  }
  const reduced = reduceTask(plan.track, rules, plan.policy, task.reps);
  requireEqual('record_completed_mismatch', `${at} completed`, task.completed, reduced.completed);
  requireEqual('record_verdict_mismatch', `${at} verdict`, task.verdict, reduced.verdict);
  requireEqual('record_score_mismatch', `${at} score_f64be`, task.score_f64be, reduced.score_f64be);
}

/** Reps are distinct: no container and no probe stands behind two of them (spec/01). */
function verifyDistinct(record: ScoreRecord): void {
  const containers = new Set<string>();
  const probes = new Set<string>();
  for (const task of record.tasks) {
    for (const rep of task.reps) {
      const at = `record: task ${task.task_id} rep ${rep.rep}`;
      if (containers.has(rep.container_id)) {
        throw new EvaluatorError('record_container_repeated', `${at}: its container_id was seen before`);
      }
      containers.add(rep.container_id);
      if (rep.probe_sha256 === null) continue;
      if (probes.has(rep.probe_sha256)) {
        throw new EvaluatorError('record_probe_repeated', `${at}: its probe_sha256 was seen before`);
      }
      probes.add(rep.probe_sha256);
    }
  }
}

function verifyInfra(record: ScoreRecord): void {
  const retries = record.tasks.flatMap((task) => task.reps).reduce((sum, rep) => sum + rep.start_retries, 0);
  requireEqual('record_infra_inconsistent', 'infra.retried', record.infra.retried, retries);
  if (record.infra.faults < retries) {
    throw new EvaluatorError(
      'record_infra_inconsistent',
      `record: infra.faults is ${record.infra.faults}, less than the ${retries} retries they led to`,
    );
  }
}

/**
 * The record is what the plan ordered, and every verdict and score in it is what its reps reduce to. Run by
 * the guest before it signs, and by whoever relies on it. Says nothing about signatures, time or the quote.
 * @throws the record_* codes; mechanism_digest_mismatch, track_unknown, plan_contradicts_mechanism.
 */
export function verifyRecord(record: ScoreRecord, plan: EvalPlan, pinned: PinnedMechanism): void {
  verifyPlanAgainstMechanism(plan, pinned);
  verifyHead(record, plan, pinned);
  for (const [index, ordered] of plan.tasks.entries()) {
    const task = record.tasks[index];
    if (task) verifyTask(task, ordered, plan, pinned);
  }
  verifyDistinct(record);
  verifyDependencies(record, pinned.mechanism);
  verifyInfra(record);
  const final = finalScore(plan.track, record.tasks);
  for (const key of ['score_f64be', 'passed_tasks', 'total_tasks'] as const) {
    requireEqual('record_final_mismatch', `final.${key}`, record.final[key], final[key]);
  }
}
