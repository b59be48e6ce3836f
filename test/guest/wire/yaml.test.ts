import { describe, expect, it } from 'vitest';
import { parseYaml } from '../../../guest/wire/yaml.ts';
import { thrown } from '../../support/throws.ts';

const parse = (text: string) => parseYaml(Buffer.from(text), 'file.yaml', 'mechanism_invalid');

describe('parseYaml', () => {
  it('reads mappings, lists and plain values', () => {
    expect(parse('a: 1\nb: [x, {c: null, d: true}]\n')).toEqual({ a: 1, b: ['x', { c: null, d: true }] });
  });

  it.each([
    ['a key twice', 'a: 1\nb: 2\na: 3\n', 'a key twice'],
    ['a key twice, written in two ways', 'a: 1\n"\\x61": 3\n', 'a key twice'],
    ['a key twice below', 'x: [{a: 1, a: 2}]\n', 'a key twice'],
    ['a number for a key', '1: a\n', 'not text'],
    ['nothing for a key', '? \n: a\n', 'not text'],
    ['a mapping for a key', '? {a: 1}\n: a\n', 'not text'],
    ['__proto__', '__proto__: {}\n', '__proto__'],
    ['an alias', 'a: &x 1\nb: *x\n', 'aliases'],
    ['an unknown tag', 'a: !x 1\n', 'file.yaml'],
    ['too many lists in each other', '['.repeat(66) + ']'.repeat(66), 'nested too deeply'],
    ['a list that does not end', 'a: 1\nb:\n  - [1,\n', 'at line 4, column 1'],
    ['a stack of lists', '['.repeat(10_000), 'file.yaml'],
  ])('refuses %s', (_, text, words) => {
    const error = thrown(() => parse(text));
    expect(error.code).toBe('mechanism_invalid');
    expect(error.message).toContain(words);
  });

  it('reads twenty thousand keys without comparing each with each', () => {
    const keys = Array.from({ length: 20_000 }, (_, i) => `k${i}`);
    expect(Object.keys(parse(keys.map((key) => `${key}: 1`).join('\n')) as object)).toEqual(keys);
  });
});
