import { describe, expect, it } from 'vitest';
import { readVariables, verifyComplete } from '../../../scripts/deploy/variables.ts';
import { codeOf, thrown } from '../../support/throws.ts';

const NAMES = ['EVAL_PLAN', 'MODEL_KEY'];
const fromFile = (text: string) => readVariables(NAMES, Buffer.from(text), { MODEL_KEY: 'of-the-shell' });

describe('readVariables', () => {
  it('reads a file, and then nothing else', () => {
    expect(fromFile('# a comment\n\nEVAL_PLAN=abc=\n')).toEqual({
      values: { EVAL_PLAN: 'abc=' },
      missing: ['MODEL_KEY'],
    });
  });

  it('reads the named variables of an environment', () => {
    expect(readVariables(NAMES, null, { EVAL_PLAN: 'p', MODEL_KEY: 'k', HOME: '/root' })).toEqual({
      values: { EVAL_PLAN: 'p', MODEL_KEY: 'k' },
      missing: [],
    });
  });

  it('takes an empty value for none', () => {
    expect(fromFile('MODEL_KEY=\n').missing).toEqual(NAMES);
  });

  it.each([
    ['another name', 'BASH_ENV=/tmp/secret'],
    ['a name twice', 'MODEL_KEY=a\nMODEL_KEY=secret'],
    ['no name', '=secret'],
    ['no value', 'secret'],
    ['an exported name', 'export MODEL_KEY=secret'],
    ['a carriage return', 'MODEL_KEY=secret\rBASH_ENV=x'],
    ['quotes', 'MODEL_KEY="secret"'],
    ['a space', 'MODEL_KEY=secret '],
    ['a byte that is no ASCII', 'MODEL_KEY=secret\u00e9'],
    ['a nul', 'MODEL_KEY=secret\0'],
  ])('refuses %s without repeating a value', (_, text) => {
    const error = thrown(() => fromFile(text));
    expect(error.code).toBe('deploy_env_invalid');
    expect(error.message).not.toContain('secret');
  });

  it('names what is missing, unless it may be', () => {
    const variables = fromFile('EVAL_PLAN=a\n');
    expect(codeOf(() => verifyComplete(variables, new Set()))).toBe('deploy_env_invalid');
    verifyComplete(variables, new Set(['MODEL_KEY']));
  });
});
