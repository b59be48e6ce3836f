/**
 * Bytes that come in pieces, copied together: kept as they came, pieces of one byte each would take a hundred
 * times the memory that a cap on their sum allows.
 */
export class GrowingBuffer {
  #bytes = Buffer.alloc(0);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  append(piece: Uint8Array): void {
    const size = this.#size + piece.length;
    if (size > this.#bytes.length) {
      const larger = Buffer.alloc(Math.max(size, 2 * this.#bytes.length));
      larger.set(this.bytes());
      this.#bytes = larger;
    }
    this.#bytes.set(piece, this.#size);
    this.#size = size;
  }

  /** All of them so far. */
  bytes(): Buffer {
    return this.#bytes.subarray(0, this.#size);
  }
}
