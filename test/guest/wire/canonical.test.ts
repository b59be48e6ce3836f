import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeCanonical, encodeCanonical, type Json } from '../../../guest/wire/canonical.ts';
import { codeOf } from '../../support/throws.ts';

const MAX = 1 << 20;
const decode = (text: string) => decodeCanonical(Buffer.from(text, 'utf8'), MAX);
const encode = (value: unknown) => encodeCanonical(value).toString('ascii');

const text = fc.string({ unit: fc.integer({ min: 0x20, max: 0x7e }).map((c) => String.fromCharCode(c)) });
const document = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 5, withCrossShrink: true },
    fc.constant(null),
    fc.boolean(),
    fc.maxSafeInteger().map((n) => n + 0),
    text,
    fc.array(tie('value'), { maxLength: 5 }),
    fc.dictionary(
      text.filter((key) => key !== '__proto__'),
      tie('value'),
      { maxKeys: 5 },
    ),
  ),
})).value;

describe('encodeCanonical', () => {
  it('sorts members, writes no space and escapes as little as it must', () => {
    expect(encode({ b: [1, null, true], a: { '"': '\\', B: '' } })).toBe(
      '{"a":{"\\"":"\\\\","B":""},"b":[1,null,true]}',
    );
    expect(encode({ pem: '-----BEGIN X-----\nAA\n' })).toBe('{"pem":"-----BEGIN X-----\\nAA\\n"}');
  });

  it('does not depend on the order in which members were set', () => {
    fc.assert(
      fc.property(fc.dictionary(text, text), (record) => {
        const reversed = Object.fromEntries(Object.entries(record).toReversed());
        expect(encode(reversed)).toBe(encode(record));
      }),
    );
  });

  // biome-ignore lint/suspicious/noSparseArray: a hole is what is tested
  const holes = [1, , 2];
  it.each<[string, unknown]>([
    ['a float', 0.5],
    ['-0', -0],
    ['NaN', Number.NaN],
    ['infinity', Number.POSITIVE_INFINITY],
    ['2^53', 2 ** 53],
    ['a bigint', 1n],
    ['undefined', undefined],
    ['an undefined member', { a: undefined }],
    ['a hole in an array', holes],
    ['bytes', Buffer.from('a')],
    ['a date', new Date(0)],
    ['a map', new Map()],
    ['a function', () => 1],
    ['a control character', 'a\tb'],
    ['a newline outside PEM', 'a\n'],
    ['DEL', '\x7f'],
    ['a foreign letter', 'é'],
    ['a lone surrogate', '\ud800'],
    ['a foreign letter in PEM', '-----BEGIN X-----\né'],
    ['a foreign key', { é: 1 }],
    ['a newline in a key', { '-----BEGIN \n': 1 }],
  ])('refuses %s', (_, value) => {
    expect(codeOf(() => encodeCanonical(value))).toBe('value_not_encodable');
    expect(codeOf(() => encodeCanonical([value]))).toBe('value_not_encodable');
  });

  it('refuses more than 64 levels', () => {
    let value: Json = 1;
    for (let i = 0; i < 64; i++) value = [value];
    expect(decodeCanonical(encodeCanonical(value), MAX)).toEqual(value);
    expect(codeOf(() => encodeCanonical([value]))).toBe('json_too_deep');
  });
});

