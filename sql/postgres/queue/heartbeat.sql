-- heartbeat: the worker is alive; the claim runs on.

CREATE FUNCTION alkstore.heartbeat(queue text, job_id bigint, attempt bigint, extend_s bigint DEFAULT NULL) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $$
DECLARE
  moment timestamptz := alkstore._now();
BEGIN
  PERFORM alkstore._check_name('queue', heartbeat.queue);
  PERFORM alkstore._check_option('extend_s', heartbeat.extend_s, 1);
  UPDATE alkstore._job j SET
    claim_expires_at = moment + make_interval(secs => coalesce(heartbeat.extend_s, j.visibility_timeout_s)),
    ready = false,
    due_at = moment + make_interval(secs => coalesce(heartbeat.extend_s, j.visibility_timeout_s) + 1)
  WHERE j.id = heartbeat.job_id AND j.queue = heartbeat.queue AND j.attempts = heartbeat.attempt
    AND j.claim_expires_at >= moment;
  RETURN FOUND;
END $$;
COMMENT ON FUNCTION alkstore.heartbeat(text, bigint, bigint, bigint) IS
'Resets the deadline of a claim to extend_s seconds from now (not added; default: the job''s visibility_timeout_s).
False, and nothing changed, unless the job is processing under that very attempt and its claim has not expired.
Errors: AK001 invalid_name, AK003 invalid_option.';
