import { EvaluatorError } from '../errors.ts';

const HEX = /^[0-9a-f]{16}$/;

/**
 * A score in [0,1] as big-endian binary64, 16 lower-case hex digits (spec/01, f64be).
 * @throws f64be_invalid on -0, NaN, infinities and anything outside [0,1].
 */
export function encodeF64be(value: number): string {
  if (!(value >= 0 && value <= 1) || Object.is(value, -0)) {
    throw new EvaluatorError(
      'f64be_invalid',
      `${Object.is(value, -0) ? '-0' : value} is not a score in [0,1]`,
    );
  }
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleBE(value);
  return bytes.toString('hex');
}

/** Reads an f64be. @throws f64be_invalid. */
export function decodeF64be(hex: string): number {
  if (!HEX.test(hex))
    throw new EvaluatorError('f64be_invalid', `"${hex.slice(0, 32)}" is not 16 lower-case hex digits`);
  const value = Buffer.from(hex, 'hex').readDoubleBE();
  encodeF64be(value);
  return value;
}

/**
 * Neumaier-compensated sum, in the order given: the reference's arithmetic, plain addition gives other
 * bytes (spec/01).
 */
export function compensatedSum(values: readonly number[]): number {
  let sum = values[0] ?? 0;
  let compensation = 0;
  for (const x of values.slice(1)) {
    const t = sum + x;
    compensation += Math.abs(sum) >= Math.abs(x) ? sum - t + x : x - t + sum;
    sum = t;
  }
  return compensation !== 0 && Number.isFinite(compensation) ? sum + compensation : sum;
}

/** Compensated mean over `count` (defaults to the number of values); 0 when count is 0. */
export function compensatedMean(values: readonly number[], count: number = values.length): number {
  return count === 0 ? 0 : compensatedSum(values) / count;
}
