-- Schedules: what to enqueue, and the next boundary at which to do it.
CREATE TABLE IF NOT EXISTS __alkstore_schedule (
  name         TEXT PRIMARY KEY,
  spec         TEXT NOT NULL,
  interval_s   INTEGER NOT NULL,
  queue        TEXT NOT NULL,
  payload      TEXT NOT NULL,
  priority     INTEGER NOT NULL,
  max_attempts INTEGER NOT NULL,
  expires_s    INTEGER,
  next_run_at  INTEGER NOT NULL,
  last_error   TEXT,
  created_at   INTEGER NOT NULL
) WITHOUT ROWID;
