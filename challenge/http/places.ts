import { EvaluatorError } from '../../guest/errors.ts';

/** How many pieces of work are in hand at once: of all together, and of one owner. */
export interface PlaceCaps {
  total: number;
  perOwner: number;
}

/** Places for what takes memory while a peer takes its time; no owner can hold all of them against the others. */
export class Places {
  readonly #caps: PlaceCaps;
  readonly #held = new Map<string, number>();
  #total = 0;

  constructor(caps: PlaceCaps) {
    this.#caps = caps;
  }

  /** Does `work` in a place of its own. @throws server_busy when none is left, in all or for this owner. */
  async hold<T>(owner: string, work: () => Promise<T>): Promise<T> {
    const held = this.#held.get(owner) ?? 0;
    if (this.#total >= this.#caps.total || held >= this.#caps.perOwner) {
      throw new EvaluatorError('server_busy', 'challenge: too many bodies at once, in all or of this sender');
    }
    this.#take(owner, 1);
    try {
      return await work();
    } finally {
      this.#take(owner, -1);
    }
  }

  #take(owner: string, change: 1 | -1): void {
    this.#total += change;
    const held = (this.#held.get(owner) ?? 0) + change;
    if (held === 0) this.#held.delete(owner);
    else this.#held.set(owner, held);
  }
}
