import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  parseInterpreters,
  readInterpreters,
  servedPython,
} from '../../../scripts/toolchain/interpreters.ts';
import { parseLock } from '../../../scripts/toolchain/lock.ts';
import { RECIPES } from '../../../scripts/toolchain/recipes.ts';

const HASH = 'a'.repeat(64);
const LINE = `3.12.1 org.demo:cpython:3.12.1-1:jar:linux-x86_64 ${HASH}`;

describe('parseInterpreters', () => {
  it('reads version, artifact and hash', () => {
    expect(parseInterpreters(`# why\n\n${LINE}\n`)).toEqual([
      {
        python: '3.12',
        version: '3.12.1',
        artifact: 'org.demo:cpython:3.12.1-1:jar:linux-x86_64',
        sha256: HASH,
        group: 'python3.12',
      },
    ]);
  });

  it.each([
    ['a hash too short', LINE.slice(0, -1)],
    ['no exact version', LINE.replace('3.12.1 ', '3.12 ')],
    ['an address', LINE.replace('org.demo:', 'https://demo/')],
    ['a Python twice', `${LINE}\n${LINE.replace('3.12.1 ', '3.12.2 ')}`],
    ["the volume's own", LINE.replace('3.12.1 ', '3.13.5 ')],
  ])('refuses %s', (_, text) => {
    expect(() => parseInterpreters(text)).toThrowError(
      expect.objectContaining({ code: 'toolchain_invalid' }),
    );
  });

  it('has for each Python of the lock a recipe, and its libraries in debian.lock', () => {
    const lock = readFileSync(join(import.meta.dirname, '../../../guest/tools/debian.lock'), 'utf8');
    const groups = parseLock(lock).map(({ name }) => name);
    for (const { group } of readInterpreters()) {
      expect(groups).toContain(group);
      expect(RECIPES[group]).toBeDefined();
    }
  });
});

describe('servedPython', () => {
  it.each([
    ['3.13', '3.13'],
    ['3', '3.13'],
    ['python3.13.5', '3.13'],
    ['3.12', '3.12'],
    ['python3.12', '3.12'],
    ['3.12.1', '3.12'],
    ['3.12.2', null],
    ['3.12.10', null],
    ['3.1', null],
    ['>=3.12', null],
    ['3.11', null],
  ])('answers %s by %s', (request, python) => {
    expect(servedPython(request, parseInterpreters(LINE))).toBe(python);
  });
});
