/**
 * Remembers what a costly, pure look at some bytes found, so that each platform's certificates and CRLs are
 * parsed and their signatures verified once. Failures are not remembered, and neither is anything that depends
 * on the time.
 */
export class Memo<T extends object> {
  readonly #limit: number;
  readonly #found = new Map<string, T>();

  /** @param limit entries; beyond it the oldest is forgotten. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** @param key names everything that `look` depends on. */
  get(key: string, look: () => T): T {
    return this.#found.get(key) ?? this.#keep(key, look());
  }

  async getAsync(key: string, look: () => Promise<T>): Promise<T> {
    return this.#found.get(key) ?? this.#keep(key, await look());
  }

  #keep(key: string, value: T): T {
    this.#found.set(key, value);
    const [oldest] = this.#found.keys();
    if (this.#found.size > this.#limit && oldest !== undefined) this.#found.delete(oldest);
    return value;
  }
}
