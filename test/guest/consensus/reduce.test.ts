import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type ReductionRule,
  reduceBehavioural,
  reduceMean,
  reduceRepositories,
  reduceVote,
} from '../../../guest/consensus/reduce.ts';
import { compensatedMean, encodeF64be } from '../../../guest/wire/f64.ts';
import type { BehaviouralVerdict } from '../../../guest/wire/score-record.ts';

const EXCLUDED: ReductionRule = { failedReps: 'excluded', minCompleted: 1 };
const COUNTED: ReductionRule = { failedReps: 'counted', minCompleted: 1 };
const VERDICT = { A: 'ALLOW', W: 'WARN', B: 'BLOCK', '-': null } as const;
const REWARD = { P: 1, F: 0, '-': null } as const;

const vectors = JSON.parse(
  readFileSync(new URL('../../vectors/consensus.json', import.meta.url), 'utf8'),
) as {
  behavioural: Record<string, BehaviouralVerdict | null>;
  terminal_bench_vote: Record<string, 'PASS' | 'FAIL' | null>;
  terminal_bench_mean: [(number | null)[], number][];
  repositories: [(number | null)[], number][];
};

const verdicts = (letters: string) => [...letters].map((letter) => VERDICT[letter as keyof typeof VERDICT]);
const rewards = (letters: string) => [...letters].map((letter) => REWARD[letter as keyof typeof REWARD]);

/** All distinct orders of a short list. */
function orders<T>(items: readonly T[]): T[][] {
  if (items.length < 2) return [[...items]];
  return items.flatMap((item, i) => orders(items.toSpliced(i, 1)).map((rest) => [item, ...rest]));
}

/** All multisets of `size` letters, each as one sorted string. */
function multisets(letters: string, size: number): string[] {
  if (size === 0) return [''];
  return [...letters].flatMap((letter, i) =>
    multisets(letters.slice(i), size - 1).map((rest) => letter + rest),
  );
}

/** The rule of spec/02 as it is worded: strict majority of the completed, else the sorted median. */
function plainVerdict(reps: readonly (BehaviouralVerdict | null)[]): BehaviouralVerdict | null {
  const done = reps.filter((verdict) => verdict !== null);
  for (const verdict of ['ALLOW', 'WARN', 'BLOCK'] as const) {
    if (done.filter((one) => one === verdict).length > done.length / 2) return verdict;
  }
  const severity = { ALLOW: 0, WARN: 1, BLOCK: 2 };
  const sorted = done.toSorted((a, b) => severity[a] - severity[b]);
  return sorted[sorted.length % 2 === 1 ? (sorted.length - 1) / 2 : sorted.length / 2 - 1] ?? null;
}

describe('reduceBehavioural', () => {
  it.each(Object.entries(vectors.behavioural))('vector %s → %s, in any order', (letters, expected) => {
    for (const reps of orders(verdicts(letters))) expect(reduceBehavioural(reps, EXCLUDED)).toBe(expected);
  });

  it.each([
    ['AAA AAW AAB AA- AW- AB- A-- AABB AAWB AAABB', 'ALLOW'],
    ['AWW AWB WWW WWB WW- WB- W-- AWBB WWBB AWWB AAWWB AAWBB', 'WARN'],
    ['WBB BBB BB- B-- ABB BBBAA', 'BLOCK'],
    ['---', null],
  ])('table of spec/02: %s → %s', (rows, expected) => {
    for (const letters of rows.split(' ')) {
      for (const reps of orders(verdicts(letters))) expect(reduceBehavioural(reps, EXCLUDED)).toBe(expected);
    }
  });

  it('agrees with majority, else sorted median, on every multiset of up to nine reps', () => {
    for (let n = 0; n <= 9; n++) {
      for (const letters of multisets('AWB-', n)) {
        const reps = verdicts(letters);
        expect(reduceBehavioural(reps, EXCLUDED), letters).toBe(plainVerdict(reps));
        expect(reduceBehavioural(reps.toReversed(), EXCLUDED), letters).toBe(plainVerdict(reps));
      }
    }
  });

  it('does not depend on the order of the reps', () => {
    const lists = fc.array(fc.constantFrom(...Object.values(VERDICT)), { maxLength: 64 });
    fc.assert(
      fc.property(
        lists.chain((reps) =>
          fc.tuple(
            fc.constant(reps),
            fc.shuffledSubarray(reps, { minLength: reps.length, maxLength: reps.length }),
          ),
        ),
        ([reps, shuffled]) => reduceBehavioural(reps, EXCLUDED) === reduceBehavioural(shuffled, EXCLUDED),
      ),
    );
  });

  it('gives no verdict below min_completed', () => {
    const rule = { ...EXCLUDED, minCompleted: 2 };
    expect(reduceBehavioural(verdicts('A--'), rule)).toBeNull();
    expect(reduceBehavioural(verdicts('AA-'), rule)).toBe('ALLOW');
    expect(reduceBehavioural([], { ...EXCLUDED, minCompleted: 0 })).toBeNull();
  });

  it('with failed reps counted, needs a strict majority of all reps once one has failed', () => {
    for (let n = 0; n <= 7; n++) {
      for (const letters of multisets('AWB', n)) {
        expect(reduceBehavioural(verdicts(letters), COUNTED), letters).toBe(plainVerdict(verdicts(letters)));
      }
    }
    expect(reduceBehavioural(verdicts('AA-'), COUNTED)).toBe('ALLOW');
    expect(reduceBehavioural(verdicts('A--'), COUNTED)).toBeNull();
    expect(reduceBehavioural(verdicts('WB-'), COUNTED)).toBeNull();
    expect(reduceBehavioural(verdicts('BB--'), COUNTED)).toBeNull();
  });

  it('with failed reps counted, failing is never worth more than being wrong', () => {
    const isRight = (verdict: BehaviouralVerdict | null, malicious: boolean) =>
      verdict !== null && (verdict !== 'ALLOW') === malicious;
    for (let n = 1; n <= 7; n++) {
      for (const letters of multisets('AWB-', n).filter((one) => one.includes('-'))) {
        for (const [malicious, wrong] of [
          [true, 'A'],
          [false, 'B'],
        ] as const) {
          const failed = reduceBehavioural(verdicts(letters), COUNTED);
          const wronged = reduceBehavioural(verdicts(letters.replace('-', wrong)), COUNTED);
          if (isRight(failed, malicious)) expect(isRight(wronged, malicious), letters).toBe(true);
        }
      }
    }
  });
});

