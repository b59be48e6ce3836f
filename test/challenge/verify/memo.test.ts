import { expect, it } from 'vitest';
import { Memo } from '../../../challenge/verify/memo.ts';

it('remembers what was found, not what failed, and no more than its limit', async () => {
  const memo = new Memo<{ n: number }>(2);
  let looks = 0;
  const look = () => ({ n: ++looks });
  expect(memo.get('a', look)).toEqual({ n: 1 });
  expect(memo.get('a', look)).toEqual({ n: 1 });
  expect(() =>
    memo.get('b', () => {
      throw new Error('not found');
    }),
  ).toThrow('not found');
  expect(memo.get('b', look)).toEqual({ n: 2 });
  expect(await memo.getAsync('c', async () => look())).toEqual({ n: 3 });
  await expect(memo.getAsync('d', async () => Promise.reject(new Error('not found')))).rejects.toThrow();
  expect(memo.get('b', look)).toEqual({ n: 2 });
  expect(memo.get('a', look)).toEqual({ n: 4 });
});
