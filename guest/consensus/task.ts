import { EvaluatorError } from '../errors.ts';
import { decodeF64be, encodeF64be } from '../wire/f64.ts';
import type { TrackRules } from '../wire/mechanism.ts';
import type { Policy } from '../wire/plan.ts';
import type { BehaviouralVerdict, RepRecord, TaskVerdict } from '../wire/score-record.ts';
import {
  type ReductionRule,
  reduceBehavioural,
  reduceMean,
  reduceRepositories,
  reduceVote,
} from './reduce.ts';
import { type TrackKind, trackKind } from './track-kind.ts';

/** What the reps of one task reduce to; these fields of the record are recomputed by every verifier. */
interface ReducedTask {
  verdict: TaskVerdict | null;
  /** null on behavioural tracks: right or wrong would publish the label. */
  score_f64be: string | null;
  completed: number;
}

function wrongValue(kind: TrackKind, rep: RepRecord): EvaluatorError {
  return new EvaluatorError(
    'record_value_mismatch',
    `rep ${rep.rep}: its value is not one of a ${kind} track (spec/02)`,
  );
}

/** Value of a completed rep, null of a failed one. @throws record_outcome_inconsistent. */
function checkedValue(rep: RepRecord) {
  const completed = rep.outcome === 'completed';
  if (completed !== (rep.value !== null) || completed !== (rep.failure === null)) {
    throw new EvaluatorError(
      'record_outcome_inconsistent',
      `rep ${rep.rep}: completed reps have a value and no failure, failed ones a failure and no value`,
    );
  }
  return rep.value;
}

function verdictsOf(reps: readonly RepRecord[]): (BehaviouralVerdict | null)[] {
  return reps.map((rep) => {
    const value = checkedValue(rep);
    if (value === null) return null;
    if (!('verdict' in value)) throw wrongValue('behavioural', rep);
    return value.verdict;
  });
}

function rewardsOf(reps: readonly RepRecord[]): (number | null)[] {
  return reps.map((rep) => {
    const value = checkedValue(rep);
    if (value === null) return null;
    if (!('reward_f64be' in value)) throw wrongValue('terminal-bench', rep);
    return decodeF64be(value.reward_f64be);
  });
}

function scoresOf(reps: readonly RepRecord[]): (number | null)[] {
  return reps.map((rep) => {
    const value = checkedValue(rep);
    if (value === null) return null;
    if (!('score_f64be' in value)) throw wrongValue('repositories', rep);
    return decodeF64be(value.score_f64be);
  });
}

function reduceRewards(
  policy: Policy,
  rewards: readonly (number | null)[],
  rule: ReductionRule,
): { verdict: 'PASS' | 'FAIL' | null; score: number } {
  const vote = reduceVote(rewards, rule);
  if (policy === 'vote') return { verdict: vote, score: vote === 'PASS' ? 1 : 0 };
  const score = reduceMean(rewards, rule);
  if (vote === null) return { verdict: null, score };
  return { verdict: score === 1 ? 'PASS' : 'FAIL', score };
}

/**
 * Reduces all reps of one task by its track's rules (spec/02).
 * @param policy the plan's: vote or mean on terminal-bench, null elsewhere.
 * @throws track_unknown, plan_contradicts_mechanism, record_outcome_inconsistent, record_value_mismatch,
 * f64be_invalid.
 */
export function reduceTask(
  track: string,
  rules: TrackRules,
  policy: Policy | null,
  reps: readonly RepRecord[],
): ReducedTask {
  const rule: ReductionRule = { failedReps: rules.failed_reps, minCompleted: rules.min_completed };
  const completed = reps.filter((rep) => rep.outcome === 'completed').length;
  const kind = trackKind(track);
  if (kind === 'behavioural') {
    return { verdict: reduceBehavioural(verdictsOf(reps), rule), score_f64be: null, completed };
  }
  if (kind === 'repositories') {
    const score = reduceRepositories(scoresOf(reps), rule);
    return { verdict: null, score_f64be: encodeF64be(score), completed };
  }
  if (policy === null) {
    throw new EvaluatorError('plan_contradicts_mechanism', `track "${track}": policy must be vote or mean`);
  }
  const { verdict, score } = reduceRewards(policy, rewardsOf(reps), rule);
  return { verdict, score_f64be: encodeF64be(score), completed };
}
