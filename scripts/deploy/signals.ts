import { EvaluatorError } from '../../guest/errors.ts';
import { SIGNAL_EXIT } from '../../guest/process/exit-codes.ts';

type Name = keyof typeof SIGNAL_EXIT;
const NAMES = Object.keys(SIGNAL_EXIT) as Name[];

/**
 * Runs `body` with a signal that SIGINT and SIGTERM abort. The process does not end by them: a second one must
 * not leave behind what costs money. It is heard to the end of the process.
 * @returns the body's value; when it threw the abort's own reason, the exit code of the signal.
 */
export async function withSignals(
  body: (signal: AbortSignal) => Promise<number>,
  onRepeat: () => void,
): Promise<number> {
  const stop = new AbortController();
  let by: Name | null = null;
  const onSignal = (name: Name) => {
    if (by !== null) onRepeat();
    by ??= name;
    stop.abort(new EvaluatorError('run_aborted', `ended by ${by}`));
  };
  for (const name of NAMES) process.on(name, onSignal);
  try {
    return await body(stop.signal);
  } catch (error) {
    if (by !== null && error === stop.signal.reason) return SIGNAL_EXIT[by];
    throw error;
  }
}
