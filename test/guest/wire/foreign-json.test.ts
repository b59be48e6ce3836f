import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseForeignJson } from '../../../guest/wire/foreign-json.ts';
import { codeOf } from '../../support/throws.ts';

const LIMITS = { maxBytes: 4096, maxDepth: 8 };
const parse = (text: string) => parseForeignJson(Buffer.from(text), LIMITS);

/** True when no object in the value has a member that the reader refuses. */
function hasProto(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return Object.hasOwn(value, '__proto__') || Object.values(value).some(hasProto);
}

describe('parseForeignJson', () => {
  it('reads what JSON.parse reads, however it is spaced', () => {
    fc.assert(
      fc.property(
        fc.jsonValue({ maxDepth: 6 }).filter((value) => !hasProto(value)),
        fc.constantFrom(0, 2, '\t'),
        (value, indent) => {
          const text = JSON.stringify(value, null, indent);
          const limits = { maxBytes: 1 << 20, maxDepth: 8 };
          expect(parseForeignJson(Buffer.from(text), limits)).toEqual(JSON.parse(text));
        },
      ),
    );
  });

  it.each([
    '{"a":1,"a":2}',
    '{"a":1,"\\u0061":2}',
    '{"b":{},"a":[{"x":1,"y":"{","x":2}]}',
    '{"\\"":1,"\\u0022":2}',
    '{"":1,"":2}',
    '{"\\\\":1,"\\u005c":2}',
    '{"a":1,"b":2,"c":3,"b":4}',
    '[{},{"a":1,"a":2}]',
  ])('refuses a key given twice: %s', (text) => {
    expect(codeOf(() => parse(text))).toBe('json_duplicate_key');
  });

  it.each([
    '[{"a":1},{"a":2}]',
    '{"a":{"a":{"a":"a"}}}',
    '{"a":"a","b":"a"}',
    '["a","a",{"a":["a","a"]},"a"]',
    '{"a":"{\\"a\\":1,\\"a\\":2}"}',
  ])('lets a key stand once in each object: %s', (text) => {
    expect(parse(text)).toEqual(JSON.parse(text));
  });

  it('refuses more levels than it is told', () => {
    expect(parse('[[[[[[[[1]]]]]]]]')).toEqual(JSON.parse('[[[[[[[[1]]]]]]]]'));
    expect(codeOf(() => parse('[[[[[[[[[1]]]]]]]]]'))).toBe('json_too_deep');
    expect(codeOf(() => parse(`${'{"a":'.repeat(9)}1${'}'.repeat(9)}`))).toBe('json_too_deep');
    expect(parse(`["${'['.repeat(100)}"]`)).toEqual(['['.repeat(100)]);
  });

  it('refuses half a million levels without running out of stack', () => {
    const deep = '['.repeat(500_000) + ']'.repeat(500_000);
    expect(codeOf(() => parseForeignJson(Buffer.from(deep), { maxBytes: deep.length, maxDepth: 8 }))).toBe(
      'json_too_deep',
    );
  });

  it('refuses one byte more than it is told', () => {
    expect(parse(`"${'a'.repeat(4094)}"`)).toHaveLength(4094);
    expect(codeOf(() => parse(`"${'a'.repeat(4095)}"`))).toBe('json_too_large');
  });

  it.each(['{"__proto__":1}', '{"a":[{"\\u005f_proto__":{}}]}'])('refuses %s', (text) => {
    expect(codeOf(() => parse(text))).toBe('json_malformed');
  });

  it.each([
    ['nothing', ''],
    ['a byte order mark', '\ufeff{}'],
    ['NaN', '[NaN]'],
    ['text after the value', '{} x'],
    ['single quotes', "{'a':1}"],
  ])('refuses %s', (_, text) => {
    expect(codeOf(() => parse(text))).toBe('json_malformed');
  });

  it.each(['22ff22', '22c080 22', '22eda08022', '7b00'])('refuses bytes that are not UTF-8: %s', (hex) => {
    const bytes = Buffer.from(hex.replaceAll(' ', ''), 'hex');
    expect(codeOf(() => parseForeignJson(bytes, LIMITS))).toBe('json_malformed');
  });
});