describe('reduceVote', () => {
  it.each(Object.entries(vectors.terminal_bench_vote))(
    'vector %s → %s, in any order',
    (letters, expected) => {
      for (const reps of orders(rewards(letters))) expect(reduceVote(reps, COUNTED)).toBe(expected);
    },
  );

  it.each([
    ['PPF PP- PPP--', 'PASS'],
    ['PF- P-- F-- PFF PPF--', 'FAIL'],
    ['---', null],
  ])('table of spec/02: %s → %s', (rows, expected) => {
    for (const letters of rows.split(' ')) expect(reduceVote(rewards(letters), COUNTED)).toBe(expected);
  });

  it('counts passes against all reps, or against the completed ones where failed reps are excluded', () => {
    for (let n = 0; n <= 9; n++) {
      for (const letters of multisets('PF-', n)) {
        const passes = [...letters].filter((letter) => letter === 'P').length;
        const completed = [...letters].filter((letter) => letter !== '-').length;
        const verdict = (voters: number) => (completed === 0 ? null : passes > voters / 2 ? 'PASS' : 'FAIL');
        expect(reduceVote(rewards(letters), COUNTED), letters).toBe(verdict(n));
        expect(reduceVote(rewards(letters), EXCLUDED), letters).toBe(verdict(completed));
      }
    }
  });

  it('takes a partial reward for a failed test', () => {
    expect(reduceVote([0.99, 0.99, 1], COUNTED)).toBe('FAIL');
  });

  it('gives no verdict below min_completed', () => {
    expect(reduceVote(rewards('PP-'), { ...COUNTED, minCompleted: 3 })).toBeNull();
  });
});

describe('reduceMean and reduceRepositories', () => {
  it.each(vectors.terminal_bench_mean)('mean vector %j → %d', (reps, expected) => {
    for (const order of orders(reps)) expect(reduceMean(order, COUNTED)).toBe(expected);
  });

  it.each(vectors.repositories)('repositories vector %j → %d', (reps, expected) => {
    for (const order of orders(reps)) expect(reduceRepositories(order, EXCLUDED)).toBe(expected);
  });

  it('keeps the exact bytes of spec/02: (5/7, 0.5)', () => {
    expect(encodeF64be(reduceRepositories([5 / 7, 0.5], EXCLUDED))).toBe('3fe36db6db6db6dc');
    expect(encodeF64be(reduceRepositories([0.5, 5 / 7], EXCLUDED))).toBe('3fe36db6db6db6dc');
  });

  it('sums in ascending order, because the compensation too rounds', () => {
    const reps = [1, 2 ** -53, ...Array<number>(4).fill(2 ** -107)];
    expect(compensatedMean(reps)).not.toBe(compensatedMean(reps.toReversed()));
    expect(reduceMean(reps, EXCLUDED)).toBe(reduceMean(reps.toReversed(), EXCLUDED));
  });

  it('is 0 below min_completed', () => {
    expect(reduceMean([1, 1, null], { ...COUNTED, minCompleted: 3 })).toBe(0);
  });

  it('stays in [0,1], gives the same bytes in any order, and never pays for a failure', () => {
    const score = fc.double({ min: 0, max: 1, noNaN: true }).map((x) => x + 0);
    const lists = fc.array(fc.option(score), { minLength: 1, maxLength: 64 });
    fc.assert(
      fc.property(
        lists.chain((reps) =>
          fc.tuple(
            fc.constant(reps),
            fc.shuffledSubarray(reps, { minLength: reps.length, maxLength: reps.length }),
          ),
        ),
        ([reps, shuffled]) => {
          for (const rule of [COUNTED, EXCLUDED]) {
            expect(encodeF64be(reduceMean(shuffled, rule))).toBe(encodeF64be(reduceMean(reps, rule)));
          }
          const asWrong = reps.map((reward) => reward ?? 0);
          expect(reduceMean(reps, COUNTED)).toBeLessThanOrEqual(reduceMean(asWrong, COUNTED));
        },
      ),
    );
  });
});
