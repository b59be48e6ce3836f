import { readFileSync } from 'node:fs';
import { EvaluatorError } from '../../guest/errors.ts';

/** The bytes of the file that an option names. @throws usage naming option and file. */
export function readInput(path: string, option: string): Buffer {
  try {
    return readFileSync(path);
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unreadable';
    throw new EvaluatorError('usage', `--${option} ${path}: cannot be read (${code})`, { cause });
  }
}
