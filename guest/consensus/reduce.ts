import { compensatedMean } from '../wire/f64.ts';
import type { BehaviouralVerdict } from '../wire/score-record.ts';

/** What a failed rep costs, as the mechanism pins it per track (spec/02). */
export interface ReductionRule {
  /** `excluded`: only completed reps decide. `counted`: a failed rep is never worth more than a wrong one. */
  failedReps: 'excluded' | 'counted';
  /** With fewer completed reps the task counts as incorrect; at least 1. */
  minCompleted: number;
}

const SEVERITY = ['ALLOW', 'WARN', 'BLOCK'] as const satisfies readonly BehaviouralVerdict[];

function completedOf<T>(reps: readonly (T | null)[]): T[] {
  return reps.filter((value) => value !== null);
}

/** True when nothing can be reduced: the task counts as incorrect. */
function tooFew(completed: number, rule: ReductionRule): boolean {
  return completed < Math.max(1, rule.minCompleted);
}

/**
 * Behavioural tracks: a strict majority of the completed reps, else their median, the lower of two middles.
 * Both are the lower median, because a majority always contains it. Where failed reps are counted and there
 * is one, only a strict majority of all reps gives a verdict.
 * @param reps null for a failed rep; order is of no account.
 * @returns null when the task counts as incorrect.
 */
export function reduceBehavioural(
  reps: readonly (BehaviouralVerdict | null)[],
  rule: ReductionRule,
): BehaviouralVerdict | null {
  const ranks = completedOf(reps)
    .map((verdict) => SEVERITY.indexOf(verdict))
    .sort((a, b) => a - b);
  if (tooFew(ranks.length, rule)) return null;
  const median = SEVERITY[ranks[Math.floor((ranks.length - 1) / 2)] ?? 0] ?? null;
  if (rule.failedReps === 'excluded' || ranks.length === reps.length) return median;
  const agreeing = reps.filter((verdict) => verdict === median).length;
  return agreeing * 2 > reps.length ? median : null;
}

/**
 * Terminal-bench, policy `vote`: PASS when a strict majority of the reps has reward 1; of all reps where
 * failed reps are counted, else of the completed ones.
 * @param reps rewards in [0,1], null for a failed rep.
 * @returns null when the task counts as not passed for want of completed reps.
 */
export function reduceVote(reps: readonly (number | null)[], rule: ReductionRule): 'PASS' | 'FAIL' | null {
  const completed = completedOf(reps);
  if (tooFew(completed.length, rule)) return null;
  const voters = rule.failedReps === 'counted' ? reps.length : completed.length;
  return completed.filter((reward) => reward === 1).length * 2 > voters ? 'PASS' : 'FAIL';
}

/**
 * Terminal-bench, policy `mean`: the sum of the completed reps' rewards over all reps where failed reps are
 * counted, else over the completed ones. Summed in ascending order, so that the order of reps cannot show
 * in the last bit.
 * @returns a score in [0,1]; 0 when too few reps completed.
 */
export function reduceMean(reps: readonly (number | null)[], rule: ReductionRule): number {
  const completed = completedOf(reps).sort((a, b) => a - b);
  if (tooFew(completed.length, rule)) return 0;
  return compensatedMean(completed, rule.failedReps === 'counted' ? reps.length : completed.length);
}

/** Repositories: the mean of the reps' own F2 scores, by the same arithmetic as `reduceMean`. */
export function reduceRepositories(reps: readonly (number | null)[], rule: ReductionRule): number {
  return reduceMean(reps, rule);
}
