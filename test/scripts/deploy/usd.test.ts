import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { costOf, formatUsd, parseUsd, verifyWithinCap } from '../../../scripts/deploy/usd.ts';
import { codeOf } from '../../support/throws.ts';

describe('dollars', () => {
  it.each([
    ['0.058', 58_000_000n, '$0.058'],
    ['2', 2_000_000_000n, '$2.00'],
    ['12.5', 12_500_000_000n, '$12.50'],
    ['0.000000001', 1n, '$0.000000001'],
  ])('reads %s exactly', (text, amount, shown) => {
    expect(parseUsd(text)).toBe(amount);
    expect(formatUsd(amount)).toBe(shown);
  });

  it.each([
    '',
    '-1',
    '+1',
    '1e9',
    '.5',
    '5.',
    '1,5',
    ' 1',
    '0x1',
    'NaN',
    'Infinity',
    '0.0000000001',
    '1'.repeat(10),
  ])('refuses %j', (text) => {
    expect(parseUsd(text)).toBeNull();
  });

  it('reads what it has written', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 10n ** 18n - 1n }), (amount) => {
        expect(parseUsd(formatUsd(amount).slice(1))).toBe(amount);
      }),
    );
  });

  it('rounds a cost up', () => {
    expect(costOf(58_000_000n, 3_600_000)).toBe(58_000_000n);
    expect(costOf(58_000_000n, 90 * 60_000)).toBe(87_000_000n);
    expect(costOf(1n, 1)).toBe(1n);
  });

  it('allows the cap itself and not a billionth more', () => {
    verifyWithinCap(5n, 5n, 'tdx.small');
    expect(codeOf(() => verifyWithinCap(6n, 5n, 'tdx.small'))).toBe('deploy_price_above_cap');
  });
});
