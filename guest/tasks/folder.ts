import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, lstat, open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { EvaluatorError } from '../errors.ts';
import { verifyFileNames } from './file-names.ts';

/** A regular file found below a folder; `path` is relative and POSIX. */
export interface FoundFile {
  path: string;
  executable: boolean;
  sizeBytes: number;
}

const MAX_FILES = 20_000;
const MAX_DEPTH = 32;

async function walk(
  root: string,
  relative: string,
  depth: number,
  where: string,
  keep: (path: string) => boolean,
  found: FoundFile[],
): Promise<void> {
  if (depth > MAX_DEPTH)
    throw new EvaluatorError('task_file_name', `${where}: ${relative}: deeper than ${MAX_DEPTH} folders`);
  const names = await readdir(join(root, relative), { encoding: 'buffer' });
  for (const raw of names) {
    const name = raw.toString('utf8');
    const path = relative === '' ? name : `${relative}/${name}`;
    if (!Buffer.from(name).equals(raw))
      throw new EvaluatorError('task_file_name', `${where}: ${JSON.stringify(path)}: the name is not UTF-8`);
    const stat = await lstat(join(root, path));
    if (stat.isDirectory()) {
      await walk(root, path, depth + 1, where, keep, found);
      continue;
    }
    if (!keep(path)) continue;
    if (stat.isSymbolicLink())
      throw new EvaluatorError(
        'task_file_symlink',
        `${where}: ${path} is a symbolic link; copy what it names`,
      );
    if (!stat.isFile())
      throw new EvaluatorError(
        'task_file_special',
        `${where}: ${path} is neither a file nor a folder; remove it`,
      );
    if (stat.nlink !== 1)
      throw new EvaluatorError(
        'task_file_hard_link',
        `${where}: ${path} has ${stat.nlink} names (hard links); copy it`,
      );
    if (found.push({ path, executable: (stat.mode & 0o100) !== 0, sizeBytes: stat.size }) > MAX_FILES)
      throw new EvaluatorError('task_file_name', `${where}: more than ${MAX_FILES} files`);
  }
}

/**
 * Every regular file below a folder, sorted by code point. Follows no link.
 * @param where how messages call the folder: the task's name.
 * @param keep says of a path whether it counts; what does not is passed over, whatever it is.
 * @throws task_file_symlink, task_file_hard_link, task_file_special, task_file_name, task_file_collision.
 */
export async function listFolder(
  directory: string,
  where: string,
  keep: (path: string) => boolean,
): Promise<FoundFile[]> {
  const found: FoundFile[] = [];
  await walk(directory, '', 0, where, keep, found);
  verifyFileNames(
    found.map((file) => file.path),
    where,
  );
  return found.sort((a, b) => Buffer.compare(Buffer.from(a.path), Buffer.from(b.path)));
}

// Another file could have taken the listed one's place: the open handle decides, never the name.
async function withFile<T>(
  directory: string,
  path: string,
  use: (file: FileHandle) => Promise<T>,
): Promise<T> {
  const file = await open(
    join(directory, path),
    constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK,
  );
  try {
    if (!(await file.stat()).isFile())
      throw new EvaluatorError('task_file_special', `${path} is not a regular file`);
    return await use(file);
  } finally {
    await file.close();
  }
}

/** Hex SHA-256 of a file's content, in constant memory. */
export function hashFile(directory: string, path: string): Promise<string> {
  return withFile(directory, path, async (file) => {
    const hash = createHash('sha256');
    const chunk = Buffer.allocUnsafe(256 * 1024);
    for (;;) {
      const { bytesRead } = await file.read(chunk, 0, chunk.length, null);
      if (bytesRead === 0) return hash.digest('hex');
      hash.update(chunk.subarray(0, bytesRead));
    }
  });
}

/** A file's bytes. */
export function readRegularFile(directory: string, path: string): Promise<Buffer> {
  return withFile(directory, path, (file) => file.readFile());
}
