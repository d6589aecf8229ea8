-- release: the worker gives a claim back unused; it does not count as an attempt.

CREATE FUNCTION alkstore.release(queue text, job_id bigint, attempt bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $$
DECLARE
  moment timestamptz := alkstore._now();
BEGIN
  PERFORM alkstore._check_name('queue', release.queue);
  UPDATE alkstore._job j SET
    worker_id = NULL,
    claimed_at = NULL,
    claim_expires_at = NULL,
    released = j.released + 1,
    ready = (j.run_at <= moment),
    due_at = j.run_at
  WHERE j.id = release.job_id AND j.queue = release.queue AND j.attempts = release.attempt
    AND j.claim_expires_at >= moment;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  PERFORM alkstore._wake(release.queue);
  RETURN true;
END $$;
COMMENT ON FUNCTION alkstore.release(text, bigint, bigint) IS
'Gives a claimed job back unused: pending again at once with its old run_at, and the claim does not count towards max_attempts.
False, and nothing changed, unless the job is processing under that very attempt and its claim has not expired.
Errors: AK001 invalid_name.';
