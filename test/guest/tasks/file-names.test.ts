import { describe, expect, it } from 'vitest';
import { verifyFileNames } from '../../../guest/tasks/file-names.ts';
import { codeOf, thrown } from '../../support/throws.ts';

const verify = (...paths: string[]) => verifyFileNames(paths, 'task demo');

describe('verifyFileNames', () => {
  it('takes ordinary names, other scripts and a shared folder included', () => {
    expect(() => verify('a', 'b/c', 'b/d', 'b/é.txt', 'b/日本', '.hidden', 'a b')).not.toThrow();
  });

  it.each([
    ['nothing', ''],
    ['an absolute path', '/etc/passwd'],
    ['a way out', '../x'],
    ['a way out in the middle', 'a/../../x'],
    ['a dot component', 'a/./b'],
    ['an empty component', 'a//b'],
    ['a trailing slash', 'a/'],
    ['NUL', 'a\0b'],
    ['a line break', 'a\nb'],
    ['ESC', 'a\x1b[31mb'],
    ['a C1 control', 'a\x9bb'],
    ['a bidirectional override', 'a\u202etxt.exe'],
    ['a zero-width space', 'a\u200bb'],
    ['a line separator', 'a\u2028b'],
    ['a lone surrogate', 'a\ud800'],
    ['a backslash', 'a\\b'],
    ['a component above 255 bytes', `${'é'.repeat(128)}`],
    ['a path above 1024 bytes', `${'a/'.repeat(600)}b`],
  ])('refuses %s', (_, path) => {
    expect(codeOf(() => verify(path))).toBe('task_file_name');
  });

  it.each([
    ['the same name twice', ['a', 'a']],
    ['case', ['tests/A.txt', 'tests/a.TXT']],
    ['case of a folder', ['Data/x', 'data/y']],
    ['normalisation', ['caf\u00e9', 'cafe\u0301']],
    ['sharp s', ['stra\u00dfe', 'STRASSE']],
    ['a file where a folder is', ['a', 'a/b']],
    ['a folder where a file is', ['a/b', 'a']],
  ])('refuses names that collide: %s', (_, paths) => {
    expect(codeOf(() => verify(...paths))).toBe('task_file_collision');
  });

  it('names the task', () => {
    expect(thrown(() => verify('../x')).message).toContain('task demo');
  });
});
