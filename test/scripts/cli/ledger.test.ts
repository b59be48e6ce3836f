import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { SqliteLedger } from '../../../challenge/ledger/sqlite.ts';
import { SqliteReviewLedger } from '../../../challenge/review/sqlite.ts';
import { ledger } from '../../../scripts/cli/ledger.ts';
import { grantTo, SPKI, sealedRun } from '../../support/ledger.ts';
import { newSession, prepareNext } from '../../support/review-ledger.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { codeOf, rejectionCode } from '../../support/throws.ts';

let db: string;
let runs: SqliteLedger;
let reviews: SqliteReviewLedger;
let out = '';
beforeEach(() => {
  db = join(scratchFolder(), 'ledger.sqlite');
  // Open all the while, as a challenge that runs has them.
  runs = new SqliteLedger(db);
  reviews = new SqliteReviewLedger(db);
  runs.prepare(sealedRun('run-1'), 0);
  reviews.create(newSession('review-1'), 0);
  out = '';
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    out += String(text);
    return true;
  });
});
afterEach(() => {
  vi.restoreAllMocks();
  runs.close();
  reviews.close();
});

const command = (...argv: string[]) => ledger([...argv, '--db', db]);
const json = async (...argv: string[]) => {
  out = '';
  expect(await command(...argv, '--json')).toBe(0);
  return JSON.parse(out);
};
function rejectRun(): void {
  runs.receive('run-1', Buffer.from('{}'), 1);
  runs.reject('run-1', 'schema_invalid', 2);
}
function concludeReview(verdict: 'allow' | 'reject'): void {
  const assignment = prepareNext(reviews, 'review-1', 1);
  reviews.deploy(assignment, 2);
  reviews.receive(assignment, Buffer.from('{}'), 3);
  reviews.conclude('review-1', { verdict, reviewDigest: 'ab'.repeat(32) }, 4);
}

describe('evaluator ledger', () => {
  it('lists runs and reviews, for people and programs', async () => {
    expect(await command('list')).toBe(0);
    expect(out).toMatch(/^run {5}run-1 {2}prepared .*\nreview {2}review-1 {2}created .*\n$/);
    expect((await json('list')).ledger).toMatchObject([
      { kind: 'run', id: 'run-1', state: 'prepared', reason_code: null },
      { kind: 'review', id: 'review-1', state: 'created', reason_code: null },
    ]);
  });

  it('re-opens a run, which the open ledger sees at once and whose history keeps why', async () => {
    runs.start('run-1', grantTo(runs, 'run-1', 0).grantId, SPKI, 0);
    rejectRun();
    expect(codeOf(() => runs.prepare(sealedRun('run-2'), 3))).toBe('agent_no_result');
    const reopened = await json('reopen', 'run-1', '--reason', 'the VM was lost');
    expect(reopened).toMatchObject({ kind: 'run', id: 'run-1', state: 'reopened' });
    expect(() => runs.prepare(sealedRun('run-2'), 4)).not.toThrow();
    const { history } = await json('show', 'run-1');
    expect(history.at(-1)).toMatchObject({ from: 'rejected', to: 'reopened', note: 'the VM was lost' });
    expect(await command('show', 'run-1')).toBe(0);
    expect(out).toMatch(
      /received -> rejected \(schema_invalid\)\n.*rejected -> reopened: the VM was lost\n$/,
    );
  });

  it('revokes, re-opens and cancels reviews', async () => {
    concludeReview('allow');
    expect((await json('revoke', 'review-1', '--reason', 'it reads the tests')).state).toBe('revoked');
    expect((await json('reopen', 'review-1', '--reason', 'reviewed by hand')).state).toBe('reopened');
    reviews.create(newSession('review-2'), 5);
    expect((await json('cancel', 'review-2')).state).toBe('cancelled');
    expect(reviews.session('review-2')?.state).toBe('cancelled');
  });

  it.each<[string, string[], RegExp]>([
    ['no action', [], /list, show, reopen/],
    ['an unknown action', ['delete', 'run-1'], /list, show, reopen/],
    ['no ID', ['show'], /whose ID/],
    ['no reason', ['reopen', 'run-1'], /--reason is missing/],
    ['a reason that is not kept', ['cancel', 'review-1', '--reason', 'x'], /a cancellation has none/],
    ['a run that may still end', ['reopen', 'run-1', '--reason', 'x'], /is prepared.*rejected, no_result/],
    ['a run to be cancelled', ['cancel', 'run-1'], /no run can be/],
    ['a review that allowed nothing', ['revoke', 'review-1', '--reason', 'x'], /is created.*allowed/],
    ['a second ID', ['reopen', 'run-1', 'run-2', '--reason', 'x'], /run-2/],
  ])('refuses %s', async (_, argv, message) => {
    const before = [runs.history('run-1'), reviews.history('review-1')];
    expect(await rejectionCode(command(...argv))).toBe('usage');
    await expect(command(...argv)).rejects.toThrow(message);
    expect([runs.history('run-1'), reviews.history('review-1')]).toEqual(before);
  });

  it('refuses an unknown ID, and a reason that says nothing', async () => {
    rejectRun();
    expect(await rejectionCode(command('show', 'run-9'))).toBe('run_unknown');
    expect(await rejectionCode(command('reopen', 'run-1', '--reason', ' '))).toBe('reopen_reason_invalid');
    expect(runs.run('run-1')?.state).toBe('rejected');
  });

  it('makes no ledger of a file that is none', async () => {
    const folder = scratchFolder();
    const [text, other] = [join(folder, 'text'), join(folder, 'other.sqlite')];
    writeFileSync(text, 'no database at all, but long enough to be looked at as one'.repeat(20));
    const foreign = new DatabaseSync(other);
    foreign.exec('CREATE TABLE theirs (x)');
    for (const file of [text, other, join(folder, 'absent')])
      expect(await rejectionCode(ledger(['list', '--db', file]))).toBe('usage');
    expect(foreign.prepare('SELECT name FROM sqlite_schema').all()).toHaveLength(1);
    foreign.close();
  });

  it('names what it cannot read: a database that is damaged behind its first page', async () => {
    const damaged = join(scratchFolder(), 'ledger.sqlite');
    new SqliteLedger(damaged).close();
    writeFileSync(damaged, readFileSync(damaged).fill(0xaa, 4096));
    expect(await rejectionCode(ledger(['list', '--db', damaged]))).toBe('ledger_unreadable');
  });

  it('tells its usage', async () => {
    expect(await ledger(['--help'])).toBe(0);
    expect(out).toMatch(/^usage: evaluator ledger list/);
  });
});
