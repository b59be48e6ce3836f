import { EvaluatorError } from '../errors.ts';

/** What canonical JSON can say: no floats, no bytes, no undefined (spec/01). */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

const MAX_DEPTH = 64;
const ASCII = /^[\x20-\x7e]*$/;
const PEM = /^-----BEGIN [\x20-\x7e\n]*$/;

/** How a string of a document is written; refuses what the document cannot say. */
type EncodeString = (text: string, where: string) => string;

function encodeString(text: string, where: string): string {
  if (!ASCII.test(text) && !PEM.test(text)) {
    throw new EvaluatorError(
      'value_not_encodable',
      `${where}: a string with characters outside U+0020..U+007E`,
    );
  }
  return JSON.stringify(text);
}

function encodeUnicode(text: string, where: string): string {
  if (!text.isWellFormed())
    throw new EvaluatorError('value_not_encodable', `${where}: a string with a lone surrogate`);
  return JSON.stringify(text);
}

function encodeKey(key: string, where: string): string {
  if (!ASCII.test(key)) {
    throw new EvaluatorError('value_not_encodable', `${where}: a key with characters outside U+0020..U+007E`);
  }
  return JSON.stringify(key);
}

function encodeValue(value: unknown, where: string, depth: number, encodeText: EncodeString): string {
  if (depth > MAX_DEPTH)
    throw new EvaluatorError('json_too_deep', `${where}: deeper than ${MAX_DEPTH} levels`);
  if (value === null || typeof value === 'boolean') return String(value);
  if (typeof value === 'string') return encodeText(value, where);
  if (typeof value === 'number') {
    if (!Number.isSafeInteger(value) || Object.is(value, -0)) {
      throw new EvaluatorError(
        'value_not_encodable',
        `${where}: ${Object.is(value, -0) ? '-0' : value} is not a safe integer`,
      );
    }
    return String(value);
  }
  if (Array.isArray(value)) {
    // Array.from visits holes too, as undefined, which has no canonical form.
    const items = Array.from(value, (item, index) =>
      encodeValue(item, `${where}[${index}]`, depth + 1, encodeText),
    );
    return `[${items.join(',')}]`;
  }
  if (
    typeof value === 'object' &&
    (Object.getPrototypeOf(value) === Object.prototype || Object.getPrototypeOf(value) === null)
  ) {
    // All keys are ASCII, so UTF-16 order and code point order are the same.
    const members = Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(
        ([key, item]) =>
          `${encodeKey(key, where)}:${encodeValue(item, `${where}.${key}`, depth + 1, encodeText)}`,
      );
    return `{${members.join(',')}}`;
  }
  throw new EvaluatorError('value_not_encodable', `${where}: ${typeof value} has no canonical form`);
}

/**
 * Canonical JSON v1: sorted members, no white space, minimal escapes, ASCII only (spec/01).
 * @throws value_not_encodable on floats, -0, bytes, undefined, foreign characters; json_too_deep.
 */
export function encodeCanonical(value: unknown): Buffer {
  return Buffer.from(encodeValue(value, '$', 0, encodeString), 'ascii');
}

/**
 * The same form for a request to a foreign service that quotes foreign text: strings may be any Unicode, in
 * UTF-8. No document of ours is encoded so.
 * @throws value_not_encodable, json_too_deep.
 */
export function encodeCanonicalUnicode(value: unknown): Buffer {
  return Buffer.from(encodeValue(value, '$', 0, encodeUnicode), 'utf8');
}

/**
 * Parses bytes that must be canonical: re-encoding them must give the same bytes, which refuses duplicate
 * keys, 1.0, escapes and spaces without a parser of ours (spec/01).
 * @throws json_too_large, json_malformed, json_not_canonical.
 */
export function decodeCanonical(bytes: Uint8Array, maxBytes: number): Json {
  if (bytes.byteLength > maxBytes) {
    throw new EvaluatorError(
      'json_too_large',
      `document of ${bytes.byteLength} bytes, at most ${maxBytes} are read`,
    );
  }
  const received = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let value: unknown;
  try {
    value = JSON.parse(received.toString('latin1'));
  } catch (cause) {
    throw new EvaluatorError('json_malformed', 'document is not JSON', { cause });
  }
  let encoded: Buffer;
  try {
    encoded = encodeCanonical(value);
  } catch (cause) {
    throw new EvaluatorError(
      'json_not_canonical',
      `document is not canonical JSON: ${(cause as Error).message}`,
      { cause },
    );
  }
  if (!encoded.equals(received)) {
    throw new EvaluatorError('json_not_canonical', 'document differs from its canonical re-encoding');
  }
  return value as Json;
}
