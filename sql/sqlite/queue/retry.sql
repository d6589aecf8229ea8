-- alkstore_retry: the attempt failed, try again later; dead when no attempts are left.
--
--   INSERT INTO alkstore_retry(queue, job_id, attempt, error, delay_s) VALUES ('emails', 1, 1, 'timeout', 60) RETURNING job_id;
--
-- Pending again after delay_s seconds, or, when it is NULL, after the backoff: half to all of
-- min(3600, backoff_base_s * 2^(a-1)) seconds after the a-th attempt. error stays readable as retry_error (NULL keeps the one
-- before). A row back: accepted, as for alkstore_ack. Errors: AK001 invalid_name, AK003 invalid_option.
CREATE VIEW IF NOT EXISTS alkstore_retry(queue, job_id, attempt, error, delay_s) AS
SELECT NULL, NULL, NULL, NULL, NULL WHERE 0;

CREATE TRIGGER IF NOT EXISTS __alkstore_retry_call INSTEAD OF INSERT ON alkstore_retry
BEGIN
  INSERT INTO __alkstore_check_name(what, name) VALUES ('queue', NEW.queue);
  SELECT RAISE(ABORT, 'AK003 invalid_option: delay_s must be a whole number from 0 to 2147483647')
  WHERE typeof(NEW.delay_s) NOT IN ('integer', 'null') OR NEW.delay_s NOT BETWEEN 0 AND 2147483647;
  SELECT RAISE(IGNORE) WHERE NOT EXISTS (
    SELECT 1 FROM __alkstore_held WHERE id = NEW.job_id AND queue = NEW.queue AND attempt = NEW.attempt);

  INSERT INTO __alkstore_bury(id, last_error, died_at, error)
  SELECT j.id, coalesce(e.text, 'max attempts exceeded'), c.now, e.text
  FROM __alkstore_job j, __alkstore_clock c, (SELECT substr(CAST(NEW.error AS TEXT), 1, 65536) AS text) e
  WHERE j.id = NEW.job_id AND j.attempts - j.released >= j.max_attempts;

  -- 2^12 exceeds the cap for any base, so the shift stops there and nothing overflows;
  -- the mask, since abs() fails on the smallest integer.
  UPDATE __alkstore_job SET
    worker_id = NULL,
    claimed_at = NULL,
    claim_expires_at = NULL,
    run_at = t.due,
    retry_error = coalesce(substr(CAST(NEW.error AS TEXT), 1, 65536), retry_error),
    ready = t.due <= t.now,
    due_at = t.due
  FROM (
    SELECT c.now, c.now + coalesce(NEW.delay_s, (b.cap + 1) / 2 + (random() & 0x7fffffff) % (b.cap - (b.cap + 1) / 2 + 1)) AS due
    FROM __alkstore_clock c, (
      SELECT min(3600, backoff_base_s << min(attempts - released - 1, 12)) AS cap
      FROM __alkstore_job WHERE id = NEW.job_id) b
    LIMIT 1) t
  WHERE id = NEW.job_id;
END;
