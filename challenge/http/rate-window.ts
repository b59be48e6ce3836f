import { EvaluatorError } from '../../guest/errors.ts';

interface Taken {
  atMs: number;
  amount: number;
}

/** At most `limit` per key within `windowMs`. Keys are known runs, so it stays small. */
export class RateWindow {
  readonly #limit: number;
  readonly #windowMs: number;
  readonly #taken = new Map<string, Taken[]>();

  constructor(limit: number, windowMs: number) {
    this.#limit = limit;
    this.#windowMs = windowMs;
  }

  /** Counts one event, or as much as `amount`; what is refused is not counted. @throws rate_limited. */
  take(key: string, nowMs: number, amount = 1): void {
    // What was taken in the future of a clock that has been set back would count until that time comes.
    const recent = (this.#taken.get(key) ?? []).filter(
      ({ atMs }) => atMs > nowMs - this.#windowMs && atMs <= nowMs,
    );
    if (recent.reduce((sum, taken) => sum + taken.amount, amount) > this.#limit) {
      throw new EvaluatorError(
        'rate_limited',
        `request: more than ${this.#limit} within ${this.#windowMs} ms`,
      );
    }
    this.#taken.set(key, [...recent, { atMs: nowMs, amount }]);
  }
}
