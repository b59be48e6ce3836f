import { type Code, EvaluatorError } from '../../guest/errors.ts';
import { encodeCanonical } from '../../guest/wire/canonical.ts';

/** Two values have the same canonical form. @throws EvaluatorError with `code`, saying both. */
export function requireEqual(code: Code, what: string, found: unknown, expected: unknown): void {
  const same = encodeCanonical([found]).equals(encodeCanonical([expected]));
  if (!same)
    throw new EvaluatorError(code, `${what}: ${JSON.stringify(found)} is not ${JSON.stringify(expected)}`);
}
