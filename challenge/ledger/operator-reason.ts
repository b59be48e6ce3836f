import { EvaluatorError } from '../../guest/errors.ts';

/** An operator's own words, as they stay in the history. @throws reopen_reason_invalid. */
export function verifyOperatorReason(reason: string): void {
  if (/^[\x20-\x7e]{1,500}$/.test(reason) && reason.trim() !== '') return;
  throw new EvaluatorError('reopen_reason_invalid', 'operator: say why, in 1 to 500 printable characters');
}
