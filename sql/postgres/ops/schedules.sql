-- What fires when, and what went wrong.
CREATE VIEW alkstore.schedules AS
SELECT
  s.name, s.spec, s.queue, s.payload, s.priority, s.max_attempts, s.expires_s, s.next_run_at, s.last_error, s.created_at
FROM alkstore._schedule s;
COMMENT ON VIEW alkstore.schedules IS
'The schedules; next_run_at is the next boundary, last_error why the last firing failed (NULL after a good one).';
