import { describe, expect, it } from 'vitest';
import { CODES, type Code, EvaluatorError } from '../../../guest/errors.ts';
import { asEvaluatorError, exitCodeOf } from '../../../guest/process/exit-codes.ts';

describe('exit codes', () => {
  it('follow from the fault, but for a RESULT that the challenge refused', () => {
    for (const code of Object.keys(CODES) as Code[]) {
      const expected = { input: 2, attestation: 3, infra: 5, agent: 5 }[CODES[code]];
      expect(exitCodeOf(new EvaluatorError(code, 'x')), code).toBe(code === 'result_refused' ? 1 : expected);
    }
  });

  it('what nobody foresaw aborts the run, in one line', () => {
    const error = asEvaluatorError(new TypeError('x is not a function'));
    expect([error.code, error.message, exitCodeOf(error)]).toEqual([
      'run_aborted',
      'unexpected: x is not a function',
      5,
    ]);
    expect(asEvaluatorError('text').message).toBe('unexpected: text');
    const known = new EvaluatorError('usage', 'x');
    expect(asEvaluatorError(known)).toBe(known);
  });
});
