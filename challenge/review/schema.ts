/** The review's tables of the embedded database. Times are milliseconds since the epoch. */
export const REVIEW_SCHEMA = `
CREATE TABLE IF NOT EXISTS review_sessions (
  session_id TEXT PRIMARY KEY,
  submission_id TEXT NOT NULL,
  agent_hash TEXT NOT NULL,
  submission_received_at_ms INTEGER NOT NULL,
  state TEXT NOT NULL,
  reason_code TEXT
) STRICT;
CREATE TABLE IF NOT EXISTS review_assignments (
  assignment_id TEXT PRIMARY KEY,
  session_id TEXT NOT NULL REFERENCES review_sessions (session_id),
  attempt INTEGER NOT NULL,
  assignment BLOB NOT NULL,
  token_sha256 TEXT NOT NULL UNIQUE,
  review_nonce TEXT NOT NULL UNIQUE,
  expires_at_ms INTEGER NOT NULL,
  UNIQUE (session_id, attempt)
) STRICT;
CREATE TABLE IF NOT EXISTS review_announcements (
  assignment_id TEXT PRIMARY KEY REFERENCES review_assignments (assignment_id),
  planned_request_sha256 TEXT NOT NULL,
  received_at_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS review_reports (
  assignment_id TEXT PRIMARY KEY REFERENCES review_assignments (assignment_id),
  report_sha256 TEXT NOT NULL,
  received_at_ms INTEGER NOT NULL,
  report BLOB NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS consumed_review_nonces (
  review_nonce TEXT PRIMARY KEY,
  session_id TEXT NOT NULL UNIQUE REFERENCES review_sessions (session_id)
) STRICT;
CREATE TABLE IF NOT EXISTS review_verdicts (
  session_id TEXT PRIMARY KEY REFERENCES review_sessions (session_id),
  review_digest TEXT NOT NULL UNIQUE,
  verdict TEXT NOT NULL,
  concluded_at_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS review_history (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  session_id TEXT NOT NULL REFERENCES review_sessions (session_id),
  from_state TEXT,
  to_state TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  reason_code TEXT,
  note TEXT,
  at_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS review_sessions_by_state ON review_sessions (state);
CREATE INDEX IF NOT EXISTS review_sessions_by_agent ON review_sessions (agent_hash);
CREATE INDEX IF NOT EXISTS review_history_by_session ON review_history (session_id, seq);
CREATE TRIGGER IF NOT EXISTS review_history_keeps BEFORE UPDATE ON review_history
  BEGIN SELECT RAISE(ABORT, 'history is append-only'); END;
CREATE TRIGGER IF NOT EXISTS review_history_stays BEFORE DELETE ON review_history
  BEGIN SELECT RAISE(ABORT, 'history is append-only'); END;
CREATE TRIGGER IF NOT EXISTS review_announcements_keep BEFORE UPDATE ON review_announcements
  BEGIN SELECT RAISE(ABORT, 'announcements are append-only'); END;
CREATE TRIGGER IF NOT EXISTS review_announcements_stay BEFORE DELETE ON review_announcements
  BEGIN SELECT RAISE(ABORT, 'announcements are append-only'); END;
`;
