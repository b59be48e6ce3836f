import { DatabaseSync } from 'node:sqlite';
import { EvaluatorError } from '../../guest/errors.ts';
import { REVIEW_SCHEMA } from '../review/schema.ts';
import { SCHEMA, SCHEMA_VERSION } from './schema.ts';

/** How long another process' write is waited for. */
const BUSY_FOR_MS = 5000;

/** Runs `work` whole or not at all. */
export function transaction<T>(db: DatabaseSync, work: () => T): T {
  db.exec('BEGIN IMMEDIATE');
  try {
    const done = work();
    db.exec('COMMIT');
    return done;
  } catch (error) {
    // SQLite has already rolled back on a full disk: a second time would be an error in place of this one.
    if (db.isTransaction) db.exec('ROLLBACK');
    throw error;
  }
}

/**
 * Opens the embedded database, in WAL mode and fully synchronous, with its tables.
 * @param path a file, or `:memory:`. @throws ledger_unreadable when another version wrote it.
 */
export function openDatabase(path: string): DatabaseSync {
  // From the first statement on: two processes may open, and make, the same database.
  const db = new DatabaseSync(path, { timeout: BUSY_FOR_MS });
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;');
  transaction(db, () => {
    const version = Number(db.prepare('PRAGMA user_version').get()?.user_version);
    if (version !== 0 && version !== SCHEMA_VERSION) {
      throw new EvaluatorError(
        'ledger_unreadable',
        `ledger: tables of version ${version}, this program reads ${SCHEMA_VERSION}`,
      );
    }
    db.exec(SCHEMA);
    db.exec(REVIEW_SCHEMA);
    db.exec(`PRAGMA user_version = ${SCHEMA_VERSION}`);
  });
  return db;
}
