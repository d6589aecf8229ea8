-- sweep_expired: bury what is past its expiry, delete dead jobs past their retention.

-- The sweep proper; the queue's name is checked, and may be a reserved one.
CREATE FUNCTION alkstore._sweep_expired(queue text, OUT expired bigint, OUT pruned bigint)
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  moment timestamptz := alkstore._now();
BEGIN
  expired := alkstore._bury(
    ARRAY(
      SELECT j.id FROM alkstore._job j
      WHERE j.queue = _sweep_expired.queue AND j.expires_at < moment
      ORDER BY j.id
      FOR UPDATE SKIP LOCKED),
    'expired', moment);
  DELETE FROM alkstore._dead_job d
  WHERE d.id = ANY (ARRAY(
    SELECT p.id FROM alkstore._dead_job p
    WHERE p.queue = _sweep_expired.queue AND p.prune_at < moment
    ORDER BY p.id
    FOR UPDATE SKIP LOCKED));
  GET DIAGNOSTICS pruned = ROW_COUNT;
END $$;

CREATE FUNCTION alkstore.sweep_expired(queue text, OUT expired bigint, OUT pruned bigint)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $$
BEGIN
  PERFORM alkstore._check_public_name('queue', sweep_expired.queue);
  SELECT s.expired, s.pruned INTO expired, pruned FROM alkstore._sweep_expired(sweep_expired.queue) s;
END $$;
COMMENT ON FUNCTION alkstore.sweep_expired(text) IS
'Moves every job of the queue that is past its expires_at, pending or processing, to the dead jobs with last_error ''expired'', and
deletes dead jobs older than their dead_letter_retention_s. Returns both counts. Any number may run at once; rows that an
open transaction holds are left to the next call. Errors: AK001 invalid_name.';
