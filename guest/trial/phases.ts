import type { Clock } from './clock.ts';

export type PhaseName =
  | 'access'
  | 'create'
  | 'upload'
  | 'start'
  | 'exec'
  | 'agent'
  | 'kill'
  | 'size'
  | 'collect'
  | 'verify'
  | 'tests'
  | 'remove';

/** Where a rep's wall time went, in ms by phase; waiting for other reps is in none of them. */
export class Phases {
  readonly #clock: Clock;
  readonly #ms: Partial<Record<PhaseName, number>> = {};

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(phase: PhaseName, ms: number): void {
    this.#ms[phase] = (this.#ms[phase] ?? 0) + ms;
  }

  async time<T>(phase: PhaseName, action: () => Promise<T>): Promise<T> {
    const start = this.#clock.monotonicMs();
    try {
      return await action();
    } finally {
      this.add(phase, this.#clock.monotonicMs() - start);
    }
  }

  toJSON(): Partial<Record<PhaseName, number>> {
    return Object.fromEntries(Object.entries(this.#ms).map(([phase, ms]) => [phase, Math.round(ms)]));
  }

  /** Our own part: everything but the agent's and the tests' time. */
  overheadMs(): number {
    return Math.round(
      Object.entries(this.#ms).reduce(
        (sum, [phase, ms]) => (phase === 'agent' || phase === 'tests' ? sum : sum + ms),
        0,
      ),
    );
  }
}
