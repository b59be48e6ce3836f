import { EvaluatorError } from '../errors.ts';

/** What `unlock` waits for, each with a deadline and a mark before and after: a stuck VM says where. */
export type Step = 'tls_key' | 'connect' | 'quote' | 'exchange' | 'unseal' | 'started';

/** Runs one step; the signal it is given ends with the step's deadline or with the run. */
export type Steps = <T>(step: Step, body: (signal: AbortSignal) => Promise<T>) => Promise<T>;

/** Each covers the slowest honest case; the guest agent's own deadline (90 s) lies within its steps. */
export const STEP_DEADLINES_MS: Readonly<Record<Step, number>> = {
  tls_key: 100_000,
  connect: 30_000,
  quote: 100_000,
  exchange: 90_000,
  unseal: 600_000,
  started: 30_000,
};

/**
 * Steps with deadlines, in ms. A step that fails or is late leaves its end unmarked.
 * @throws unlock_timeout from a step that is late.
 */
export function createSteps(options: {
  deadlinesMs: Readonly<Record<Step, number>>;
  mark: (step: Step, mark: 'begin' | 'end') => void;
  /** Ends with the run. */
  signal: AbortSignal;
}): Steps {
  return async (step, body) => {
    const { deadlinesMs, mark, signal: run } = options;
    run.throwIfAborted();
    const late = new AbortController();
    const signal = AbortSignal.any([run, late.signal]);
    const ended = Promise.withResolvers<never>();
    signal.addEventListener('abort', () => ended.reject(signal.reason), { once: true });
    const error = new EvaluatorError('unlock_timeout', `${step}: not done within ${deadlinesMs[step]} ms`);
    const timer = setTimeout(() => late.abort(error), deadlinesMs[step]);
    ended.promise.catch(() => {});
    try {
      mark(step, 'begin');
      const value = await Promise.race([body(signal), ended.promise]);
      mark(step, 'end');
      return value;
    } finally {
      clearTimeout(timer);
    }
  };
}
