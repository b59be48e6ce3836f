import type { EvaluatorError } from '../errors.ts';

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
