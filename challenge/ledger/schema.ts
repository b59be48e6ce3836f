/** Version 1 of the embedded database. Times are milliseconds since the epoch. */
export const SCHEMA = `
CREATE TABLE IF NOT EXISTS runs (
  eval_run_id TEXT PRIMARY KEY,
  submission_id TEXT NOT NULL,
  agent_hash TEXT NOT NULL,
  plan BLOB NOT NULL,
  run_token_sha256 TEXT NOT NULL,
  score_nonce TEXT NOT NULL UNIQUE,
  expires_at_ms INTEGER NOT NULL,
  state TEXT NOT NULL,
  reason_code TEXT,
  started_at_ms INTEGER
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
  at_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS runs_by_state ON runs (state);
CREATE INDEX IF NOT EXISTS history_by_run ON history (eval_run_id, seq);
CREATE TRIGGER IF NOT EXISTS history_keeps BEFORE UPDATE ON history
  BEGIN SELECT RAISE(ABORT, 'history is append-only'); END;
CREATE TRIGGER IF NOT EXISTS history_stays BEFORE DELETE ON history
  BEGIN SELECT RAISE(ABORT, 'history is append-only'); END;
`;
