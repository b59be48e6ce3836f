import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { EvaluatorError } from '../../guest/errors.ts';
import { sha256Hex, writeAtomic } from './cache.ts';
import { type DebianArchive, debFile, isCached } from './debian.ts';
import { type DebianPackage, packagesOf, parseLock, withVersions } from './lock.ts';

/**
 * `locked`: the exact versions of the lock, or a refusal. `served`: those too, as long as the archive serves them;
 * after that, what its signed lists name (docs/decisions.md).
 */
export type LockPolicy = 'locked' | 'served';

export type ResolvedPackages = { packages: readonly DebianPackage[]; source: LockPolicy };

/**
 * The packages of some groups, their bytes in the cache. With a full cache neither apt nor a network is needed.
 * @throws toolchain_unavailable, toolchain_invalid, toolchain_version_gone (locked only, names each package)
 */
export function resolvePackages(
  lock: string,
  groups: ReadonlySet<string>,
  policy: LockPolicy,
  cache: string,
  openArchive: () => DebianArchive,
): ResolvedPackages {
  const locked = packagesOf(parseLock(lock), groups);
  if (locked.every((one) => isCached(cache, one))) return { packages: locked, source: 'locked' };
  const instead = policy === 'served' ? rememberedLock(lock, cache) : null;
  if (instead !== null) {
    const packages = packagesOf(parseLock(instead), groups);
    if (packages.every((one) => isCached(cache, one))) return { packages, source: 'served' };
  }
  const archive = openArchive();
  try {
    const gone = archive.gone(locked);
    if (gone.length === 0) {
      archive.download(locked, cache);
      return { packages: locked, source: 'locked' };
    }
    if (policy === 'locked') throw versionsGone(gone);
    // Never some of each: packages of one source fit their own version only.
    const served = refreshedLock(lock, archive);
    writeAtomic(rememberedPath(lock, cache), Buffer.from(served));
    const packages = packagesOf(parseLock(served), groups);
    archive.download(packages, cache);
    return { packages, source: 'served' };
  } finally {
    archive.close();
  }
}

/** The lock with the versions that the archive serves now. @throws toolchain_unavailable */
export function refreshLock(lock: string, openArchive: () => DebianArchive): string {
  const archive = openArchive();
  try {
    return refreshedLock(lock, archive);
  } finally {
    archive.close();
  }
}

/** The bytes' places, for packages that `resolvePackages` returned. */
export function debFiles(packages: readonly DebianPackage[], cache: string): string[] {
  return packages.map((one) => debFile(cache, one));
}

function refreshedLock(lock: string, archive: DebianArchive): string {
  const names = new Set(parseLock(lock).flatMap(({ packages }) => packages.map(({ name }) => name)));
  return withVersions(lock, new Map(archive.newest([...names]).map((one) => [one.name, one])));
}

function rememberedPath(lock: string, cache: string): string {
  return join(cache, 'served', `${sha256Hex(lock)}.lock`);
}

function rememberedLock(lock: string, cache: string): string | null {
  try {
    return readFileSync(rememberedPath(lock, cache), 'utf8');
  } catch {
    return null;
  }
}

function versionsGone(gone: readonly DebianPackage[]): EvaluatorError {
  const list = gone.map(({ name, version }) => `${name} ${version}`).join(', ');
  return new EvaluatorError(
    'toolchain_version_gone',
    `The Debian archive no longer serves ${list}: run \`evaluator toolchain --refresh\`, and commit the new debian.lock.`,
  );
}
