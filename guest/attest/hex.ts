import { type Code, EvaluatorError } from '../errors.ts';

/**
 * Bytes of a foreign hex text: a leading `0x` is dropped and upper case accepted (spec/01, raw dstack → wire).
 * @param where names the field in the message.
 * @throws `code` when the text is not whole hex bytes.
 */
export function decodeHex(text: string, code: Code, where: string): Buffer {
  const digits = /^0x/i.test(text) ? text.slice(2) : text;
  // Buffer.from stops silently at the first bad digit, so the text is judged first.
  if (digits.length % 2 !== 0 || !/^[0-9a-f]*$/i.test(digits)) {
    throw new EvaluatorError(code, `${where}: not whole hex bytes`);
  }
  return Buffer.from(digits, 'hex');
}
