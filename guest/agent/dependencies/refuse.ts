import { type Code, EvaluatorError } from '../../errors.ts';
import { printable } from '../../wire/scalars.ts';

export const REQUIREMENTS_NAME = 'requirements.txt';

/** An error at a line of an agent's requirements. */
export function atLine(
  code: Code,
  line: number,
  what: string,
  options?: { cause?: unknown },
): EvaluatorError {
  return new EvaluatorError(code, `${REQUIREMENTS_NAME}:${line}: ${printable(what)}`, options);
}
