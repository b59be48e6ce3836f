import { describe, expect, it } from 'vitest';
import type { Judged } from '../../../scripts/tasks/check-life.ts';
import { checkVerdict } from '../../../scripts/tasks/check-verdict.ts';

const rep = (reward: number | null, passed: number | null = 3, outcome = `reward ${reward}`): Judged => ({
  mode: 'artifact',
  outcome,
  reward,
  passed,
  agentMs: 1,
  testsMs: 1,
});
const [right, wrong] = [rep(1), rep(0)];

describe('checkVerdict', () => {
  it('is stable when every oracle passes and every nop fails, and counts the tests', () => {
    const verdict = { verdict: 'stable', passed: 3, reason: null };
    expect(checkVerdict('ctrf', [right, right], [wrong, wrong])).toEqual(verdict);
    expect(checkVerdict('none', [rep(1, null)], [rep(0, null)])).toEqual({ ...verdict, passed: null });
  });

  it.each<[string, Judged[], Judged[], string, RegExp]>([
    ['an oracle that fails once', [right, wrong], [wrong, wrong], 'flaky', /oracle, artifact: reward 0/],
    ['an oracle with half a reward', [right, rep(0.5)], [wrong], 'flaky', /reward 0.5/],
    [
      'an oracle over its budget once',
      [right, rep(null, null, 'cpu_budget')],
      [wrong],
      'flaky',
      /cpu_budget/,
    ],
    ['a nop that passes once', [right], [wrong, right], 'flaky', /nop, artifact: reward 1/],
    ['a nop that has a failure of its own', [right], [rep(null, null, 'liveness')], 'flaky', /nop.*liveness/],
    ['a nop that always passes', [right], [right, right], 'failing', /nop/],
    ['another number of tests each time', [right, rep(1, 4)], [wrong, wrong], 'flaky', /3, 4 passed tests/],
    ['no test at all', [rep(1, 0)], [wrong], 'failing', /without a passed test/],
  ])('is not stable with %s', (_, oracle, nop, verdict, reason) => {
    expect(checkVerdict('ctrf', oracle, nop)).toEqual({
      verdict,
      passed: null,
      reason: expect.stringMatching(reason),
    });
  });
});
