import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Worker } from 'node:worker_threads';
import { expect, it } from 'vitest';
import { openDatabase, transaction } from '../../../challenge/ledger/database.ts';
import { scratchFolder } from '../../support/scratch.ts';

/** Another user of the database at `path`, who holds it alone until told to let go. */
async function holder(path: string): Promise<{ letGo: () => void; ended: Promise<unknown> }> {
  const flag = new Int32Array(new SharedArrayBuffer(4));
  const source = `
    const { parentPort, workerData: { path, flag } } = require('node:worker_threads');
    const { DatabaseSync } = require('node:sqlite');
    const db = new DatabaseSync(path);
    db.exec('BEGIN EXCLUSIVE');
    parentPort.postMessage('held');
    Atomics.wait(flag, 0, 0);
    Atomics.wait(flag, 0, 1, 100);
    db.exec('COMMIT');
    db.close();`;
  const worker = new Worker(source, { eval: true, workerData: { path, flag } });
  const ended = new Promise((resolve) => worker.once('exit', resolve));
  await new Promise((resolve) => worker.once('message', resolve));
  const letGo = () => {
    Atomics.store(flag, 0, 1);
    Atomics.notify(flag, 0);
  };
  return { letGo, ended };
}

it('waits for another process that makes the same database', async () => {
  const path = join(scratchFolder(), 'ledger.sqlite');
  const { letGo, ended } = await holder(path);
  letGo();
  const db = openDatabase(path);
  expect(db.prepare('PRAGMA journal_mode').get()).toEqual({ journal_mode: 'wal' });
  db.close();
  await ended;
});

it('says that the disk is full, and is used again when it is not', () => {
  const db = new DatabaseSync(':memory:');
  db.exec('CREATE TABLE kept (bytes BLOB) STRICT; PRAGMA max_page_count = 10;');
  const write = (size: number) =>
    transaction(db, () => void db.prepare('INSERT INTO kept VALUES (zeroblob(?))').run(size));
  expect(() => write(1_000_000)).toThrow('database or disk is full');
  write(1000);
  expect(db.prepare('SELECT count(*) AS n FROM kept').get()).toEqual({ n: 1 });
  db.close();
});
