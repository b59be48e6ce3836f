/** Raised with every change of the tables; a database of another version is refused, not guessed at. */
export const SCHEMA_VERSION = 3;

/** The embedded database. Times are milliseconds since the epoch. */
export const SCHEMA = `
CREATE TABLE IF NOT EXISTS runs (
  eval_run_id TEXT PRIMARY KEY,
  submission_id TEXT NOT NULL,
  agent_hash TEXT NOT NULL,
  plan BLOB NOT NULL,
  run_token_sha256 TEXT NOT NULL,
  score_nonce TEXT NOT NULL UNIQUE,
  key_nonce TEXT UNIQUE,
  expires_at_ms INTEGER NOT NULL,
  state TEXT NOT NULL,
  reason_code TEXT
) STRICT;
CREATE TABLE IF NOT EXISTS attempts (
  attempt_id INTEGER PRIMARY KEY AUTOINCREMENT,
  eval_run_id TEXT NOT NULL REFERENCES runs (eval_run_id),
  attempt INTEGER NOT NULL,
  nonce TEXT NOT NULL,
  spki_digest TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  outcome TEXT NOT NULL,
  reason_code TEXT,
  UNIQUE (eval_run_id, attempt)
) STRICT;
CREATE TABLE IF NOT EXISTS grants (
  grant_id TEXT PRIMARY KEY,
  attempt_id INTEGER NOT NULL UNIQUE REFERENCES attempts (attempt_id),
  measurement TEXT NOT NULL,
  app_id TEXT NOT NULL,
  instance_id TEXT NOT NULL,
  platform TEXT NOT NULL,
  granted_at_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS started (
  eval_run_id TEXT PRIMARY KEY REFERENCES runs (eval_run_id),
  grant_id TEXT NOT NULL UNIQUE REFERENCES grants (grant_id),
  received_at_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS receipts (
  eval_run_id TEXT PRIMARY KEY REFERENCES runs (eval_run_id),
  result_sha256 TEXT NOT NULL,
  received_at_ms INTEGER NOT NULL,
  result BLOB NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS consumed_nonces (
  score_nonce TEXT PRIMARY KEY,
  eval_run_id TEXT NOT NULL UNIQUE REFERENCES runs (eval_run_id)
) STRICT;
CREATE TABLE IF NOT EXISTS scores (
  eval_run_id TEXT PRIMARY KEY REFERENCES runs (eval_run_id),
  score_f64be TEXT NOT NULL,
  accepted_at_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS history (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  eval_run_id TEXT NOT NULL REFERENCES runs (eval_run_id),
  from_state TEXT,
  to_state TEXT NOT NULL,
  reason_code TEXT,
  note TEXT,
  at_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS runs_by_state ON runs (state);
CREATE INDEX IF NOT EXISTS runs_by_agent ON runs (agent_hash);
CREATE INDEX IF NOT EXISTS history_by_run ON history (eval_run_id, seq);
CREATE TRIGGER IF NOT EXISTS history_keeps BEFORE UPDATE ON history
  BEGIN SELECT RAISE(ABORT, 'history is append-only'); END;
CREATE TRIGGER IF NOT EXISTS history_stays BEFORE DELETE ON history
  BEGIN SELECT RAISE(ABORT, 'history is append-only'); END;
CREATE TRIGGER IF NOT EXISTS grants_keep BEFORE UPDATE ON grants
  BEGIN SELECT RAISE(ABORT, 'grants are append-only'); END;
CREATE TRIGGER IF NOT EXISTS grants_stay BEFORE DELETE ON grants
  BEGIN SELECT RAISE(ABORT, 'grants are append-only'); END;
`;
