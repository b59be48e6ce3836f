import type { Engine } from '../../guest/engine/port.ts';

type Call = keyof Engine;

export interface Hooks {
  before?: (call: Call, args: readonly unknown[]) => Promise<void>;
  after?: (call: Call, args: readonly unknown[]) => Promise<void>;
}

/** A real engine beside which something else happens, right before or after a call. */
export function hookedEngine(real: Engine, { before, after }: Hooks): Engine {
  return new Proxy(real, {
    get(target, name: Call) {
      const call = target[name] as (...args: unknown[]) => Promise<unknown>;
      return async (...args: unknown[]) => {
        await before?.(name, args);
        const answer = await call.apply(target, args);
        await after?.(name, args);
        return answer;
      };
    },
  });
}
