import type { Judged } from './check-life.ts';

/** What the reps of an oracle that passed once, and of nop, say together. */
export interface CheckVerdict {
  /** `stable`: oracle 1 and nop 0 in every rep. `failing`: nop always passes. `flaky`: anything between. */
  verdict: 'stable' | 'flaky' | 'failing';
  /** Tests that passed for the oracle, the same number in each rep; null where none is counted. */
  passed: number | null;
  /** Why it is not stable. */
  reason: string | null;
}

/** The first rep that was not judged as it must be, in words; null: there is none. */
export function wrongRep(oracle: readonly Judged[], nop: readonly Judged[]): string | null {
  const failed = oracle.find(({ reward }) => reward !== 1);
  if (failed) return `oracle, ${failed.mode}: ${failed.outcome}`;
  const passed = nop.find(({ reward }) => reward !== 0);
  return passed ? `nop, ${passed.mode}: ${passed.outcome}` : null;
}

/** @param evidence `ctrf`: passed tests are counted, and there must be one. */
export function checkVerdict(
  evidence: 'ctrf' | 'none',
  oracle: readonly Judged[],
  nop: readonly Judged[],
): CheckVerdict {
  const counts = [...new Set(oracle.map(({ passed }) => passed))];
  const wrong = wrongRep(oracle, nop);
  if (wrong !== null) {
    const verdict = nop.length > 0 && nop.every(({ reward }) => reward === 1) ? 'failing' : 'flaky';
    return { verdict, passed: null, reason: wrong };
  }
  if (evidence === 'none') return { verdict: 'stable', passed: null, reason: null };
  const [passed = null] = counts;
  if (counts.length > 1)
    return { verdict: 'flaky', passed: null, reason: `oracle: ${counts.join(', ')} passed tests` };
  return passed === null || passed === 0
    ? { verdict: 'failing', passed: null, reason: 'oracle: reward 1 without a passed test' }
    : { verdict: 'stable', passed, reason: null };
}
