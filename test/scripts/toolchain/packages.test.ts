import { beforeEach, describe, expect, it } from 'vitest';
import { sha256Hex, writeAtomic } from '../../../scripts/toolchain/cache.ts';
import { type DebianArchive, debFile } from '../../../scripts/toolchain/debian.ts';
import { type DebianPackage, parseLock } from '../../../scripts/toolchain/lock.ts';
import { refreshLock, resolvePackages } from '../../../scripts/toolchain/packages.ts';
import { scratchFolder } from '../../support/scratch.ts';

const pin = (name: string, version: string): DebianPackage => ({
  name,
  version,
  sha256: sha256Hex(`${name} ${version}`),
});
const lockOf = (...groups: [string, DebianPackage[]][]) =>
  groups
    .map(([group, packages]) =>
      [`[${group}]`, ...packages.map((one) => `${one.name} ${one.version} ${one.sha256}`)].join('\n'),
    )
    .join('\n');

const OLD = [pin('bash', '5.2-1'), pin('libc6', '2.41-1')];
const NEW = [pin('bash', '5.2-1'), pin('libc6', '2.41-2')];
const LOCK = lockOf(['base', OLD], ['git', [pin('git', '2.47-1')]]);
const BASE = new Set(['base']);

let cache: string;
let opened: number;

beforeEach(() => {
  cache = scratchFolder();
  opened = 0;
});

/** An archive that serves exactly these packages. */
const serving = (served: readonly DebianPackage[]) => (): DebianArchive => {
  opened += 1;
  const has = (one: DebianPackage) => served.some((other) => other.sha256 === one.sha256);
  return {
    newest: (names) => served.filter(({ name }) => names.includes(name)),
    gone: (packages) => packages.filter((one) => !has(one)),
    download: (packages) => {
      for (const one of packages.filter(has))
        writeAtomic(debFile(cache, one), Buffer.from(`${one.name} ${one.version}`));
    },
    close: () => {},
  };
};
const GIT = pin('git', '2.47-1');

describe.each(['locked', 'served'] as const)('resolvePackages, policy %s', (policy) => {
  it('takes the versions of the lock while they are served, and then needs no archive', () => {
    const expected = { packages: OLD, source: 'locked' };
    expect(resolvePackages(LOCK, BASE, policy, cache, serving([...OLD, GIT]))).toEqual(expected);
    // The archive has moved on, the cache has not.
    expect(resolvePackages(LOCK, BASE, policy, cache, serving(NEW))).toEqual(expected);
    expect(opened).toBe(1);
  });
});

describe('when the archive no longer serves a version of the lock', () => {
  it('locked refuses, with its name and what to do', () => {
    expect(() => resolvePackages(LOCK, BASE, 'locked', cache, serving([...NEW, GIT]))).toThrowError(
      expect.objectContaining({
        code: 'toolchain_version_gone',
        message: expect.stringMatching(/libc6 2\.41-1: run `evaluator toolchain --refresh`/),
      }),
    );
  });

  it('served takes what is there now, says so, and stays with it', () => {
    const expected = { packages: NEW, source: 'served' };
    expect(resolvePackages(LOCK, BASE, 'served', cache, serving([...NEW, GIT]))).toEqual(expected);
    const later = [pin('bash', '5.2-1'), pin('libc6', '2.41-3'), GIT];
    expect(resolvePackages(LOCK, BASE, 'served', cache, serving(later))).toEqual(expected);
    expect(opened).toBe(1);
  });
});

describe('refreshLock', () => {
  it('names what the archive serves', () => {
    expect(parseLock(refreshLock(LOCK, serving([...NEW, GIT])))).toEqual(
      parseLock(lockOf(['base', NEW], ['git', [GIT]])),
    );
  });
});
