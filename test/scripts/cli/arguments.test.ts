import { describe, expect, it } from 'vitest';
import { nameList, parseOptions, required, spreadOption } from '../../../scripts/cli/arguments.ts';
import { codeOf, thrown } from '../../support/throws.ts';

const OPTIONS = { out: { type: 'string' }, json: { type: 'boolean' } } as const;
const parse = (...argv: string[]) => parseOptions(argv, OPTIONS, 'evaluator verb --out DIR');

describe('parseOptions', () => {
  it('reads options', () => {
    expect({ ...parse('--out', 'x', '--json') }).toEqual({ out: 'x', json: true });
  });

  it.each([['--other'], ['left-over'], ['--out'], ['--json=1'], ['-x']])(
    'refuses %s and shows the usage',
    (argument) => {
      const error = thrown(() => parse(argument));
      expect(error.code).toBe('usage');
      expect(error.message).toContain('usage: evaluator verb');
    },
  );
});

describe('required', () => {
  it('gives what is there and names what is not', () => {
    expect(required('x', 'out', '')).toBe('x');
    expect(codeOf(() => required(undefined, 'out', ''))).toBe('usage');
  });
});

describe('nameList', () => {
  it('splits at commas', () => {
    expect(nameList(['a,b', 'c', ',d,'])).toEqual(['a', 'b', 'c', 'd']);
    expect(nameList(undefined)).toEqual([]);
  });

  it.each([[['']], [[',', '']]])('refuses an option that was given and names nothing: %j', (values) => {
    expect(codeOf(() => nameList(values))).toBe('usage');
  });
});

describe('spreadOption', () => {
  it('repeats the option before each of its values, and no other', () => {
    expect(spreadOption(['--from', 'a', 'b', '--out', 'c', '--from', 'd'], '--from')).toEqual([
      ...['--from', 'a', '--from', 'b'],
      ...['--out', 'c', '--from', 'd'],
    ]);
    expect(spreadOption(['--out', 'c', 'left'], '--from')).toEqual(['--out', 'c', 'left']);
  });
});
