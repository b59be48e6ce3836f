import { describe, expect, it } from 'vitest';
import { answerError } from '../../../guest/engine/engine-error.ts';
import type { EvaluatorError } from '../../../guest/errors.ts';
import { createBridge } from '../../../guest/inference/bridge.ts';
import { rejectionCode } from '../../support/throws.ts';

const OVERLAP = 'Pool overlaps with other one on this address space';
const refused = (words: string) =>
  answerError(
    { call: 'createInternalNetwork', of: 'n' },
    { statusCode: 403, message: `(HTTP code 403) unexpected - ${words} ` },
  );

function engine(...answers: (EvaluatorError | null)[]) {
  const subnets: string[] = [];
  return {
    subnets,
    createInternalNetwork: async (_: string, subnet: string) => {
      subnets.push(subnet);
      const answer = answers.shift() ?? null;
      if (answer) throw answer;
      return 'id';
    },
  };
}

describe('createBridge', () => {
  it('takes a /29 of the range for benchmarks, and names the second address of it', async () => {
    for (let i = 0; i < 200; i++) {
      const free = engine();
      const proxy = await createBridge(free, 'n', {});
      const [, a, b, c] = /^198\.(18|19)\.(\d+)\.(\d+)\/29$/.exec(free.subnets[0] ?? '') ?? [];
      expect(Number(b)).toBeLessThan(256);
      expect(Number(c) % 8).toBe(0);
      expect(proxy).toBe(`198.${a}.${b}.${Number(c) + 2}`);
    }
  });

  it('tries another when one is taken, and no more than eight', async () => {
    const once = engine(refused(OVERLAP));
    await createBridge(once, 'n', {});
    expect(once.subnets).toHaveLength(2);
    const never = engine(...Array.from({ length: 9 }, () => refused(OVERLAP)));
    expect(await rejectionCode(createBridge(never, 'n', {}))).toBe('engine_error');
    expect(never.subnets).toHaveLength(8);
  });

  it('leaves every other failure to who asks', async () => {
    const broken = engine(refused('no space left on device'));
    expect(await rejectionCode(createBridge(broken, 'n', {}))).toBe('engine_error');
    expect(broken.subnets).toHaveLength(1);
  });
});