describe('decodeCanonical', () => {
  it('gives back what was encoded', () => {
    fc.assert(
      fc.property(document, (value) => {
        const bytes = encodeCanonical(value);
        expect(encodeCanonical(decodeCanonical(bytes, MAX)).equals(bytes)).toBe(true);
        expect(JSON.parse(bytes.toString())).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  it('refuses white space put anywhere outside a string', () => {
    const sample = '{"a":[1,true,null],"b":{"c":"d"}}';
    const outside = [...sample.replaceAll(/"[^"]*"/g, (s) => 's'.repeat(s.length))];
    for (const space of [' ', '\n', '\r', '\t']) {
      for (let at = 0; at <= sample.length; at++) {
        if (outside[at - 1] === 's' && outside[at] === 's') continue;
        const spaced = sample.slice(0, at) + space + sample.slice(at);
        expect(
          codeOf(() => decode(spaced)),
          JSON.stringify(spaced),
        ).toMatch(/^json_(not_canonical|malformed)$/);
      }
    }
  });

  it('refuses every character of a string when it is written as an escape', () => {
    fc.assert(
      fc.property(
        text.filter((s) => s.length > 0 && !/["\\]/.test(s)),
        fc.nat(),
        (value, at) => {
          const i = at % value.length;
          const spelled = `\\u${value.charCodeAt(i).toString(16).padStart(4, '0')}`;
          const escaped = `"${value.slice(0, i)}${spelled}${value.slice(i + 1)}"`;
          expect(JSON.parse(escaped)).toBe(value);
          expect(codeOf(() => decode(escaped))).toBe('json_not_canonical');
        },
      ),
    );
  });

  it('accepts no second spelling of a document', () => {
    fc.assert(
      fc.property(document, fc.nat(), fc.nat(), fc.integer({ min: 0, max: 255 }), (value, kind, at, byte) => {
        const bytes = encodeCanonical(value);
        const i = at % (bytes.length + 1);
        const changed = [
          () => Buffer.concat([bytes.subarray(0, i), Buffer.of(byte), bytes.subarray(i)]),
          () => Buffer.concat([bytes.subarray(0, i), bytes.subarray(i + 1)]),
          () => Buffer.concat([bytes.subarray(0, i), Buffer.of(byte), bytes.subarray(i + 1)]),
        ][kind % 3]?.();
        if (changed === undefined) return;
        let decoded: Json;
        try {
          decoded = decodeCanonical(changed, MAX);
        } catch {
          return;
        }
        expect(encodeCanonical(decoded).equals(changed)).toBe(true);
      }),
    );
  });

  it.each([
    ['a key twice', '{"a":1,"a":1}'],
    ['a key twice with other values', '{"a":1,"a":2}'],
    ['members out of order', '{"b":1,"a":1}'],
    ['a trailing newline', '{"a":1}\n'],
    ['a leading space', ' {}'],
    ['a float that is an integer', '1.0'],
    ['an exponent', '1e2'],
    ['-0', '-0'],
    ['a float', '0.5'],
    ['2^53+1', '9007199254740993'],
    ['1e400', '1e400'],
    ['an escaped letter', '"\\u0061"'],
    ['an escaped slash', '"\\/"'],
    ['a newline outside PEM', '"a\\nb"'],
    ['a foreign letter', '"é"'],
    ['a lone surrogate', '"\\ud800"'],
    ['an index-like key out of order', '{"b":1,"2":1}'],
  ])('refuses %s', (_, spelled) => {
    expect(codeOf(() => decode(spelled))).toBe('json_not_canonical');
  });

  it.each([
    ['nothing', ''],
    ['a byte order mark', '\ufeff{}'],
    ['a leading zero', '01'],
    ['NaN', 'NaN'],
    ['two documents', '{}{}'],
    ['a trailing comma', '[1,]'],
    ['a raw control character', '"a\x01"'],
    ['a comment', '{}//'],
  ])('refuses %s as malformed', (_, spelled) => {
    expect(codeOf(() => decode(spelled))).toBe('json_malformed');
  });

  it('refuses bytes that are not UTF-8, and nothing is read past the cap', () => {
    expect(codeOf(() => decodeCanonical(Buffer.from('22ff22', 'hex'), MAX))).toBe('json_not_canonical');
    expect(codeOf(() => decodeCanonical(Buffer.from('[1,2]'), 4))).toBe('json_too_large');
    expect(decodeCanonical(Buffer.from('[1,2]'), 5)).toEqual([1, 2]);
  });

  it('refuses a million levels without running out of stack', () => {
    const deep = '['.repeat(500_000) + ']'.repeat(500_000);
    expect(codeOf(() => decodeCanonical(Buffer.from(deep), deep.length))).toBe('json_not_canonical');
  });

  it('lets __proto__ reach no prototype', () => {
    const value = decode('{"__proto__":{"polluted":1}}') as object;
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    expect(Object.hasOwn(value, '__proto__')).toBe(true);
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
  });
});
