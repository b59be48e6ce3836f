import type { Syntax } from './syntax.ts';
import { concat, oneOf, UNKNOWN, type Value } from './value.ts';

const MAX_DEPTH = 40;
const MAX_ASSIGNMENTS = 8;
/** Prefixes under which a language also offers its global names. */
const GLOBAL_PREFIX = /^(?:builtins|__builtins__|globalThis|global|window|self\.__builtins__)\./;

/**
 * What the names of one file stand for, whatever the order and the scope of their assignments: enough to see
 * through aliases and strings put together, not an interpreter.
 */
export class Names {
  readonly #modules = new Map<string, string>();
  readonly #assigned = new Map<string, Syntax[]>();
  readonly #appended = new Map<string, Syntax[]>();
  readonly #folded = new Map<string, Value>();
  #depth = 0;

  /** `import a.b as name`, `from a import b as name`. */
  addModule(name: string, dotted: string): void {
    this.#modules.set(name, dotted);
  }

  assign(name: string, expression: Syntax): void {
    const before = this.#assigned.get(name);
    if (before) before.push(expression);
    else this.#assigned.set(name, [expression]);
  }

  /** `name += expression`. */
  append(name: string, expression: Syntax): void {
    const before = this.#appended.get(name);
    if (before) before.push(expression);
    else this.#appended.set(name, [expression]);
  }

  /** What a name can be; unknown when it is assigned too often to tell. */
  valueOf(name: string, fold: (expression: Syntax) => Value): Value {
    const known = this.#folded.get(name);
    if (known) return known;
    const expressions = this.#assigned.get(name) ?? [];
    if (expressions.length === 0 || expressions.length > MAX_ASSIGNMENTS) return UNKNOWN;
    // A name that is made of itself (x = x + 'a') is unknown inside of its own value.
    this.#folded.set(name, UNKNOWN);
    const value = this.guarded(UNKNOWN, () => {
      const appended = (this.#appended.get(name) ?? []).slice(0, MAX_ASSIGNMENTS).map(fold);
      const assigned = oneOf(expressions.map(fold));
      return appended.length === 0 ? assigned : concat([assigned, ...appended]);
    });
    this.#folded.set(name, value);
    return value;
  }

  /** The dotted name behind a name: its module, or the one function that it was set to. */
  dottedOf(name: string, dotted: (expression: Syntax) => string | null): string {
    const module = this.#modules.get(name);
    if (module !== undefined) return module;
    const expressions = this.#assigned.get(name) ?? [];
    const [only] = expressions;
    if (only === undefined || expressions.length > 1) return name;
    return this.guarded(null, () => dotted(only)) ?? name;
  }

  /** `body`, unless this goes too deep. */
  guarded<T>(otherwise: T, body: () => T): T {
    if (this.#depth >= MAX_DEPTH) return otherwise;
    this.#depth += 1;
    try {
      return body();
    } finally {
      this.#depth -= 1;
    }
  }
}

/** A dotted name without the prefix of the global object. */
export function withoutGlobal(dotted: string): string {
  return dotted.replace(GLOBAL_PREFIX, '');
}
