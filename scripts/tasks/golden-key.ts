import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open, writeFile } from 'node:fs/promises';
import { EvaluatorError } from '../../guest/errors.ts';
import { KEY_BYTES } from '../../guest/tasks/task-key.ts';

const TEXT = /^([0-9a-f]{64})\n?$/;
const MAX_FILE_BYTES = 2 * KEY_BYTES + 1;

function invalid(path: string, problem: string, cause?: unknown): EvaluatorError {
  return new EvaluatorError('golden_key_invalid', `golden key ${path}: ${problem}`, { cause });
}

async function readKeyText(file: FileHandle, path: string): Promise<string> {
  const stat = await file.stat();
  if (!stat.isFile()) throw invalid(path, 'not a regular file');
  if ((stat.mode & 0o077) !== 0)
    throw invalid(path, 'others than its owner may use it; chmod 600 it, or make a new one');
  if (stat.size > MAX_FILE_BYTES) throw invalid(path, 'not 64 hex digits');
  return file.readFile('ascii');
}

/**
 * Reads a key file of `evaluator keygen`: 64 lower-case hex digits that only its owner may read.
 * @throws golden_key_invalid when it cannot be read, is malformed or is open to others.
 */
export async function readGoldenKey(path: string): Promise<Buffer> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch(
    (cause: NodeJS.ErrnoException) => {
      throw invalid(path, `cannot be read (${cause.code})`, cause);
    },
  );
  try {
    const digits = TEXT.exec(await readKeyText(file, path))?.[1];
    if (digits === undefined) throw invalid(path, 'not 64 hex digits; make one with `evaluator keygen`');
    return Buffer.from(digits, 'hex');
  } finally {
    await file.close();
  }
}

/**
 * Writes a new random golden key, for its owner alone; never over a file that is there.
 * @throws golden_key_exists, usage when the place cannot be written.
 */
export async function writeGoldenKey(path: string): Promise<void> {
  const text = `${randomBytes(KEY_BYTES).toString('hex')}\n`;
  await writeFile(path, text, { mode: 0o600, flag: 'wx', flush: true }).catch(
    (cause: NodeJS.ErrnoException) => {
      if (cause.code === 'EEXIST')
        throw new EvaluatorError(
          'golden_key_exists',
          `${path}: there already; a lost golden key opens nothing any more, so name another file`,
        );
      throw new EvaluatorError('usage', `${path}: cannot be written (${cause.code})`, { cause });
    },
  );
}
