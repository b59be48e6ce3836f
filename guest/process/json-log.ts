import pino from 'pino';
import { EvaluatorError } from '../errors.ts';

// Text of a container is never logged raw: these would move a terminal or split a line (spec/08).
const UNSAFE = /[\u007f-\u009f\u2028\u2029]/g;

/** In a line of JSON they can only stand inside of a string. */
function escapeUnsafe(line: string): string {
  return line.replace(UNSAFE, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** JSON lines of events of one type. */
export interface JsonLog<Event extends object> {
  /** @throws log_unwritable: a run whose own log cannot be written ends (spec/08). */
  write(event: Event): void;
}

/** A pino logger of JSON lines on `fd` (2: stderr), synchronous, so that a killed guest loses nothing. */
export function createJsonLog<Event extends object>(fd: number): JsonLog<Event> {
  const log = pino(
    { base: null, timestamp: () => `,"time":${Date.now()}`, hooks: { streamWrite: escapeUnsafe } },
    pino.destination({ dest: fd, sync: true }),
  );
  return {
    write: (event) => {
      try {
        log.info(event);
      } catch (cause) {
        throw new EvaluatorError(
          'log_unwritable',
          `log: ${(cause as Error).message}; free disk space where stderr goes`,
          { cause },
        );
      }
    },
  };
}
