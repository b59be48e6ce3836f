import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { table } from '../../../bench/failing-on-purpose.ts';
import {
  type ReductionRule,
  reduceBehavioural,
  reduceMean,
  reduceRepositories,
  reduceVote,
} from '../../../guest/consensus/reduce.ts';
import type { BehaviouralVerdict } from '../../../guest/wire/score-record.ts';

// The claims of docs/consensus.md, over every list of up to 7 reps and every choice of reps that fail instead.

const MAX_REPS = 7;
const RANK = { ALLOW: 0, WARN: 1, BLOCK: 2 } as const;
type Verdict = BehaviouralVerdict;

/** Order is of no account (reduce.test.ts): one list stands for all its orders. */
function lists<T>(values: readonly T[], size: number): T[][] {
  if (size === 0) return [[]];
  return values.flatMap((value, i) => lists(values.slice(i), size - 1).map((rest) => [value, ...rest]));
}

const allLists = <T>(values: readonly T[], maxSize = MAX_REPS): T[][] =>
  Array.from({ length: maxSize }, (_, i) => lists(values, i + 1)).flat();

/** The list with the reps of every non-empty choice failed. */
function* selfInflicted<T>(reps: readonly T[]): Generator<(T | null)[]> {
  for (let choice = 1; choice < 2 ** reps.length; choice++)
    yield reps.map((rep, i) => ((choice >> i) % 2 === 1 ? null : rep));
}

const counted = (minCompleted: number): ReductionRule => ({ failedReps: 'counted', minCompleted });
const excluded = (minCompleted: number): ReductionRule => ({ failedReps: 'excluded', minCompleted });
const VERDICTS: readonly Verdict[] = ['ALLOW', 'WARN', 'BLOCK'];
const MALICIOUS = (verdict: Verdict | null) => Number(verdict === 'BLOCK' || verdict === 'WARN');
const SAFE = (verdict: Verdict | null) => Number(verdict === 'ALLOW');

describe('counted: no pattern of self-inflicted failures scores higher than running through', () => {
  it.each([1, 2, 4])('on terminal-bench, min_completed %i', (least) => {
    const rule = counted(least);
    for (const reps of allLists([0, 0.25, 1])) {
      const [vote, mean] = [reduceVote(reps, rule), reduceMean(reps, rule)];
      for (const failing of selfInflicted(reps)) {
        if (reduceVote(failing, rule) === 'PASS') expect(vote).toBe('PASS');
        expect(reduceMean(failing, rule)).toBeLessThanOrEqual(mean);
      }
    }
  });

  it('nor would it on the other tracks, were they counted', () => {
    const rule = counted(1);
    for (const reps of allLists(VERDICTS)) {
      const verdict = reduceBehavioural(reps, rule);
      for (const failing of selfInflicted(reps)) {
        const changed = reduceBehavioural(failing, rule);
        for (const isRight of [MALICIOUS, SAFE])
          expect(isRight(changed)).toBeLessThanOrEqual(isRight(verdict));
      }
    }
  });
});

describe('excluded', () => {
  const leasts = Array.from({ length: MAX_REPS }, (_, i) => i + 1);

  it('(a) a task with no completed rep never beats a completed one', () => {
    for (const least of leasts) {
      for (const size of leasts) {
        const none = Array.from({ length: size }, () => null);
        expect(reduceBehavioural(none, excluded(least))).toBeNull();
        expect(reduceRepositories(none, excluded(least))).toBe(0);
        expect(reduceVote(none, excluded(least))).toBeNull();
      }
    }
    // No verdict is right for neither class; test/challenge/behavioural-score.test.ts: nor for the MCC.
    expect([MALICIOUS(null), SAFE(null)]).toEqual([0, 0]);
  });

  it('(b) a failure in place of a rep above the reduced verdict never raises it, nor at it of an odd number', () => {
    for (const least of leasts) {
      for (const reps of allLists<Verdict | null>([...VERDICTS, null])) {
        const verdict = reduceBehavioural(reps, excluded(least));
        if (verdict === null) continue;
        const isOdd = reps.filter((rep) => rep !== null).length % 2 === 1;
        reps.forEach((rep, i) => {
          if (rep === null || RANK[rep] < RANK[verdict] || (rep === verdict && !isOdd)) return;
          const changed = reduceBehavioural(reps.with(i, null), excluded(least));
          if (changed !== null) expect(RANK[changed]).toBeLessThanOrEqual(RANK[verdict]);
        });
      }
    }
  });

  it('(b) a failure at or above the verdict never raises it where one less than an even number is too few', () => {
    for (const r of leasts) {
      const least = r % 2 === 1 ? Math.max(1, r - 1) : r;
      let raised = 0;
      for (const reps of lists<Verdict | null>([...VERDICTS, null], r)) {
        for (const rule of [excluded(1), excluded(least)]) {
          const verdict = reduceBehavioural(reps, rule);
          if (verdict === null) continue;
          const isFirstOfOdd = r % 2 === 1 && !reps.includes(null);
          reps.forEach((rep, i) => {
            if (rep === null || RANK[rep] < RANK[verdict]) return;
            const changed = reduceBehavioural(reps.with(i, null), rule);
            const isRaised = changed !== null && RANK[changed] > RANK[verdict];
            if (rule.minCompleted === least && least > 1) expect(isRaised).toBe(false);
            if (isFirstOfOdd) expect(isRaised).toBe(false);
            raised += Number(isRaised);
          });
        }
      }
      // With min_completed 1 it is not so: the condition is needed.
      expect(raised > 0).toBe(r > 1);
    }
  });

  it('(b) of an even split the lower half can be failed away: A W is ALLOW, - W is WARN', () => {
    expect(reduceBehavioural(['ALLOW', 'WARN'], excluded(1))).toBe('ALLOW');
    expect(reduceBehavioural([null, 'WARN'], excluded(1))).toBe('WARN');
  });

  it('(b) a failure in place of a rep at or above the mean never raises the mean', () => {
    for (const least of leasts) {
      for (const reps of allLists<number | null>([0, 0.3, 0.7, 1, null], 6)) {
        const mean = reduceRepositories(reps, excluded(least));
        reps.forEach((rep, i) => {
          if (rep === null || rep < mean) return;
          // A bit of rounding is not a raise.
          expect(reduceRepositories(reps.with(i, null), excluded(least))).toBeLessThanOrEqual(mean + 1e-15);
        });
      }
    }
  });

  it('pays nothing with min_completed r', () => {
    for (const reps of allLists(VERDICTS))
      for (const failing of selfInflicted(reps))
        expect(reduceBehavioural(failing, excluded(reps.length))).toBeNull();
    for (const reps of allLists([0, 0.5, 1]))
      for (const failing of selfInflicted(reps))
        expect(reduceRepositories(failing, excluded(reps.length))).toBe(0);
  });

  it('pays otherwise: P F F is FAIL, P - - is PASS', () => {
    expect(reduceVote([1, 0, 0], excluded(1))).toBe('FAIL');
    expect(reduceVote([1, null, null], excluded(1))).toBe('PASS');
    expect(reduceVote([1, null, null], excluded(2))).toBeNull();
  });
});

it('(c) docs/consensus.md has the table that bench/failing-on-purpose.ts prints', () => {
  const text = readFileSync(new URL('../../../docs/consensus.md', import.meta.url), 'utf8');
  expect(text).toContain(`\n${table()}\n`);
});
