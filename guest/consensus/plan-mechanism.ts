import { EvaluatorError } from '../errors.ts';
import { type PinnedMechanism, type TrackRules, trackRules } from '../wire/mechanism.ts';
import type { EvalPlan } from '../wire/plan.ts';
import { METRIC_OF_KIND, trackKind } from './track-kind.ts';

/** A ranked round is whole; a calibration run may try a part of one. */
export function isRound(tasks: number, ranked: boolean, { tasks_per_round: round }: TrackRules): boolean {
  if (round === 'plan') return true;
  return ranked ? tasks === round : tasks <= round;
}

function contradiction(plan: EvalPlan, rules: TrackRules): string | null {
  const metric = METRIC_OF_KIND[trackKind(plan.track)];
  if (rules.metric !== metric) return `metric: the mechanism says ${rules.metric}, this track has ${metric}`;
  if (rules.r !== 'plan' && rules.r !== plan.r)
    return `r: the mechanism pins ${rules.r}, the plan says ${plan.r}`;
  if (rules.policy !== 'plan' && rules.policy !== plan.policy) {
    return `policy: the mechanism pins ${rules.policy}, the plan says ${plan.policy}`;
  }
  if (rules.policy === 'plan' && plan.policy === null) return 'policy: the plan must say vote or mean';
  if (rules.min_completed > plan.r)
    return `min_completed: ${rules.min_completed} reps of ${plan.r} cannot be`;
  if (!isRound(plan.tasks.length, plan.ranked, rules))
    return `tasks: the mechanism pins ${rules.tasks_per_round} a round, the plan has ${plan.tasks.length}`;
  const networks = rules.networks[plan.ranked ? 'ranked' : 'calibration'];
  for (const { task_id, budgets, network, verifier } of plan.tasks) {
    // A live task's agent is not dead when it ends, and an audit reads what a dead one left.
    if (verifier !== 'restart' && trackKind(plan.track) !== 'terminal-bench')
      return `tasks ${task_id} verifier: ${verifier} is of terminal-bench alone`;
    if (!networks.includes(network))
      return `tasks ${task_id} network: the mechanism allows ${networks.join(', ')}, the plan says ${network}`;
    for (const key of ['cpu_budget_ms', 'wall_budget_ms'] as const) {
      if (budgets && rules[key] !== 'task' && rules[key] !== budgets[key]) {
        return `tasks ${task_id} ${key}: the mechanism pins ${rules[key]}, the plan says ${budgets[key]}`;
      }
    }
  }
  return null;
}

/**
 * The plan names this mechanism and keeps to what it pins.
 * @throws mechanism_digest_mismatch, track_unknown, plan_contradicts_mechanism.
 */
export function verifyPlanAgainstMechanism(plan: EvalPlan, pinned: PinnedMechanism): void {
  if (plan.mechanism_digest !== pinned.digest) {
    throw new EvaluatorError(
      'mechanism_digest_mismatch',
      `plan: mechanism_digest is ${plan.mechanism_digest}, this mechanism has ${pinned.digest}`,
    );
  }
  const problem = contradiction(plan, trackRules(pinned.mechanism, plan.track));
  if (problem !== null) {
    throw new EvaluatorError('plan_contradicts_mechanism', `plan: track ${plan.track}: ${problem}`);
  }
}
