import { EvaluatorError } from '../../guest/errors.ts';

/** What a msgpack text of a dstack attestation is made of; bytes come as `Buffer`. */
export type Msgpack = null | boolean | number | string | Buffer | Msgpack[] | { [key: string]: Msgpack };

const MAX_DEPTH = 8;

function malformed(problem: string): EvaluatorError {
  return new EvaluatorError('ra_tls_evidence_malformed', `certificate, msgpack: ${problem}`);
}

/** Big-endian reading with every bound checked. */
class Reader {
  readonly #bytes: Buffer;
  #offset = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  take(length: number): Buffer {
    if (length > this.#bytes.length - this.#offset) throw malformed('ends too early');
    this.#offset += length;
    return this.#bytes.subarray(this.#offset - length, this.#offset);
  }

  unsigned(size: number): number {
    return this.take(size).readUIntBE(0, size);
  }

  get atEnd(): boolean {
    return this.#offset === this.#bytes.length;
  }
}

function readText(reader: Reader, length: number): string {
  return reader.take(length).toString('utf8');
}

function readArray(reader: Reader, length: number, depth: number): Msgpack[] {
  const items: Msgpack[] = [];
  for (let i = 0; i < length; i++) items.push(readValue(reader, depth));
  return items;
}

function readMap(reader: Reader, length: number, depth: number): { [key: string]: Msgpack } {
  const members = new Map<string, Msgpack>();
  for (let i = 0; i < length; i++) {
    const key = readValue(reader, depth);
    if (typeof key !== 'string' || members.has(key)) throw malformed('a key twice, or one that is no text');
    members.set(key, readValue(reader, depth));
  }
  return Object.fromEntries(members);
}

/** The forms with a length of 1, 2 or 4 bytes after their tag. */
const SIZED: Readonly<Record<number, (reader: Reader, depth: number) => Msgpack>> = {
  196: (reader) => reader.take(reader.unsigned(1)),
  197: (reader) => reader.take(reader.unsigned(2)),
  198: (reader) => reader.take(reader.unsigned(4)),
  204: (reader) => reader.unsigned(1),
  205: (reader) => reader.unsigned(2),
  206: (reader) => reader.unsigned(4),
  217: (reader) => readText(reader, reader.unsigned(1)),
  218: (reader) => readText(reader, reader.unsigned(2)),
  219: (reader) => readText(reader, reader.unsigned(4)),
  220: (reader, depth) => readArray(reader, reader.unsigned(2), depth),
  221: (reader, depth) => readArray(reader, reader.unsigned(4), depth),
  222: (reader, depth) => readMap(reader, reader.unsigned(2), depth),
  223: (reader, depth) => readMap(reader, reader.unsigned(4), depth),
};

function readValue(reader: Reader, depth: number): Msgpack {
  if (depth === 0) throw malformed(`deeper than ${MAX_DEPTH} levels`);
  const tag = reader.unsigned(1);
  if (tag <= 0x7f) return tag;
  if (tag <= 0x8f) return readMap(reader, tag & 0x0f, depth - 1);
  if (tag <= 0x9f) return readArray(reader, tag & 0x0f, depth - 1);
  if (tag <= 0xbf) return readText(reader, tag & 0x1f);
  if (tag === 0xc0) return null;
  if (tag === 0xc2 || tag === 0xc3) return tag === 0xc3;
  const read = SIZED[tag];
  if (!read) throw malformed(`a form (0x${tag.toString(16)}) that no attestation has`);
  return read(reader, depth - 1);
}

/**
 * Reads one msgpack value, and nothing after it: the forms that serde writes, no floats, no signed numbers,
 * no extension types. Its work is bounded by the length of `bytes`.
 * @throws ra_tls_evidence_malformed.
 */
export function parseMsgpack(bytes: Buffer): Msgpack {
  const reader = new Reader(bytes);
  const value = readValue(reader, MAX_DEPTH);
  if (!reader.atEnd) throw malformed('something follows');
  return value;
}
