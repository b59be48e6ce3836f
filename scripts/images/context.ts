import { chmod, cp, mkdir, readdir, readFile, stat, utimes } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { EvaluatorError } from '../../guest/errors.ts';
import { CACHE_DIRECTORY } from '../../guest/stages/config.ts';
import { openCache } from '../../guest/tasks/cache.ts';
import { importedFiles, namedPackages } from './closure.ts';
import { neededPackages, parseLockfile } from './packages.ts';
import { APP_DIRECTORY, IMAGES, type ImageRole } from './roles.ts';
import { isShipped } from './shipped.ts';

export interface ContextRequest {
  role: ImageRole;
  /** A commit's files with its packages, as `exportSource` leaves them. */
  source: string;
  /** The baked cache; null for an image without tasks. */
  cache: string | null;
  /** An empty or absent folder. */
  out: string;
  /** The time of every file, seconds since the epoch. */
  epoch: number;
}

async function filesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort();
}

async function copyFile(from: string, to: string): Promise<void> {
  await mkdir(dirname(to), { recursive: true });
  await cp(from, to);
}

async function copyPackage(source: string, place: string, out: string): Promise<void> {
  const name = place.slice(place.lastIndexOf('node_modules/') + 'node_modules/'.length);
  for (const path of await filesBelow(join(source, place))) {
    // Packages nested in this one are needed, or not, on their own account.
    if (path.startsWith('node_modules/') || !isShipped(name, path)) continue;
    await copyFile(join(source, place, path), join(out, place, path));
  }
}

/** One mode for files, one for programs and folders, one time: neither umask nor checkout shows in an image. */
async function normalise(path: string, epoch: number): Promise<void> {
  const info = await stat(path);
  if (info.isDirectory()) for (const name of await readdir(path)) await normalise(join(path, name), epoch);
  await chmod(path, info.isDirectory() || (info.mode & 0o100) !== 0 ? 0o755 : 0o644);
  await utimes(path, epoch, epoch);
}

/**
 * A build's context: `Dockerfile.*`; `app/` with the source that the entry imports and the packages that this
 * source names; `cache/`. Both are laid out from the image's root, so that no builder makes a folder on its way.
 * @returns the packages in it, as paths below app/.
 * @throws build_source_invalid, cache_not_sealed, and what `openCache` refuses.
 */
export async function makeContext({ role, source, cache, out, epoch }: ContextRequest): Promise<string[]> {
  const { entry, dockerfile, data } = IMAGES[role];
  const imported = importedFiles(source, entry);
  const manifest = JSON.parse(await readFile(join(source, 'package.json'), 'utf8'));
  const lock = parseLockfile(await readFile(join(source, 'package-lock.json'), 'utf8'));
  const packages = neededPackages(lock, namedPackages(source, imported, Object.keys(manifest.dependencies)));

  const app = join(out, 'app', APP_DIRECTORY);
  await copyFile(join(source, dockerfile), join(out, dockerfile));
  for (const path of [...imported, ...data]) await copyFile(join(source, path), join(app, path));
  for (const place of packages) await copyPackage(source, place, app);
  if (cache !== null) await copySealedCache(cache, join(out, 'cache', CACHE_DIRECTORY));
  await normalise(out, epoch);
  return packages;
}

async function copySealedCache(cache: string, out: string): Promise<void> {
  const { cacheId } = await openCache(cache);
  if (cacheId === null)
    throw new EvaluatorError(
      'cache_not_sealed',
      `${cache}: an image takes sealed tests only; bake with --seal`,
    );
  await cp(cache, out, { recursive: true });
}
