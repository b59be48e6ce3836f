import { performance } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';

/** Time as the budgets see it: monotonic, so that a clock jump changes nothing (spec/03). */
export interface Clock {
  /** Milliseconds from an arbitrary origin, never going back. */
  monotonicMs(): number;
  sleep(ms: number): Promise<void>;
}

export const systemClock: Clock = {
  monotonicMs: () => performance.now(),
  sleep: async (ms) => {
    await delay(ms);
  },
};
