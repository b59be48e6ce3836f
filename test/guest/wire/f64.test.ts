import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compensatedMean, compensatedSum, decodeF64be, encodeF64be } from '../../../guest/wire/f64.ts';
import { codeOf } from '../../support/throws.ts';

const vectors = JSON.parse(readFileSync(new URL('../../vectors/scores.json', import.meta.url), 'utf8')) as {
  f64be: [number, string][];
  refused: string[];
  means: { values: number[]; mean_f64be: string }[];
};

describe('f64be', () => {
  it.each(vectors.f64be)('%d is %s, both ways', (value, hex) => {
    expect(encodeF64be(value)).toBe(hex);
    expect(decodeF64be(hex)).toBe(value);
  });

  it.each([...vectors.refused, '', '3ff000000000000g', ' 3ff0000000000000', '3ff0000000000000\n'])(
    'refuses "%s"',
    (hex) => {
      expect(codeOf(() => decodeF64be(hex))).toBe('f64be_invalid');
    },
  );

  it.each([-0, -1e-300, 1 + 2 ** -52, Number.NaN, Number.POSITIVE_INFINITY])(
    'does not encode %d',
    (value) => {
      expect(codeOf(() => encodeF64be(value))).toBe('f64be_invalid');
    },
  );

  it('gives back every score, bit for bit', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1, noNaN: true }), (value) => {
        fc.pre(!Object.is(value, -0));
        expect(Object.is(decodeF64be(encodeF64be(value)), value)).toBe(true);
      }),
    );
  });
});

describe('compensatedMean', () => {
  it.each(vectors.means)('mean of $values is $mean_f64be', ({ values, mean_f64be: expected }) => {
    expect(encodeF64be(compensatedMean(values))).toBe(expected);
  });

  it('is not plain addition', () => {
    const tenths = Array<number>(10).fill(0.1);
    expect(tenths.reduce((a, b) => a + b)).not.toBe(1);
    expect(compensatedSum(tenths)).toBe(1);
    expect(compensatedSum([1, 1e100, 1, -1e100])).toBe(2);
  });

  it('divides by the count it is given, and is 0 for none', () => {
    expect(compensatedMean([1, 0.5], 3)).toBe(0.5);
    expect(compensatedMean([])).toBe(0);
  });

  it('of scores is a score', () => {
    const score = fc.double({ min: 0, max: 1, noNaN: true }).map((x) => x + 0);
    fc.assert(
      fc.property(fc.array(score, { maxLength: 200 }), (values) => {
        expect(() => encodeF64be(compensatedMean(values))).not.toThrow();
      }),
    );
  });
});
