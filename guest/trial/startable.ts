import type { Engine } from '../engine/port.ts';

/** The engine and runc read these from the container's own file system, whole, before they start a process. */
const ACCOUNT_FILES = ['/etc/passwd', '/etc/group'] as const;
const MAX_ACCOUNT_BYTES = 1024 * 1024;
/** Where the container will see another file than the engine sees now. */
const MOUNTED_OVER = /^\/(dev|proc|sys)(\/|$)/;

/**
 * Whether the engine can start a process in this container without harm to itself. A pipe in place of an
 * account file makes dockerd wait in `open` for ever, holding the container's lock, so that nobody can even
 * remove it; a huge one fills its memory. @throws engine_*.
 */
export async function isStartable(engine: Pick<Engine, 'statPath'>, containerId: string): Promise<boolean> {
  const [etc, ...fine] = await Promise.all([
    engine.statPath(containerId, '/etc'),
    ...ACCOUNT_FILES.map((path) => isReadable(engine, containerId, path)),
  ]);
  if (etc === null) return true;
  return etc.isDirectory && fine.every(Boolean);
}

/** Absent, or a small regular file; images may link to one. */
async function isReadable(
  engine: Pick<Engine, 'statPath'>,
  containerId: string,
  path: string,
): Promise<boolean> {
  const found = await engine.statPath(containerId, path);
  if (found === null) return true;
  if (found.linkTarget === '') return found.isRegularFile && found.sizeBytes <= MAX_ACCOUNT_BYTES;
  // The engine tells where all links together lead.
  if (MOUNTED_OVER.test(found.linkTarget)) return false;
  const target = await engine.statPath(containerId, found.linkTarget);
  return target?.isRegularFile === true && target.sizeBytes <= MAX_ACCOUNT_BYTES;
}
