import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';
import { EvaluatorError } from '../guest/errors.ts';

const TEXT = /^([0-9a-f]{64})\n?$/;

function invalid(path: string, problem: string, cause?: unknown): EvaluatorError {
  return new EvaluatorError('golden_key_invalid', `golden key ${path}: ${problem}`, { cause });
}

function readText(path: string): string {
  let file: number;
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (cause) {
    throw invalid(path, 'cannot be read', cause);
  }
  try {
    const stat = fstatSync(file);
    if (!stat.isFile()) throw invalid(path, 'not a regular file');
    const { mode, size } = stat;
    if ((mode & 0o077) !== 0) throw invalid(path, 'others than its owner may use it; chmod 600 it');
    return size > 65 ? '' : readFileSync(file, 'latin1');
  } finally {
    closeSync(file);
  }
}

/** Reads a file of `evaluator keygen`: 64 hex digits, its owner's alone. @throws golden_key_invalid. */
export function readGoldenKey(path: string): Buffer {
  const digits = TEXT.exec(readText(path))?.[1];
  if (digits === undefined) throw invalid(path, 'not 64 hex digits; make one with `evaluator keygen`');
  return Buffer.from(digits, 'hex');
}
