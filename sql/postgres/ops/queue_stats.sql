-- One row per queue that holds anything; each live job counts once.
CREATE VIEW alkstore.queue_stats AS
SELECT
  s.queue,
  count(*) FILTER (WHERE s.condition = 'ready') AS ready,
  count(*) FILTER (WHERE s.condition = 'delayed') AS delayed,
  count(*) FILTER (WHERE s.condition = 'processing') AS processing,
  count(*) FILTER (WHERE s.condition = 'lapsed') AS lapsed,
  count(*) FILTER (WHERE s.condition = 'expired') AS expired,
  count(*) FILTER (WHERE s.condition = 'dead') AS dead,
  min(s.run_at) FILTER (WHERE s.condition = 'ready') AS oldest_ready_at
FROM (
  SELECT
    j.queue,
    CASE
      WHEN j.expires_at < clock.now THEN 'expired'
      WHEN j.claim_expires_at IS NULL AND j.run_at <= clock.now THEN 'ready'
      WHEN j.claim_expires_at IS NULL THEN 'delayed'
      WHEN j.claim_expires_at >= clock.now THEN 'processing'
      ELSE 'lapsed'
    END AS condition,
    j.run_at
  FROM alkstore._job j, (SELECT alkstore._now() AS now) clock
  UNION ALL
  SELECT d.queue, 'dead', NULL FROM alkstore._dead_job d
) s
GROUP BY s.queue;
COMMENT ON VIEW alkstore.queue_stats IS
'Jobs per queue: ready (claimable now), delayed, processing, lapsed (the holder let the claim expire; claimable), expired (waiting
for a sweep), dead; oldest_ready_at is the run_at of the ready job that waits longest.';
