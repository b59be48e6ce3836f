import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { changedPackages, packagesOf, parseLock, withVersions } from '../../../scripts/toolchain/lock.ts';
import { RECIPES } from '../../../scripts/toolchain/recipes.ts';
import { readServed } from '../../../scripts/toolchain/served.ts';

const A = 'a'.repeat(64);
const B = 'b'.repeat(64);
const LOCK = `# why
[base]
bash 5.2.37-2+b10 ${A}
zlib1g 1:1.3.dfsg+really1.3.1-1 ${B}

[git]
zlib1g 1:1.3.dfsg+really1.3.1-1 ${B}
`;

describe('parseLock', () => {
  it('reads groups of pinned packages', () => {
    const zlib = { name: 'zlib1g', version: '1:1.3.dfsg+really1.3.1-1', sha256: B };
    expect(parseLock(LOCK)).toEqual([
      { name: 'base', packages: [{ name: 'bash', version: '5.2.37-2+b10', sha256: A }, zlib] },
      { name: 'git', packages: [zlib] },
    ]);
  });

  it.each([
    ['a package outside of a group', `bash 5 ${A}`],
    ['a group twice', '[base]\n[base]'],
    ['a package twice in a group', `[base]\nbash 5 ${A}\nbash 5 ${A}`],
    ['one package in two versions', `[base]\nbash 5 ${A}\n[git]\nbash 6 ${A}`],
    ['one version with two hashes', `[base]\nbash 5 ${A}\n[git]\nbash 5 ${B}`],
    ['a short hash', '[base]\nbash 5 abc'],
    ['an option in the place of a version', `[base]\nbash -oDir=x ${A}`],
    ['no version', `[base]\nbash ${A}`],
  ])('refuses %s', (_, text) => {
    expect(() => parseLock(text)).toThrowError(expect.objectContaining({ code: 'toolchain_invalid' }));
  });

  it('gives the packages of chosen groups once each', () => {
    expect(packagesOf(parseLock(LOCK), new Set(['base', 'git'])).map(({ name }) => name)).toEqual([
      'bash',
      'zlib1g',
    ]);
    expect(packagesOf(parseLock(LOCK), new Set(['git']))).toHaveLength(1);
  });
});

describe('withVersions', () => {
  it('changes versions and hashes and nothing else', () => {
    const newer = new Map([['zlib1g', { name: 'zlib1g', version: '1:1.4-1', sha256: A }]]);
    const changed = withVersions(LOCK, newer);
    expect(changed).toBe(LOCK.replaceAll(`1:1.3.dfsg+really1.3.1-1 ${B}`, `1:1.4-1 ${A}`));
    expect(changedPackages(LOCK, changed)).toEqual([
      { name: 'zlib1g', from: '1:1.3.dfsg+really1.3.1-1', to: '1:1.4-1' },
    ]);
    expect(changedPackages(LOCK, LOCK)).toEqual([]);
  });
});

describe('debian.lock', () => {
  const groups = parseLock(
    readFileSync(join(import.meta.dirname, '../../../guest/tools/debian.lock'), 'utf8'),
  ).map(({ name }) => name);

  it('has a group for every recipe and for every one that the tables of the front name', () => {
    const { packages, apt } = readServed();
    const named = [...packages.values(), ...apt.values()].flatMap((one) => one.groups);
    expect(new Set(groups)).toEqual(new Set([...Object.keys(RECIPES), ...named]));
  });
});
