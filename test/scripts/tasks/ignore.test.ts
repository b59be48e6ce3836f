import { describe, expect, it } from 'vitest';
import { DEFAULT_IGNORE, parseIgnore } from '../../../scripts/tasks/ignore.ts';

describe('parseIgnore', () => {
  it.each([
    ['*.pyc', 'a.pyc', true],
    ['*.pyc', 'a/b/c.pyc', true],
    ['*.pyc', 'a.pyc/x', true],
    ['*.pyc', 'a.pyd', false],
    ['/top', 'top', true],
    ['/top', 'a/top', false],
    ['a/b', 'a/b', true],
    ['a/b', 'a/b/c', true],
    ['a/b', 'x/a/b', false],
    ['cache/', 'cache/x', true],
    ['cache/', 'a/cache/x', true],
    ['cache/', 'cache', false],
    ['a/**/b', 'a/b', true],
    ['a/**/b', 'a/x/y/b', true],
    ['**/b', 'x/y/b', true],
    ['**/b', 'b', true],
    ['a/**', 'a/x/y', true],
    ['a/**', 'a', false],
    ['?.txt', 'a.txt', true],
    ['?.txt', 'ab.txt', false],
    ['[ab].txt', 'b.txt', true],
    ['[!ab].txt', 'b.txt', false],
    ['[a-c]x', 'bx', true],
    ['a*b', 'a/b', false],
    ['a.b', 'axb', false],
    ['# comment', '# comment', false],
    ['\\#file', '#file', true],
    ['\\!file', '!file', true],
    ['x  ', 'x', true],
    ['x\r', 'x', true],
    ['*\n!keep', 'keep', false],
    ['*\n!keep', 'other', true],
    ['!keep\n*', 'keep', true],
    ['', 'anything', false],
    ['/', 'anything', false],
  ])('%j and %s: %s', (patterns, path, ignored) => {
    expect(parseIgnore(patterns)(path)).toBe(ignored);
  });

  it('leaves out what editors and Python leave behind', () => {
    const isIgnored = parseIgnore(DEFAULT_IGNORE);
    const left = ['tests/__pycache__/x.bin', 'a.pyc', 'environment/.DS_Store', 'x.swp', 'x.swo', 'x~'];
    expect(left.filter(isIgnored)).toEqual(left);
    expect(['tests/test.sh', 'environment/pycache'].filter(isIgnored)).toEqual([]);
  });
});
