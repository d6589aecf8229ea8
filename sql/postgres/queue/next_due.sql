-- next_due: when is it worth claiming again?

CREATE FUNCTION alkstore.next_due(queue text) RETURNS timestamptz
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $$
DECLARE
  moment timestamptz := alkstore._now();
  ready_since timestamptz;
BEGIN
  -- Any one that is ready will do: its instant has come.
  ready_since := (
    SELECT j.due_at FROM alkstore._job j
    WHERE j.queue = next_due.queue AND j.ready AND (j.expires_at IS NULL OR j.expires_at >= greatest(j.due_at, moment))
    ORDER BY -j.priority, j.run_at, j.id
    LIMIT 1);
  -- Unless the clock stepped back: then the least one matters.
  IF ready_since > moment THEN
    ready_since := (
      SELECT min(j.due_at) FROM alkstore._job j
      WHERE j.queue = next_due.queue AND j.ready AND (j.expires_at IS NULL OR j.expires_at >= greatest(j.due_at, moment)));
  END IF;
  RETURN least(
    ready_since,
    (SELECT j.due_at FROM alkstore._job j
     WHERE j.queue = next_due.queue AND NOT j.ready
       AND (j.expires_at IS NULL OR j.expires_at >= greatest(j.due_at, moment))
     ORDER BY j.due_at
     LIMIT 1));
END $$;
COMMENT ON FUNCTION alkstore.next_due(text) IS
'The least instant at which a claim would find a job: at or before now when one is ready, else when the next delayed job is due
or the next claim lapses. NULL: the queue holds nothing that time alone makes claimable.';
