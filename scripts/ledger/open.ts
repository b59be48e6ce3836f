import { DatabaseSync } from 'node:sqlite';
import { SCHEMA_VERSION } from '../../challenge/ledger/schema.ts';
import { SqliteLedger } from '../../challenge/ledger/sqlite.ts';
import { SqliteReviewLedger } from '../../challenge/review/sqlite.ts';
import { EvaluatorError } from '../../guest/errors.ts';

/** sqlite.org/rescode.html */
const SQLITE_BUSY = 5;

/** What a challenge remembers, of runs and of reviews. */
export interface Ledgers {
  runs: SqliteLedger;
  reviews: SqliteReviewLedger;
}

/** Opening a ledger makes its tables: that must not happen to a file which is none. @throws usage. */
function verifyLedgerFile(path: string): void {
  let version: unknown;
  try {
    const db = new DatabaseSync(path, { readOnly: true });
    try {
      version = db.prepare('PRAGMA user_version').get()?.user_version;
    } finally {
      db.close();
    }
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new EvaluatorError('usage', `ledger: --db ${path}: cannot be read (${why})`, { cause });
  }
  if (version === SCHEMA_VERSION) return;
  throw new EvaluatorError(
    'usage',
    `ledger: --db ${path}: no ledger of this version (its tables are of ${version}, this program's of ${SCHEMA_VERSION})`,
  );
}

/** What SQLite itself has failed at, as an error with a code; others are returned as they are. */
function named(error: unknown, path: string): unknown {
  if (!(error instanceof Error && 'code' in error && error.code === 'ERR_SQLITE_ERROR')) return error;
  const again =
    'errcode' in error && error.errcode === SQLITE_BUSY ? '; the challenge is writing: try again' : '';
  return new EvaluatorError('ledger_unreadable', `ledger: --db ${path}: ${error.message}${again}`, {
    cause: error,
  });
}

/**
 * Opens the database of a challenge, which may be running: each change is one transaction.
 * @throws usage when the file is no ledger; ledger_unreadable, also when it stays locked or is damaged.
 */
export function withLedgers<T>(path: string, work: (ledgers: Ledgers) => T): T {
  verifyLedgerFile(path);
  try {
    return withOpen(path, work);
  } catch (error) {
    throw named(error, path);
  }
}

function withOpen<T>(path: string, work: (ledgers: Ledgers) => T): T {
  const runs = new SqliteLedger(path);
  const reviews = new SqliteReviewLedger(path);
  try {
    return work({ runs, reviews });
  } finally {
    runs.close();
    reviews.close();
  }
}
