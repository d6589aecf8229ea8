-- Every job, live and dead.
CREATE VIEW alkstore.jobs AS
SELECT
  j.id AS job_id, j.queue, CASE WHEN j.claim_expires_at IS NULL THEN 'pending' ELSE 'processing' END AS state, j.payload,
  j.priority, j.attempts, j.max_attempts, j.visibility_timeout_s, j.backoff_base_s, j.dead_letter_retention_s,
  j.worker_id, j.created_at, j.run_at, j.expires_at, j.claimed_at, j.claim_expires_at, j.retry_error,
  NULL::text AS last_error, NULL::timestamptz AS died_at, j.released
FROM alkstore._job j
UNION ALL
SELECT
  d.id, d.queue, 'dead', d.payload,
  d.priority, d.attempts, d.max_attempts, d.visibility_timeout_s, d.backoff_base_s, d.dead_letter_retention_s,
  d.worker_id, d.created_at, d.run_at, d.expires_at, d.claimed_at, d.claim_expires_at, d.retry_error,
  d.last_error, d.died_at, d.released
FROM alkstore._dead_job d;
COMMENT ON VIEW alkstore.jobs IS
'Every job, one row each: pending, processing (also after the claim lapsed, until somebody claims it), dead. Acked and cancelled jobs are gone.';
