import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { digestFiles, publicDigest, sourceDigest, taskDigest } from '../../../guest/tasks/source-digest.ts';
import { sha256Hex } from '../../../guest/wire/digest.ts';

const digests = (files: Record<string, string>) =>
  digestFiles(
    Object.entries(files).map(([path, text]) => ({ path, bytes: Buffer.from(text), executable: false })),
  );

const VECTOR = 'a7933529416b9e5db5a7f01d83cb9fc19b5d4c7f178484204c1c4fa56ef81896';
const SMALL = { 'task.toml': 'x=1\n', 'tests/test.sh': 'exit 0\n' };

describe('sourceDigest', () => {
  it('gives the published value', () => {
    expect(sourceDigest(digests(SMALL))).toBe(VECTOR);
  });

  it('does not depend on the order of the files', () => {
    const files = digests({ ...SMALL, 'environment/a': '1', 'environment/a/b': '2', 'instruction.md': '3' });
    fc.assert(
      fc.property(fc.shuffledSubarray(files, { minLength: files.length }), (shuffled) => {
        expect(sourceDigest(shuffled)).toBe(sourceDigest(files));
      }),
    );
  });

  it('sorts by code point, where UTF-16 would sort otherwise', () => {
    const [low, high] = ['tests/\uffee', 'tests/\u{1f600}'];
    const line = (path: string) => `${path}\0${sha256Hex('x')}\n`;
    expect(sourceDigest(digests({ [high]: 'x', [low]: 'x' }))).toBe(sha256Hex(line(low) + line(high)));
  });

  it('leaves out what is no part of a package', () => {
    const more = { ...SMALL, 'notes.md': 'x', '.gitignore': 'x', 'sub/task.toml': 'x', tests: 'x' };
    expect(sourceDigest(digests(more))).toBe(VECTOR);
  });

  it.each(['instruction.md', 'README.md', 'environment/x', 'tests/x', 'solution/x', 'steps/1/x'])(
    'covers %s',
    (path) => {
      expect(sourceDigest(digests({ ...SMALL, [path]: '' }))).not.toBe(VECTOR);
    },
  );
});

describe('taskDigest and publicDigest', () => {
  it('the task digest is the source digest without the solution', () => {
    expect(taskDigest(digests({ ...SMALL, 'solution/solve.sh': 'x' }))).toBe(VECTOR);
    expect(taskDigest(digests({ ...SMALL, 'tests/more': 'x' }))).not.toBe(VECTOR);
  });

  it('the public digest is without the tests too', () => {
    const seen = publicDigest(digests({ 'task.toml': 'x=1\n', 'environment/x': '1' }));
    const files = {
      'task.toml': 'x=1\n',
      'environment/x': '1',
      'tests/test.sh': 'secret',
      'solution/solve.sh': 'x',
    };
    expect(publicDigest(digests(files))).toBe(seen);
  });
});
