import { type EvaluatorError, isEvaluatorError } from '../errors.ts';

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 15_000;

/** Monotonic ms, so that a jump of the clock neither ends nor prolongs the waiting. */
export interface RetryClock {
  monotonicMs(): number;
  sleep(ms: number): Promise<void>;
}

/** True for a failure of the moment, after which the same may be asked again. */
export const isPassing = (error: unknown): error is EvaluatorError =>
  isEvaluatorError(error, 'key_server_unreachable') || isEvaluatorError(error, 'key_release_unavailable');

/**
 * Tries until something other than a passing failure comes out, or `forMs` are over.
 * @throws the attempt's own error, the last passing one included.
 */
export async function retryPassing<T>(
  attempt: () => Promise<T>,
  { clock, forMs, signal }: { clock: RetryClock; forMs: number; signal: AbortSignal },
): Promise<T> {
  const end = clock.monotonicMs() + forMs;
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
    try {
      return await attempt();
    } catch (error) {
      if (!isPassing(error) || clock.monotonicMs() + pauseMs >= end) throw error;
    }
    await clock.sleep(pauseMs);
    signal.throwIfAborted();
  }
}
