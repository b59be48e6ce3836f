const NEWLINE = 0x0a;

/** One line without its newline; `null` stands for one that was too long and is gone. */
export type Line = Buffer | null;

/**
 * Cuts a stream into lines, holding at most `maxBytes` of an unfinished one. A longer line is dropped up to its
 * newline and reported once, so that a flood without a newline costs no memory.
 */
export class LineSplitter {
  readonly #maxBytes: number;
  readonly #onLine: (line: Line) => void;
  #pieces: Buffer[] = [];
  #length = 0;
  #dropping = false;

  constructor(maxBytes: number, onLine: (line: Line) => void) {
    this.#maxBytes = maxBytes;
    this.#onLine = onLine;
  }

  /** Takes the next chunk, which may be reused by its owner afterwards. */
  write(chunk: Buffer): void {
    for (let at = 0; at < chunk.length; ) {
      const end = chunk.indexOf(NEWLINE, at);
      this.#add(chunk.subarray(at, end < 0 ? chunk.length : end));
      if (end < 0) return;
      at = end + 1;
      const line = this.#dropping ? null : Buffer.concat(this.#pieces);
      this.#reset();
      this.#dropping = false;
      this.#onLine(line);
    }
  }

  #add(piece: Buffer): void {
    if (this.#dropping || piece.length === 0) return;
    this.#length += piece.length;
    if (this.#length > this.#maxBytes) {
      this.#dropping = true;
      this.#reset();
      return;
    }
    this.#pieces.push(Buffer.from(piece));
    // A line that comes byte by byte must not cost an object for each.
    if (this.#pieces.length > 64) this.#pieces = [Buffer.concat(this.#pieces)];
  }

  #reset(): void {
    this.#pieces = [];
    this.#length = 0;
  }
}
