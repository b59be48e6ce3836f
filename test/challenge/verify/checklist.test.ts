import { describe, expect, it } from 'vitest';
import { runChecklist } from '../../../challenge/verify/checklist.ts';
import { EvaluatorError } from '../../../guest/errors.ts';

const NAMES = ['one', 'two', 'three'] as const;

describe('a checklist', () => {
  it('ends at the first failure and says that the rest was not reached', async () => {
    const reports = await runChecklist(NAMES, async (check) => {
      expect(await check('one', 'schema_invalid', () => 1)).toBe(1);
      await check('two', 'schema_invalid', () => {
        throw new EvaluatorError('plan_expired', 'too late');
      });
      expect.fail('went on');
    });
    expect(reports).toEqual([
      { name: 'one', status: 'ok', code: null, detail: '' },
      { name: 'two', status: 'failed', code: 'plan_expired', detail: 'too late' },
      { name: 'three', status: 'not_checked', code: null, detail: 'not reached: two failed' },
    ]);
  });

  it('gives a surprise the code of its check', async () => {
    const [report] = await runChecklist(['one'], async (check) => {
      await check('one', 'schema_invalid', () => {
        throw new TypeError('a defect');
      });
    });
    expect(report).toMatchObject({ status: 'failed', code: 'schema_invalid', detail: 'a defect' });
  });

  it('never passes with a check left out, twice or out of order', async () => {
    const ok = () => true;
    const leftOut = runChecklist(NAMES, async (check) => {
      await check('one', 'schema_invalid', ok);
    });
    await expect(leftOut).rejects.toThrow('never made');
    const skipped = runChecklist(NAMES, async (check) => {
      await check('two', 'schema_invalid', ok);
    });
    await expect(skipped).rejects.toThrow('out of order');
    const twice = runChecklist(['one'], async (check) => {
      await check('one', 'schema_invalid', ok);
      await check('one', 'schema_invalid', ok);
    });
    await expect(twice).rejects.toThrow('out of order');
  });
});
