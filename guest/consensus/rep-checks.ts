import { type Code, EvaluatorError } from '../errors.ts';
import { decodeF64be } from '../wire/f64.ts';
import type { Mechanism } from '../wire/mechanism.ts';
import type { EvalPlan, PlanTask } from '../wire/plan.ts';
import type { RepRecord, TaskRecord } from '../wire/score-record.ts';
import { trackKind } from './track-kind.ts';

/** Under policy mean a reward leaves the VM as a multiple of 1/64, under vote as 0 or 1 (spec/03). */
const REWARD_STEPS = 64;

const VALUE_KEY = {
  behavioural: 'verdict',
  repositories: 'score_f64be',
  'terminal-bench': 'reward_f64be',
} as const;

function isPublishable(reward: number, plan: EvalPlan): boolean {
  return plan.policy === 'vote' ? reward === 0 || reward === 1 : Number.isInteger(reward * REWARD_STEPS);
}

function verifierFits(rep: RepRecord, ordered: PlanTask, plan: EvalPlan): boolean {
  if (trackKind(plan.track) !== 'terminal-bench') return rep.verifier_mode === null;
  if (rep.outcome === 'failed' && rep.verifier_mode === null) return true;
  return rep.verifier_mode === ordered.verifier;
}

/**
 * One rep of one task: its fields agree with each other, with its task's limits and with the plan.
 * @throws record_outcome_inconsistent, record_value_mismatch, f64be_invalid, record_value_not_publishable,
 * record_verifier_mismatch, record_probe_missing, record_budget_exceeded, record_retries_exceeded, record_image_mismatch.
 */
export function verifyRep(
  rep: RepRecord,
  task: TaskRecord,
  ordered: PlanTask,
  plan: EvalPlan,
  mechanism: Mechanism,
): void {
  const refuse = (code: Code, what: string): never => {
    throw new EvaluatorError(code, `task ${task.task_id} rep ${rep.rep}: ${what}`);
  };
  const completed = rep.outcome === 'completed';
  if (completed !== (rep.value !== null) || completed !== (rep.failure === null)) {
    refuse('record_outcome_inconsistent', `${rep.outcome}, value and failure do not agree with that`);
  }
  if (rep.value !== null && !(VALUE_KEY[trackKind(plan.track)] in rep.value)) {
    refuse('record_value_mismatch', `its value is not one of track "${plan.track}"`);
  }
  if (rep.value !== null && 'reward_f64be' in rep.value) {
    const reward = decodeF64be(rep.value.reward_f64be);
    if (!isPublishable(reward, plan)) {
      refuse('record_value_not_publishable', `reward ${reward} is finer than policy ${plan.policy} lets out`);
    }
  }
  if (!verifierFits(rep, ordered, plan)) {
    refuse(
      'record_verifier_mismatch',
      `verifier_mode ${rep.verifier_mode}, the plan says ${ordered.verifier}`,
    );
  }
  if (trackKind(plan.track) !== 'terminal-bench' && rep.probe_sha256 === null)
    refuse('record_probe_missing', `no probe_sha256, which every rep of track "${plan.track}" has`);
  const { cpu_budget_ms: cpu, wall_budget_ms: wall } = task.limits;
  if (completed && (rep.cpu_ms > cpu || rep.wall_ms > wall)) {
    refuse(
      'record_budget_exceeded',
      `completed with cpu ${rep.cpu_ms}/${cpu} ms, wall ${rep.wall_ms}/${wall} ms`,
    );
  }
  if (rep.start_retries > mechanism.max_start_retries) {
    refuse(
      'record_retries_exceeded',
      `${rep.start_retries} retries, at most ${mechanism.max_start_retries} are allowed`,
    );
  }
  const imageId = ordered.image.startsWith('sha256:') ? ordered.image : task.reps[0]?.image_id;
  if (rep.image_id !== imageId) refuse('record_image_mismatch', `image_id ${rep.image_id}, not ${imageId}`);
}
