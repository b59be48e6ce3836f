import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeCanonical, encodeCanonical } from '../../../guest/wire/canonical.ts';
import { codeOf } from '../../support/throws.ts';

const MIB = 1024 * 1024;
const decode = (text: string) => decodeCanonical(Buffer.from(text), 4 * MIB);
const repeated = (text: string, count: number) => Array.from({ length: count }, () => text).join(',');

describe('a document that would take long to parse', () => {
  it.each([
    ['lists without an end', '['.repeat(MIB), 'json_not_canonical'],
    ['lists in lists', '['.repeat(MIB) + ']'.repeat(MIB), 'json_not_canonical'],
    ['objects in objects', '{"a":'.repeat(100_000), 'json_not_canonical'],
    ['empty lists', `[${repeated('[]', 100_000)}]`, 'json_too_large'],
    ['small objects', `[${repeated('{"35":0}', 100_000)}]`, 'json_too_large'],
    ['an object of very many members', `{${repeated('"a long name":1', 129)}}`, 'json_too_large'],
  ])('is refused before that: %s', (_name, text, code) => {
    expect(codeOf(() => decode(text))).toBe(code);
  });
});

describe('a document as ours are', () => {
  it('is read, however many values it has', () => {
    const value = Array.from({ length: 100_000 }, (_, i) => 2 ** 47 + i);
    expect(decodeCanonical(encodeCanonical(value), 4 * MIB)).toEqual(value);
    expect(decode(`[${repeated('[]', 2000)}]`)).toHaveLength(2000);
  });

  it('is read with whatever stands in its strings', () => {
    const ascii = fc.string({
      unit: fc.integer({ min: 32, max: 126 }).map((code) => String.fromCharCode(code)),
    });
    fc.assert(
      fc.property(fc.array(fc.tuple(ascii, fc.dictionary(ascii, ascii))), (value) => {
        const plain = JSON.parse(JSON.stringify(value));
        expect(decodeCanonical(encodeCanonical(plain), MIB)).toEqual(plain);
      }),
    );
    const brackets = '[{,\\"'.repeat(10_000);
    expect(decodeCanonical(encodeCanonical([brackets]), MIB)).toEqual([brackets]);
  });

  it('that is not JSON is still called so', () => {
    for (const text of ['', '"', '"\\', ']', ',', '1,2', '{"a":1', '[}']) {
      expect(codeOf(() => decode(text))).toBe('json_malformed');
    }
  });
});
