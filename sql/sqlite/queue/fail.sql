-- alkstore_fail: the job can never succeed; dead at once, whatever attempts are left.
--
--   INSERT INTO alkstore_fail(queue, job_id, attempt, error) VALUES ('emails', 1, 1, 'no such user') RETURNING job_id;
--
-- error (default 'failed') becomes last_error. A row back: accepted, as for alkstore_ack. Errors: AK001 invalid_name.
CREATE VIEW IF NOT EXISTS alkstore_fail(queue, job_id, attempt, error) AS SELECT NULL, NULL, NULL, NULL WHERE 0;

CREATE TRIGGER IF NOT EXISTS __alkstore_fail_call INSTEAD OF INSERT ON alkstore_fail
BEGIN
  INSERT INTO __alkstore_check_name(what, name) VALUES ('queue', NEW.queue);
  SELECT RAISE(IGNORE) WHERE NOT EXISTS (
    SELECT 1 FROM __alkstore_held WHERE id = NEW.job_id AND queue = NEW.queue AND attempt = NEW.attempt);
  INSERT INTO __alkstore_bury(id, last_error, died_at)
  SELECT NEW.job_id, coalesce(substr(CAST(NEW.error AS TEXT), 1, 65536), 'failed'), now FROM __alkstore_clock;
END;
