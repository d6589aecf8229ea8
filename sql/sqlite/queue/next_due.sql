-- alkstore_next_due: when is it worth claiming again?  SELECT next_due FROM alkstore_next_due WHERE queue = 'emails';
--
-- The least instant at which a claim would find a job: at or before now when one is ready, else when the next delayed job is due
-- or the next claim lapses. No row, or NULL: the queue holds nothing that time alone makes claimable.
CREATE VIEW IF NOT EXISTS alkstore_next_due(queue, next_due) AS
-- Hop from name to name along each index: a DISTINCT would read every job. The time goes along: a join with the clock would
-- make tables of it, which cost more than all the rest.
WITH RECURSIVE
  ready_queue(queue, now) AS (
    SELECT min(queue), (SELECT now FROM __alkstore_clock) FROM __alkstore_job WHERE ready = 1
    UNION ALL
    SELECT (SELECT min(j.queue) FROM __alkstore_job j WHERE j.ready = 1 AND j.queue > q.queue), q.now
    FROM ready_queue q WHERE q.queue IS NOT NULL),
  due_queue(queue, now) AS (
    SELECT min(queue), (SELECT now FROM __alkstore_clock) FROM __alkstore_job WHERE ready = 0
    UNION ALL
    SELECT (SELECT min(j.queue) FROM __alkstore_job j WHERE j.ready = 0 AND j.queue > q.queue), q.now
    FROM due_queue q WHERE q.queue IS NOT NULL),
  -- Any one that is ready will do: its instant has come. Only after the clock stepped back does the least one matter.
  head(queue, due_at) AS (
    SELECT q.queue, coalesce(
      (SELECT j.due_at FROM __alkstore_job j
       WHERE j.queue = q.queue AND j.ready = 1 AND j.due_at <= q.now AND (j.expires_at IS NULL OR j.expires_at >= q.now)
       ORDER BY j.priority DESC, j.run_at, j.id LIMIT 1),
      (SELECT min(j.due_at) FROM __alkstore_job j
       WHERE j.queue = q.queue AND j.ready = 1 AND j.due_at > q.now AND (j.expires_at IS NULL OR j.expires_at >= j.due_at)))
    FROM ready_queue q
    UNION ALL
    SELECT q.queue,
      (SELECT j.due_at FROM __alkstore_job j
       WHERE j.queue = q.queue AND j.ready = 0 AND (j.expires_at IS NULL OR j.expires_at >= max(j.due_at, q.now))
       ORDER BY j.due_at LIMIT 1)
    FROM due_queue q)
SELECT queue, min(due_at) FROM head WHERE queue IS NOT NULL GROUP BY queue;
