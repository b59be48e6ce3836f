import { EvaluatorError } from '../../guest/errors.ts';

const DIGITS = 9;

/** US dollars, in units of 1e-9: the API's rates are decimal texts, and a cap is compared exactly. */
export type NanoUsd = bigint;

/**
 * A decimal text such as `0.058`.
 * @returns null when it is none: no sign, no exponent, at most nine decimals.
 */
export function parseUsd(text: string): NanoUsd | null {
  const found = /^(\d{1,9})(?:\.(\d{1,9}))?$/.exec(text);
  if (!found) return null;
  return BigInt(`${found[1]}${(found[2] ?? '').padEnd(DIGITS, '0')}`);
}

/** `$0.058`: at least two decimals, no more than are needed. */
export function formatUsd(amount: NanoUsd): string {
  const digits = amount.toString().padStart(DIGITS + 1, '0');
  const decimals = digits.slice(-DIGITS).replace(/0+$/, '').padEnd(2, '0');
  return `$${digits.slice(0, -DIGITS)}.${decimals}`;
}

/** What `ms` milliseconds cost at an hourly rate, rounded up. */
export function costOf(hourly: NanoUsd, ms: number): NanoUsd {
  const hour = 3_600_000n;
  return (hourly * BigInt(ms) + hour - 1n) / hour;
}

/** @throws deploy_price_above_cap. */
export function verifyWithinCap(hourly: NanoUsd, cap: NanoUsd, instanceType: string): void {
  if (hourly <= cap) return;
  throw new EvaluatorError(
    'deploy_price_above_cap',
    `${instanceType}: costs ${formatUsd(hourly)} per hour, --max-cost allows ${formatUsd(cap)}; nothing was created`,
  );
}
