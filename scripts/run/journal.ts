import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { EvaluatorError } from '../../guest/errors.ts';
import { painter, progressLine } from './show.ts';

export type JournalLine = Record<string, unknown>;

/** One event on stderr: a line for a person on a terminal, JSON otherwise. */
export function showEvent(event: JournalLine): void {
  if (!process.stderr.isTTY) process.stderr.write(`${JSON.stringify(event)}\n`);
  else {
    const line = progressLine(event, painter(process.stderr, process.env));
    if (line !== null) process.stderr.write(`${line}\n`);
  }
}

/** Shows an event and keeps it in the journal of `out`; one that cannot be written is told to `fail`. */
export function keepEvent(out: string, fail: (error: EvaluatorError) => void, event: JournalLine): void {
  showEvent(event);
  const journal = join(out, 'journal.jsonl');
  try {
    appendFileSync(journal, `${JSON.stringify(event)}\n`);
  } catch (cause) {
    const why = `${journal}: cannot be written (${(cause as Error).message}); free disk space or choose another --out`;
    fail(new EvaluatorError('log_unwritable', why, { cause }));
  }
}

/** A line of a guest's log, as an event. */
export function parseEvent(line: string): JournalLine {
  try {
    return JSON.parse(line) as JournalLine;
  } catch {
    return { event: 'log', process: 'guest', line };
  }
}
