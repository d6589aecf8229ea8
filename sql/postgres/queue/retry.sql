-- retry: the attempt failed, try again later; dead when no attempts are left.

-- Seconds to wait before attempt a + 1: half to all of min(3600, base * 2^(a-1)).
-- 2^12 exceeds the cap for any base, so the exponent stops there and nothing overflows.
CREATE FUNCTION alkstore._backoff_s(base bigint, attempt bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  cap bigint := least(3600, base * (1::bigint << least(attempt - 1, 12)::int));
  low bigint := (cap + 1) / 2;
BEGIN
  RETURN low + floor(random() * (cap - low + 1))::bigint;
END $$;

CREATE FUNCTION alkstore.retry(queue text, job_id bigint, attempt bigint, error text, delay_s bigint DEFAULT NULL)
RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $$
DECLARE
  moment timestamptz := alkstore._now();
  cut_error text := alkstore._cut(retry.error);
  job alkstore._job%ROWTYPE;
  due timestamptz;
BEGIN
  PERFORM alkstore._check_name('queue', retry.queue);
  PERFORM alkstore._check_option('delay_s', retry.delay_s, 0);
  SELECT * INTO job FROM alkstore._job j
  WHERE j.id = retry.job_id AND j.queue = retry.queue AND j.attempts = retry.attempt AND j.claim_expires_at >= moment
  FOR UPDATE;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  IF job.attempts - job.released >= job.max_attempts THEN
    PERFORM alkstore._bury(ARRAY[job.id], coalesce(cut_error, 'max attempts exceeded'), moment, cut_error);
    RETURN true;
  END IF;
  due := moment + make_interval(secs =>
    coalesce(retry.delay_s, alkstore._backoff_s(job.backoff_base_s, job.attempts - job.released)));
  UPDATE alkstore._job j SET
    worker_id = NULL,
    claimed_at = NULL,
    claim_expires_at = NULL,
    run_at = due,
    retry_error = coalesce(cut_error, j.retry_error),
    ready = (due <= moment),
    due_at = due
  WHERE j.id = job.id;
  PERFORM alkstore._wake(job.queue);
  RETURN true;
END $$;
COMMENT ON FUNCTION alkstore.retry(text, bigint, bigint, text, bigint) IS
'Gives a claimed job back after a failed attempt: pending again after delay_s seconds, or after the backoff when delay_s is NULL;
dead when it has no attempts left. error stays readable as retry_error (NULL keeps the one before).
False, and nothing changed, unless the job is processing under that very attempt and its claim has not expired.
Errors: AK001 invalid_name, AK003 invalid_option.';
