-- alkstore_schedules: next_run_at is the next boundary, last_error why the last firing failed (NULL after a good one).
CREATE VIEW IF NOT EXISTS alkstore_schedules AS
SELECT name, spec, queue, payload, priority, max_attempts, expires_s, next_run_at, last_error, created_at
FROM __alkstore_schedule;
