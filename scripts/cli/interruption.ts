import { EvaluatorError } from '../../guest/errors.ts';
import { SIGNAL_EXIT } from '../../guest/process/exit-codes.ts';

/** What a verb without processes of its own is ended by. */
export interface Interruption {
  /** Aborted by SIGINT or SIGTERM, with `run_aborted`. */
  signal: AbortSignal;
  /** 130 or 143; null: nobody has ended it. */
  exitCode(): number | null;
}

/** From here on a signal asks the verb to clean up, and a second one changes nothing. */
export function onInterruption(): Interruption {
  const stop = new AbortController();
  let exitCode: number | null = null;
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    process.on(name, () => {
      exitCode ??= SIGNAL_EXIT[name];
      stop.abort(new EvaluatorError('run_aborted', `ended by ${name}`));
    });
  }
  return { signal: stop.signal, exitCode: () => exitCode };
}
