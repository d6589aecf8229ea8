-- alkstore_jobs: every job, one row each: pending, processing (also after the claim lapsed, until somebody claims it), dead.
-- Acked and cancelled jobs are gone. One job:  SELECT * FROM alkstore_jobs WHERE queue = 'emails' AND job_id = 1;
CREATE VIEW IF NOT EXISTS alkstore_jobs AS
SELECT
  id AS job_id, queue, CASE WHEN claim_expires_at IS NULL THEN 'pending' ELSE 'processing' END AS state,
  coalesce(payload, (SELECT p.payload FROM __alkstore_payload p WHERE p.id = j.id)) AS payload,
  priority, attempts, max_attempts, visibility_timeout_s, backoff_base_s, dead_letter_retention_s,
  worker_id, created_at, run_at, expires_at, claimed_at, claim_expires_at, retry_error,
  NULL AS last_error, NULL AS died_at, released
FROM __alkstore_job j
UNION ALL
SELECT
  id, queue, 'dead',
  coalesce(payload, (SELECT p.payload FROM __alkstore_payload p WHERE p.id = j.id)),
  priority, attempts, max_attempts, visibility_timeout_s, backoff_base_s, dead_letter_retention_s,
  worker_id, created_at, run_at, expires_at, claimed_at, claim_expires_at, retry_error,
  last_error, died_at, released
FROM __alkstore_dead_job j;
