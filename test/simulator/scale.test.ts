import { describe, expect, it } from 'vitest';
import { compact, scaleBytes, scaleVec } from '../../simulator/scale.ts';

describe('SCALE', () => {
  it.each([
    [0, '00'],
    [1, '04'],
    [63, 'fc'],
    [64, '0101'],
    [69, '1501'],
    [16_383, 'fdff'],
    [16_384, '02000100'],
    [1_073_741_823, 'feffffff'],
  ])('writes the compact integer %i as %s', (value, hex) => {
    expect(compact(value).toString('hex')).toBe(hex);
  });

  it('refuses what it cannot write', () => {
    expect(() => compact(2 ** 30)).toThrow(RangeError);
  });

  it('writes bytes, text and vectors with their length', () => {
    expect(scaleBytes(Buffer.from('0102', 'hex')).toString('hex')).toBe('080102');
    expect(scaleBytes('é').toString('hex')).toBe('08c3a9');
    expect(scaleVec([Buffer.from('aa', 'hex'), Buffer.from('bbcc', 'hex')]).toString('hex')).toBe('08aabbcc');
  });
});
