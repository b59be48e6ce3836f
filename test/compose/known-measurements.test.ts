import { describe, expect, it } from 'vitest';
import {
  KNOWN_MEASUREMENTS,
  knownPlatform,
  knownRegisters,
  verifyOsVersion,
} from '../../compose/known-measurements.ts';
import { parseQuote } from '../../guest/attest/quote.ts';
import { realTdx } from '../support/real-tdx.ts';
import { codeOf } from '../support/throws.ts';

describe('known measurements', () => {
  it('knows a pair that was seen, and derives no other from it', () => {
    expect(knownRegisters('dstack-0.5.9', 'tdx.small')?.mrtd).toMatch(/^f06dfda6dce1cf90/);
    expect(knownRegisters('dstack-0.5.9', 'tdx.large')).toBeNull();
    expect(knownRegisters('dstack-0.5.8', 'tdx.small')).toBeNull();
  });

  it('names a pair only when all four registers are its own', () => {
    const [row] = KNOWN_MEASUREMENTS;
    if (!row) return expect.fail('the table is empty');
    expect(knownPlatform(row)).toBe(row);
    for (const field of ['mrtd', 'rtmr0', 'rtmr1', 'rtmr2'] as const) {
      expect(knownPlatform({ ...row, [field]: '0'.repeat(96) })).toBeNull();
    }
  });

  it.skipIf(realTdx.absent)(`has the registers of the genuine quote (${realTdx.why})`, () => {
    const { mrtd, rtmr } = parseQuote(realTdx.quote());
    const [rtmr0, rtmr1, rtmr2] = rtmr;
    expect(knownRegisters('dstack-0.5.9', 'tdx.small')).toMatchObject({ mrtd, rtmr0, rtmr1, rtmr2 });
  });
});

describe('verifyOsVersion', () => {
  it.each(['dstack-0.5.5', 'dstack-0.5.9', 'dstack-0.6.0', 'dstack-1.0.0', 'dstack-nvidia-0.5.9'])(
    'takes %s',
    (version) => expect(() => verifyOsVersion(version)).not.toThrow(),
  );

  it.each([
    'dstack-0.5.4',
    'dstack-0.4.9',
    'dstack-dev-0.5.9',
    'dstack-0.5.9-dev',
    'dstack-0.5',
    '0.5.9',
    '',
  ])('refuses %j', (version) => expect(codeOf(() => verifyOsVersion(version))).toBe('os_not_allowed'));
});
