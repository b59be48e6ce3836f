import { isEvaluatorError } from '../errors.ts';
import type { Engine, PathStat } from './port.ts';
import { readTar, type TarCaps, type TarFile } from './tar-read.ts';

const FILE_TIME_MS = 30_000;

/** What of the engine is needed to look and to read. */
export type CollectFrom = Pick<Engine, 'statPath' | 'getArchive'>;

type NotCollected = { kind: 'absent' } | { kind: 'refused'; reason: string };

export type SingleFile = { kind: 'file'; bytes: Buffer } | NotCollected;

/**
 * Reads one regular file of at most `maxBytes` from a stopped container, at an absolute path. No link is
 * followed and no sparse file is read. Everything an agent can have put there is an answer; throws what the
 * engine's calls and a broken-off archive throw.
 */
export async function readSingleFile(
  engine: CollectFrom,
  containerId: string,
  path: string,
  maxBytes: number,
): Promise<SingleFile> {
  const stat = await look(engine, containerId, path);
  if ('kind' in stat) return stat;
  if (!stat.isRegularFile) return { kind: 'refused', reason: 'not a regular file' };
  if (stat.sizeBytes > maxBytes) return { kind: 'refused', reason: `larger than ${maxBytes} bytes` };
  const caps = { totalBytes: maxBytes, entries: 1, depth: 1, timeMs: FILE_TIME_MS };
  const files = await read(engine, containerId, path, caps);
  if ('kind' in files) return files;
  const [only] = files;
  return only === undefined
    ? { kind: 'refused', reason: 'not a regular file' }
    : { kind: 'file', bytes: only.bytes };
}

/**
 * The lstat of `path`, if every directory above it is one. From the top down: asked about a path below a file
 * or a loop of links, the engine fails with status 500, which would pass for a fault of its own.
 */
async function look(
  engine: CollectFrom,
  containerId: string,
  path: string,
): Promise<PathStat | NotCollected> {
  const components = path.split('/').slice(1);
  for (let depth = 1; depth < components.length; depth += 1) {
    const parent = await engine.statPath(containerId, `/${components.slice(0, depth).join('/')}`);
    if (parent === null) return { kind: 'absent' };
    if (!parent.isDirectory) return { kind: 'refused', reason: 'a parent is no directory' };
  }
  return (await engine.statPath(containerId, path)) ?? { kind: 'absent' };
}

async function read(
  engine: CollectFrom,
  containerId: string,
  path: string,
  caps: TarCaps,
): Promise<TarFile[] | NotCollected> {
  try {
    return await readTar(await engine.getArchive(containerId, path), caps);
  } catch (error) {
    // What lies on a tmpfs is not there for the engine's archive.
    if (isEvaluatorError(error, 'engine_not_found')) return { kind: 'absent' };
    if (isEvaluatorError(error, 'archive_refused')) return { kind: 'refused', reason: error.message };
    throw error;
  }
}
