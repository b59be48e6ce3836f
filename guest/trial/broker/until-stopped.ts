import type { Engine } from '../../engine/port.ts';

/**
 * The engine until `stopped` is aborted: a call that is made of it afterwards is thrown out with the signal's
 * reason, so that nothing which waits between two calls of its own can go on.
 */
export function untilStopped(engine: Engine, stopped: AbortSignal): Engine {
  return new Proxy(engine, {
    get: (target, name: keyof Engine) => {
      const call = target[name] as (...args: unknown[]) => Promise<unknown>;
      return async (...args: unknown[]) => {
        stopped.throwIfAborted();
        return call.apply(target, args);
      };
    },
  });
}
