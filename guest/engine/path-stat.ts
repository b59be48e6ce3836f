import { z } from 'zod';
import { EvaluatorError } from '../errors.ts';
import type { PathStat } from './port.ts';

/** The bits of Go's os.FileMode that name a kind; a file with none of them is a regular file. */
const MODE_DIRECTORY = 2 ** 31;
const MODE_LINK = 2 ** 27;
const MODE_KIND =
  MODE_DIRECTORY +
  MODE_LINK +
  2 ** 26 + // device
  2 ** 25 + // named pipe
  2 ** 24 + // socket
  2 ** 21 + // character device
  2 ** 19; // irregular

const statHeader = z.object({
  name: z.string(),
  size: z.int(),
  mode: z
    .int()
    .min(0)
    .max(2 ** 32 - 1),
  linkTarget: z.string(),
});

/** Reads the header in which the engine answers an lstat. Throws `engine_error` when it is none. */
export function parsePathStat(header: string | string[] | undefined): PathStat {
  const stat = statHeader.safeParse(decode(header));
  if (!stat.success) {
    throw new EvaluatorError('engine_error', 'statPath: the path header is missing or malformed');
  }
  const { name, size, mode, linkTarget } = stat.data;
  return {
    name,
    sizeBytes: size,
    mode,
    isRegularFile: (mode & MODE_KIND) === 0,
    isDirectory: (mode & MODE_DIRECTORY) !== 0,
    linkTarget,
  };
}

/** What is at `path` when the engine could not follow it: a link, whose target is not told. */
export function unresolvable(path: string): PathStat {
  return {
    name: path.slice(path.lastIndexOf('/') + 1),
    sizeBytes: 0,
    mode: MODE_LINK + 0o777,
    isRegularFile: false,
    isDirectory: false,
    linkTarget: '',
  };
}

function decode(header: string | string[] | undefined): unknown {
  try {
    return JSON.parse(Buffer.from(String(header), 'base64').toString('utf8'));
  } catch {
    return null;
  }
}
