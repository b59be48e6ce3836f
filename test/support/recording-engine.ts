import type { Engine } from '../../guest/engine/port.ts';

export interface EngineCall {
  name: keyof Engine;
  /** The first argument: mostly a container's or an exec's id. */
  of: unknown;
  /** The second one: of an archive call, its path. */
  path: unknown;
  /** On the clock of `performance.now`. */
  atMs: number;
}

/** The engine, and every call that is made of it, in order. */
export function recordCalls(engine: Engine): { engine: Engine; calls: EngineCall[] } {
  const calls: EngineCall[] = [];
  const recording = new Proxy(engine, {
    get: (target, name: keyof Engine) => {
      const method = target[name] as (...args: unknown[]) => unknown;
      return (...args: unknown[]) => {
        calls.push({ name, of: args[0], path: args[1], atMs: performance.now() });
        return method.apply(target, args);
      };
    },
  });
  return { engine: recording, calls };
}
