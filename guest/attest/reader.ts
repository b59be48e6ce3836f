import { type Code, EvaluatorError } from '../errors.ts';

/** Little-endian reading with every bound checked, so that a lying length ends in a code, never past the end. */
export class ByteReader {
  readonly #buffer: Buffer;
  readonly #document: string;
  readonly #code: Code;
  #offset = 0;

  /** @param document names the input in messages; @param code is thrown when it ends too early or too late. */
  constructor(buffer: Buffer, document: string, code: Code) {
    this.#buffer = buffer;
    this.#document = document;
    this.#code = code;
  }

  get remaining(): number {
    return this.#buffer.length - this.#offset;
  }

  /** Everything read so far. */
  consumed(): Buffer {
    return this.#buffer.subarray(0, this.#offset);
  }

  bytes(length: number, field: string): Buffer {
    if (length > this.remaining) {
      throw new EvaluatorError(
        this.#code,
        `${this.#document}: ends inside ${field} (${length} bytes wanted, ${this.remaining} left)`,
      );
    }
    const slice = this.#buffer.subarray(this.#offset, this.#offset + length);
    this.#offset += length;
    return slice;
  }

  hex(length: number, field: string): string {
    return this.bytes(length, field).toString('hex');
  }

  u16(field: string): number {
    return this.bytes(2, field).readUInt16LE();
  }

  u32(field: string): number {
    return this.bytes(4, field).readUInt32LE();
  }

  /** A reader over the next `length` bytes alone. */
  sub(length: number, field: string): ByteReader {
    return new ByteReader(this.bytes(length, field), this.#document, this.#code);
  }

  /** @throws the reader's code when bytes are left. */
  end(field: string): void {
    if (this.remaining > 0) {
      throw new EvaluatorError(this.#code, `${this.#document}: ${this.remaining} bytes too many in ${field}`);
    }
  }
}
