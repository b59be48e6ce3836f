import { extract, pack } from 'tar-stream';
import { EvaluatorError, isEvaluatorError } from '../errors.ts';
import { verifyFileNames } from './file-names.ts';
import type { TaskFile } from './types.ts';

/** The first entry: without it, the public digests would confirm guesses at short secrets (spec/05). */
export const SALT_PATH = 'tests/.salt';
export const SALT_BYTES = 32;

const MAX_FILES = 20_000;
const EPOCH = new Date(0);

function problemOf(files: readonly TaskFile[]): string | null {
  const [salt] = files;
  if (salt?.path !== SALT_PATH || salt.bytes.length !== SALT_BYTES)
    return `its first file is not ${SALT_PATH} with ${SALT_BYTES} bytes`;
  if (files.length > MAX_FILES) return `more than ${MAX_FILES} files`;
  return files.every((file) => file.path.startsWith('tests/')) ? null : 'a file that is not below tests/';
}

/** @throws sealed_malformed, task_file_name, task_file_collision. */
function verifySealedFiles(files: readonly TaskFile[], where: string): void {
  const problem = problemOf(files);
  if (problem !== null) throw new EvaluatorError('sealed_malformed', `${where}: sealed tests: ${problem}`);
  verifyFileNames(
    files.map((file) => file.path),
    where,
  );
}

/** The salt first, then by code point, so that the same files give the same bytes. */
function ordered(files: readonly TaskFile[]): TaskFile[] {
  const rank = (path: string) => (path === SALT_PATH ? Buffer.alloc(0) : Buffer.from(path));
  return [...files].sort((a, b) => Buffer.compare(rank(a.path), rank(b.path)));
}

/**
 * An uncompressed tar of tests/, the same bytes for the same files: salt first, owner 0, time 0.
 * @param where how messages call the task.
 * @throws sealed_malformed, task_file_name, task_file_collision.
 */
export async function packSealedTar(files: readonly TaskFile[], where: string): Promise<Buffer> {
  const inOrder = ordered(files);
  verifySealedFiles(inOrder, where);
  const tar = pack();
  for (const { path, bytes, executable } of inOrder)
    tar.entry({ name: path, mode: executable ? 0o755 : 0o644, mtime: EPOCH, uid: 0, gid: 0 }, bytes);
  tar.finalize();
  const chunks: Buffer[] = [];
  for await (const chunk of tar as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks);
}

async function readEntries(tar: Buffer, where: string): Promise<TaskFile[]> {
  const files: TaskFile[] = [];
  const entries = extract();
  entries.end(tar);
  for await (const entry of entries) {
    const { name, type, mode } = entry.header;
    if (type !== 'file')
      throw new EvaluatorError('sealed_malformed', `${where}: sealed tests: an entry that is no file`);
    const chunks: Buffer[] = [];
    for await (const chunk of entry as AsyncIterable<Buffer>) chunks.push(chunk);
    const [only = Buffer.alloc(0)] = chunks;
    const bytes = chunks.length < 2 ? only : Buffer.concat(chunks);
    files.push({ path: name, bytes, executable: ((mode ?? 0) & 0o100) !== 0 });
    if (files.length > MAX_FILES) break;
  }
  return files;
}

/**
 * Reads a tar of `packSealedTar` and the zeros after it. Files share the tar's memory.
 * @throws sealed_malformed, task_file_name, task_file_collision.
 */
export async function readSealedTar(tar: Buffer, where: string): Promise<TaskFile[]> {
  let files: TaskFile[];
  try {
    files = await readEntries(tar, where);
  } catch (cause) {
    if (isEvaluatorError(cause)) throw cause;
    // The cause is dropped: it might quote the plain text.
    throw new EvaluatorError('sealed_malformed', `${where}: sealed tests: not a tar`);
  }
  verifySealedFiles(files, where);
  return files;
}
