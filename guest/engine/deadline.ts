import { EvaluatorError } from '../errors.ts';

/** Longest time each engine call may take, in milliseconds; the figures of spec/03 times a hundred or more. */
export const DEADLINES_MS = {
  info: 10_000,
  image: 10_000,
  pull: 900_000,
  create: 60_000,
  inspect: 10_000,
  start: 60_000,
  kill: 30_000,
  remove: 60_000,
  createExec: 30_000,
  startExec: 30_000,
  execState: 10_000,
  putArchive: 300_000,
  getArchive: 30_000,
  statPath: 10_000,
  createVolume: 30_000,
  removeVolume: 30_000,
  createNetwork: 30_000,
  createInternalNetwork: 30_000,
  connect: 30_000,
  disconnect: 30_000,
  removeNetwork: 30_000,
  removeImage: 60_000,
  listOwned: 30_000,
} as const;

/**
 * Runs `work` for at most `ms` milliseconds. When the time is up the signal is aborted, so that the connection
 * is closed, and `engine_timeout` is thrown at once, whether or not `work` heeds the signal.
 */
export async function withDeadline<T>(
  what: string,
  ms: number,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const abort = new AbortController();
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    late.reject(new EvaluatorError('engine_timeout', `${what}: the engine gave no answer within ${ms} ms`));
    abort.abort();
  }, ms);
  const result = work(abort.signal);
  // The loser of the race may still reject; that must not become an unhandled rejection.
  result.catch(() => {});
  try {
    return await Promise.race([result, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
