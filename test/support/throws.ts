import { expect } from 'vitest';
import { type Code, EvaluatorError, isEvaluatorError } from '../../guest/errors.ts';

/** The EvaluatorError that `run` throws; anything else it throws, or nothing, is a failed assertion. */
export function thrown(run: () => unknown): EvaluatorError {
  try {
    run();
  } catch (error) {
    if (isEvaluatorError(error)) return error;
    throw error;
  }
  return expect.fail('nothing was thrown');
}

/** The code `run` is refused with. */
export function codeOf(run: () => unknown): Code {
  return thrown(run).code;
}

/** The code that `promise` rejects with. */
export async function rejectionCode(promise: Promise<unknown>): Promise<Code> {
  const error = await promise.then(
    () => expect.fail('nothing was thrown'),
    (cause: unknown) => cause,
  );
  if (error instanceof EvaluatorError) return error.code;
  throw error;
}
