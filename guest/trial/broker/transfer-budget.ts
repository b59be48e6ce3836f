import type { FilterBudget } from '../../engine/tar-filter.ts';

/** What a rep's transfers may still move together, in bytes of content. */
export interface Allowance {
  bytes: number;
}

/**
 * What one transfer may move: never more than its own caps, nor than all of the rep have left. A file is charged to
 * both before its first byte, so that transfers at once cannot have the same bytes; nothing is given back.
 */
export class TransferBudget implements FilterBudget {
  entries: number;
  readonly #cap: number;
  readonly #allowance: Allowance;
  #moved = 0;

  constructor(cap: FilterBudget, allowance: Allowance) {
    this.entries = cap.entries;
    this.#cap = cap.bytes;
    this.#allowance = allowance;
  }

  /** How many bytes it was charged. */
  get moved(): number {
    return this.#moved;
  }

  get bytes(): number {
    return Math.min(this.#cap - this.#moved, this.#allowance.bytes);
  }

  set bytes(left: number) {
    const charged = this.bytes - left;
    this.#moved += charged;
    this.#allowance.bytes -= charged;
  }
}
