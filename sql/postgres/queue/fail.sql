-- fail: the job can never succeed; dead at once.

CREATE FUNCTION alkstore.fail(queue text, job_id bigint, attempt bigint, error text DEFAULT NULL) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $$
DECLARE
  moment timestamptz := alkstore._now();
BEGIN
  PERFORM alkstore._check_name('queue', fail.queue);
  RETURN 1 = alkstore._bury(
    ARRAY(
      SELECT j.id FROM alkstore._job j
      WHERE j.id = fail.job_id AND j.queue = fail.queue AND j.attempts = fail.attempt
        AND j.claim_expires_at >= moment
      FOR UPDATE),
    coalesce(alkstore._cut(fail.error), 'failed'), moment);
END $$;
COMMENT ON FUNCTION alkstore.fail(text, bigint, bigint, text) IS
'Moves a claimed job to the dead jobs at once, whatever attempts are left; error (default ''failed'') becomes last_error.
False, and nothing changed, unless the job is processing under that very attempt and its claim has not expired.
Errors: AK001 invalid_name.';
