import { describe, expect, it } from 'vitest';
import { EvaluatorError } from '../../../guest/errors.ts';
import { createSteps, STEP_DEADLINES_MS } from '../../../guest/golden/steps.ts';
import { testSteps } from '../../support/golden-guest.ts';
import { rejectionCode } from '../../support/throws.ts';

const never = () => new Promise<never>(() => {});

describe('createSteps', () => {
  it('marks the beginning and the end', async () => {
    const { steps, marks } = testSteps();
    expect(await steps('quote', async () => marks.length)).toBe(1);
    expect(marks).toEqual(['quote begin', 'quote end']);
  });

  it('leaves the end of a failed step unmarked', async () => {
    const { steps, marks } = testSteps();
    const failed = steps('exchange', async () => {
      throw new EvaluatorError('key_denied', 'no');
    });
    expect(await rejectionCode(failed)).toBe('key_denied');
    expect(marks).toEqual(['exchange begin']);
  });

  it('ends a late step and tells its body', async () => {
    const { steps, marks } = testSteps({ unseal: 10 });
    let seen: AbortSignal | undefined;
    const late = steps('unseal', (signal) => {
      seen = signal;
      return never();
    });
    await expect(late).rejects.toMatchObject({ code: 'unlock_timeout', fault: 'infra' });
    expect(seen?.aborted).toBe(true);
    expect(marks).toEqual(['unseal begin']);
  });

  it('ends with the run, and begins no step after it', async () => {
    const run = new AbortController();
    const { steps, marks } = testSteps({}, run.signal);
    const waiting = steps('started', never);
    run.abort(new EvaluatorError('run_aborted', 'ended by SIGTERM'));
    expect(await rejectionCode(waiting)).toBe('run_aborted');
    expect(await rejectionCode(steps('quote', async () => 1))).toBe('run_aborted');
    expect(marks).toEqual(['started begin']);
  });

  it('fails when a mark cannot be written', async () => {
    const steps = createSteps({
      deadlinesMs: STEP_DEADLINES_MS,
      mark: () => {
        throw new EvaluatorError('log_unwritable', 'full');
      },
      signal: new AbortController().signal,
    });
    expect(await rejectionCode(steps('quote', async () => 1))).toBe('log_unwritable');
  });
});
