import pino from 'pino';
import { EvaluatorError } from '../errors.ts';
import type { Step } from '../golden/steps.ts';
import type { PhaseName } from '../tracks/terminal-bench/phases.ts';

export type Stage = 'preflight' | 'unlock' | 'run' | 'reduce' | 'emit';

/** What a run says of itself while it goes: JSON lines for people and for the command line. */
export type JournalEvent =
  | { event: 'stage'; stage: Stage; mark: 'begin' | 'end' }
  | { event: 'step'; step: Step; mark: 'begin' | 'end' }
  | { event: 'swept'; objects: number }
  | {
      event: 'rep';
      task_id: string;
      rep: number;
      outcome: string;
      failure: string | null;
      reward: number | null;
      wall_ms: number;
      cpu_ms: number;
      memory_peak_bytes: number;
      overhead_ms: number;
      verifier_ms: number;
      phases: Partial<Record<PhaseName, number>>;
    }
  | { event: 'delivery'; attempt: number; status: number | null }
  | { event: 'receipt'; receipt: unknown }
  /** Of this process, over its life. */
  | { event: 'ended'; peak_rss_bytes: number }
  | { event: 'error'; code: string; fault: string; stage: Stage | null; message: string };

export interface Journal {
  /** @throws log_unwritable: a run whose own log cannot be written ends (spec/08). */
  write(event: JournalEvent): void;
}

// Text of a container is never logged raw: these would move a terminal or split a line (spec/08).
const UNSAFE = /[\u007f-\u009f\u2028\u2029]/g;

/** In a line of JSON they can only stand inside of a string. */
function escapeUnsafe(line: string): string {
  return line.replace(UNSAFE, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** A pino logger of JSON lines on `fd` (2: stderr), synchronous, so that a killed guest loses nothing. */
export function createJournal(fd: number): Journal {
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
