import { isEvaluatorError } from '../../guest/errors.ts';

/** A ledger whose process kills itself at one call of `method`: `before` its commit or `after` it. */
export function mortal<T extends object>(ledger: T, method: string, moment: string): T {
  const die = () => process.kill(process.pid, 'SIGKILL');
  return new Proxy(ledger, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== 'function') return member;
      return (...args: unknown[]) => {
        if (name === method && moment === 'before') die();
        const value: unknown = member.apply(target, args);
        if (name === method && moment === 'after') die();
        return value;
      };
    },
  });
}

/** Says on stdout that it serves, and what; or on stderr why it refused. */
export async function sayReady(start: () => Promise<object>): Promise<void> {
  try {
    process.stdout.write(`${JSON.stringify({ event: 'ready', ...(await start()) })}\n`);
  } catch (error) {
    if (!isEvaluatorError(error)) throw error;
    process.stderr.write(`refused: ${error.code}\n`);
    process.exitCode = 1;
  }
}
