-- alkstore_queue_stats: one row per queue that holds anything; each live job counts once: ready (claimable now), delayed,
-- processing, lapsed (the holder let the claim expire; claimable), expired (waiting for a sweep); dead;
-- oldest_ready_at is the run_at of the ready job that waits longest.
CREATE VIEW IF NOT EXISTS alkstore_queue_stats AS
SELECT
  queue,
  count(*) FILTER (WHERE condition = 'ready') AS ready,
  count(*) FILTER (WHERE condition = 'delayed') AS delayed,
  count(*) FILTER (WHERE condition = 'processing') AS processing,
  count(*) FILTER (WHERE condition = 'lapsed') AS lapsed,
  count(*) FILTER (WHERE condition = 'expired') AS expired,
  count(*) FILTER (WHERE condition = 'dead') AS dead,
  min(run_at) FILTER (WHERE condition = 'ready') AS oldest_ready_at
FROM (
  SELECT
    j.queue,
    CASE
      WHEN j.expires_at < c.now THEN 'expired'
      WHEN j.claim_expires_at IS NULL AND j.run_at <= c.now THEN 'ready'
      WHEN j.claim_expires_at IS NULL THEN 'delayed'
      WHEN j.claim_expires_at >= c.now THEN 'processing'
      ELSE 'lapsed'
    END AS condition,
    j.run_at
  FROM __alkstore_job j, __alkstore_clock c
  UNION ALL
  SELECT queue, 'dead', NULL FROM __alkstore_dead_job)
GROUP BY queue;
