import { isEvaluatorError } from '../errors.ts';
import type { Engine } from './port.ts';
import { readTar } from './tar-read.ts';

const READ_TIME_MS = 30_000;

export type SingleFile =
  | { kind: 'file'; bytes: Buffer }
  | { kind: 'absent' }
  | { kind: 'refused'; reason: string };

/**
 * Reads one regular file of at most `maxBytes` from a stopped container, at an absolute path. Looks before it
 * reads, at every directory on the way too, so that no link is followed and no sparse file is read. Throws
 * what the engine's calls throw; everything an agent can have put there is an answer.
 */
export async function readSingleFile(
  engine: Pick<Engine, 'statPath' | 'getArchive'>,
  containerId: string,
  path: string,
  maxBytes: number,
): Promise<SingleFile> {
  const [file, ...parents] = await Promise.all(
    [path, ...parentsOf(path)].map((at) => engine.statPath(containerId, at)),
  );
  for (const parent of parents) {
    if (parent === null) return { kind: 'absent' };
    if (!parent.isDirectory) return { kind: 'refused', reason: 'a parent is no directory' };
  }
  if (file === null || file === undefined) return { kind: 'absent' };
  if (!file.isRegularFile) return { kind: 'refused', reason: 'not a regular file' };
  if (file.sizeBytes > maxBytes) return { kind: 'refused', reason: `larger than ${maxBytes} bytes` };
  try {
    const stream = await engine.getArchive(containerId, path);
    const caps = { totalBytes: maxBytes, entries: 1, depth: 1, timeMs: READ_TIME_MS };
    const [only] = await readTar(stream, caps);
    if (only === undefined) return { kind: 'refused', reason: 'not a regular file' };
    return { kind: 'file', bytes: only.bytes };
  } catch (error) {
    // What lies on a tmpfs can be seen, but is not there to be read.
    if (isEvaluatorError(error, 'engine_not_found')) return { kind: 'absent' };
    if (isEvaluatorError(error, 'archive_refused')) return { kind: 'refused', reason: error.message };
    throw error;
  }
}

/** Every directory above an absolute path, the root excepted. */
function parentsOf(path: string): string[] {
  const components = path.split('/').slice(1, -1);
  return components.map((_, depth) => `/${components.slice(0, depth + 1).join('/')}`);
}
