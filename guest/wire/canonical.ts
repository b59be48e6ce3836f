import { EvaluatorError } from '../errors.ts';
import { verifyShape } from './canonical-shape.ts';

/** What canonical JSON can say: no floats, no bytes, no undefined (spec/01). */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

const MAX_DEPTH = 64;
const ASCII = /^[\x20-\x7e]*$/;
const PEM = /^-----BEGIN [\x20-\x7e\n]*$/;

/** Where in a document the encoder is, joined only for a message: a hostile document has millions of places. */
type Trail = (string | number)[];

/** How a string of a document is written; refuses what the document cannot say. */
type EncodeString = (text: string, trail: Trail) => string;

function refused(code: 'value_not_encodable' | 'json_too_deep', trail: Trail, what: string): EvaluatorError {
  const place = trail.map((step) => (typeof step === 'number' ? `[${step}]` : `.${step}`)).join('');
  return new EvaluatorError(code, `$${place}: ${what}`);
}

function encodeString(text: string, trail: Trail): string {
  if (ASCII.test(text) || PEM.test(text)) return JSON.stringify(text);
  throw refused('value_not_encodable', trail, 'a string with characters outside U+0020..U+007E');
}

function encodeUnicode(text: string, trail: Trail): string {
  if (text.isWellFormed()) return JSON.stringify(text);
  throw refused('value_not_encodable', trail, 'a string with a lone surrogate');
}

function encodeKey(key: string, trail: Trail): string {
  if (ASCII.test(key)) return JSON.stringify(key);
  throw refused('value_not_encodable', trail, 'a key with characters outside U+0020..U+007E');
}

function encodeNumber(value: number, trail: Trail): string {
  if (Number.isSafeInteger(value) && !Object.is(value, -0)) return String(value);
  throw refused('value_not_encodable', trail, `${Object.is(value, -0) ? '-0' : value} is not a safe integer`);
}

function encodeArray(items: readonly unknown[], trail: Trail, encodeText: EncodeString): string {
  const texts: string[] = [];
  // By index, so that a hole is seen too, as undefined, which has no canonical form.
  for (let index = 0; index < items.length; index++) {
    trail.push(index);
    texts.push(encodeValue(items[index], trail, encodeText));
    trail.pop();
  }
  return `[${texts.join(',')}]`;
}

function encodeObject(value: object, trail: Trail, encodeText: EncodeString): string {
  // All keys are ASCII, so UTF-16 order and code point order are the same.
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  const texts = members.map(([key, item]) => {
    const name = encodeKey(key, trail);
    trail.push(key);
    const text = encodeValue(item, trail, encodeText);
    trail.pop();
    return `${name}:${text}`;
  });
  return `{${texts.join(',')}}`;
}

function isPlainObject(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function encodeValue(value: unknown, trail: Trail, encodeText: EncodeString): string {
  if (trail.length > MAX_DEPTH) throw refused('json_too_deep', trail, `deeper than ${MAX_DEPTH} levels`);
  if (value === null || typeof value === 'boolean') return String(value);
  if (typeof value === 'string') return encodeText(value, trail);
  if (typeof value === 'number') return encodeNumber(value, trail);
  if (Array.isArray(value)) return encodeArray(value, trail, encodeText);
  if (isPlainObject(value)) return encodeObject(value, trail, encodeText);
  throw refused('value_not_encodable', trail, `${typeof value} has no canonical form`);
}

/**
 * Canonical JSON v1: sorted members, no white space, minimal escapes, ASCII only (spec/01).
 * @throws value_not_encodable on floats, -0, bytes, undefined, foreign characters; json_too_deep.
 */
export function encodeCanonical(value: unknown): Buffer {
  return Buffer.from(encodeValue(value, [], encodeString), 'ascii');
}

/**
 * The same form for a request to a foreign service that quotes foreign text: strings may be any Unicode, in
 * UTF-8. No document of ours is encoded so.
 * @throws value_not_encodable, json_too_deep.
 */
export function encodeCanonicalUnicode(value: unknown): Buffer {
  return Buffer.from(encodeValue(value, [], encodeUnicode), 'utf8');
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
  const text = received.toString('latin1');
  verifyShape(text);
  let value: unknown;
  try {
    value = JSON.parse(text);
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
