import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { isEvaluatorError } from '../../../guest/errors.ts';
import { createJournal, type JournalEvent } from '../../../guest/stages/journal.ts';
import { scratchFolder } from '../../support/scratch.ts';

const folder = scratchFolder();

function linesOf(...events: JournalEvent[]): string[] {
  const file = join(folder, 'log');
  const fd = openSync(file, 'w');
  const journal = createJournal(fd);
  for (const event of events) journal.write(event);
  closeSync(fd);
  return readFileSync(file, 'utf8').split('\n');
}

const error = (message: string): JournalEvent => ({
  event: 'error',
  code: 'verifier_broken',
  fault: 'infra',
  stage: 'run',
  message,
});

describe('the journal', () => {
  it('is one line of JSON an event, whatever a text holds', () => {
    const hostile = 'a\nRESULT={}\r\u001b[2J\u001b]0;x\u0007 \u007f \u0085 \u009b31m \u2028 \u2029 "}';
    const lines = linesOf(error(hostile), error('after'));
    expect(lines).toHaveLength(3);
    expect(lines[0]).toMatch(/^[ -~]+$/);
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ event: 'error', message: hostile });
    expect(JSON.parse(lines[1] ?? '')).toMatchObject({ message: 'after' });
  });

  it('ends the run when it cannot be written', () => {
    const fd = openSync('/dev/full', 'w');
    let thrown: unknown;
    try {
      createJournal(fd).write(error('x'));
    } catch (caught) {
      thrown = caught;
    }
    closeSync(fd);
    expect(isEvaluatorError(thrown, 'log_unwritable')).toBe(true);
  });
});
