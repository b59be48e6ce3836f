import { EvaluatorError } from '../errors.ts';
import type { Captured } from './port.ts';

const HEADER_BYTES = 8;

/** Keeps the first `limit` bytes, the last `limit` of those after them, and counts all: constant memory. */
export class BoundedCapture {
  readonly #limit: number;
  readonly #head: Buffer;
  readonly #ring: Buffer;
  #headLength = 0;
  #afterHead = 0;

  constructor(limit: number) {
    this.#limit = limit;
    this.#head = Buffer.alloc(limit);
    this.#ring = Buffer.alloc(limit);
  }

  write(bytes: Buffer): void {
    const toHead = Math.min(bytes.length, this.#limit - this.#headLength);
    bytes.copy(this.#head, this.#headLength, 0, toHead);
    this.#headLength += toHead;
    const rest = bytes.length - toHead;
    if (rest === 0) return;
    const last = bytes.subarray(bytes.length - Math.min(rest, this.#limit));
    const at = (this.#afterHead + rest - last.length) % this.#limit;
    const untilWrap = last.copy(this.#ring, at);
    last.copy(this.#ring, 0, untilWrap);
    this.#afterHead += rest;
  }

  captured(): Captured {
    const end = this.#afterHead % this.#limit;
    const tail =
      this.#afterHead <= this.#limit
        ? Buffer.from(this.#ring.subarray(0, this.#afterHead))
        : Buffer.concat([this.#ring.subarray(end), this.#ring.subarray(0, end)]);
    return {
      head: Buffer.from(this.#head.subarray(0, this.#headLength)),
      tail,
      totalBytes: this.#headLength + this.#afterHead,
    };
  }
}

/** Takes a piece of what a process wrote; done with it when it returns. */
export type Payload = (stream: 'stdout' | 'stderr', bytes: Buffer) => void;

/**
 * Reads the engine's multiplexed stream (Tty off): frames of an 8-byte header (stream number, three zeros,
 * big-endian length) and that many bytes. Chunk boundaries may lie anywhere, also inside a header. A frame
 * torn off by the stream's end counts with the bytes that came.
 */
export class FrameParser {
  readonly #payload: Payload;
  readonly #header = Buffer.alloc(HEADER_BYTES);
  #headerLength = 0;
  #payloadLeft = 0;
  #stream: 'stdout' | 'stderr' = 'stdout';

  constructor(payload: Payload) {
    this.#payload = payload;
  }

  /** Takes the next chunk. Throws `engine_error` when what should be a frame header is none. */
  write(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.#payloadLeft > 0) {
        const piece = chunk.subarray(at, at + this.#payloadLeft);
        this.#payload(this.#stream, piece);
        this.#payloadLeft -= piece.length;
        at += piece.length;
      } else {
        const copied = chunk.copy(this.#header, this.#headerLength, at);
        this.#headerLength += copied;
        at += copied;
        if (this.#headerLength === HEADER_BYTES) this.#beginFrame();
      }
    }
  }

  #beginFrame(): void {
    const stream = this.#header[0];
    // 0 is echoed stdin, 3 the engine's own error text; 1 and 2 are what a process writes.
    if (stream === undefined || stream > 3 || this.#header.readUIntBE(1, 3) !== 0) {
      throw new EvaluatorError('engine_error', 'output stream: not a frame header; was a Tty asked for?');
    }
    this.#stream = stream >= 2 ? 'stderr' : 'stdout';
    this.#payloadLeft = this.#header.readUInt32BE(4);
    this.#headerLength = 0;
  }
}

/** Keeps the start and the end of both streams of a process. */
export class FrameReader {
  readonly #stdout: BoundedCapture;
  readonly #stderr: BoundedCapture;
  readonly #parser: FrameParser;

  /** @param keepBytes how many bytes of each stream's start, and as many of its end, are kept. */
  constructor(keepBytes: number) {
    const stdout = new BoundedCapture(keepBytes);
    const stderr = new BoundedCapture(keepBytes);
    this.#stdout = stdout;
    this.#stderr = stderr;
    this.#parser = new FrameParser((stream, bytes) => (stream === 'stdout' ? stdout : stderr).write(bytes));
  }

  /** Takes the next chunk. Throws `engine_error` when what should be a frame header is none. */
  write(chunk: Buffer): void {
    this.#parser.write(chunk);
  }

  captured(): { stdout: Captured; stderr: Captured } {
    return { stdout: this.#stdout.captured(), stderr: this.#stderr.captured() };
  }
}
