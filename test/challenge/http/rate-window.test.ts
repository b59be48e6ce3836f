import { expect, it } from 'vitest';
import { RateWindow } from '../../../challenge/http/rate-window.ts';
import { codeOf } from '../../support/throws.ts';

it('lets so many through within its window, for each key', () => {
  const rate = new RateWindow(2, 100);
  rate.take('a', 0);
  rate.take('a', 50);
  expect(codeOf(() => rate.take('a', 99))).toBe('rate_limited');
  rate.take('b', 99);
  rate.take('a', 100);
  expect(codeOf(() => rate.take('a', 149))).toBe('rate_limited');
});

it('or so much', () => {
  const volume = new RateWindow(10, 100);
  volume.take('a', 0, 6);
  expect(codeOf(() => volume.take('a', 1, 5))).toBe('rate_limited');
  volume.take('a', 2, 4);
});

it('forgets what a clock counted that was set back since', () => {
  const rate = new RateWindow(1, 100);
  rate.take('a', 1_000_000);
  rate.take('a', 500);
  expect(codeOf(() => rate.take('a', 550))).toBe('rate_limited');
});
