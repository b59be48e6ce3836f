import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { EvaluatorError } from '../../guest/errors.ts';
import { KEY_BYTES } from '../../guest/tasks/task-key.ts';

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
