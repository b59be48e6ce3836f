import { EvaluatorError } from '../errors.ts';

/** How a process of this project ends; the README lists the same. */
export const EXIT = {
  accepted: 0,
  rejected: 1,
  refusedInput: 2,
  verificationFailed: 3,
  aborted: 5,
} as const;

export const SIGNAL_EXIT = { SIGINT: 130, SIGTERM: 143 } as const;

/** The exit code that an error ends a process with. */
export function exitCodeOf(error: EvaluatorError): number {
  if (error.code === 'result_refused') return EXIT.rejected;
  if (error.fault === 'input') return EXIT.refusedInput;
  return error.fault === 'attestation' ? EXIT.verificationFailed : EXIT.aborted;
}

/**
 * Any error as one with a code. What nobody foresaw is `run_aborted`; unusable options of Node's parser are
 * `usage`.
 */
export function asEvaluatorError(error: unknown): EvaluatorError {
  if (error instanceof EvaluatorError) return error;
  const { code, message } = error as NodeJS.ErrnoException;
  if (code?.startsWith('ERR_PARSE_ARGS')) return new EvaluatorError('usage', message);
  return new EvaluatorError(
    'run_aborted',
    `unexpected: ${error instanceof Error ? error.message : String(error)}`,
    { cause: error },
  );
}
