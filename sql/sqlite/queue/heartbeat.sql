-- alkstore_heartbeat: the worker is alive; the claim runs on.
--
--   INSERT INTO alkstore_heartbeat(queue, job_id, attempt, extend_s) VALUES ('emails', 1, 1, 60) RETURNING job_id;
--
-- The deadline becomes extend_s seconds from now (not added; default: the job's visibility_timeout_s).
-- A row back: accepted, as for alkstore_ack. Errors: AK001 invalid_name, AK003 invalid_option.
CREATE VIEW IF NOT EXISTS alkstore_heartbeat(queue, job_id, attempt, extend_s) AS SELECT NULL, NULL, NULL, NULL WHERE 0;

CREATE TRIGGER IF NOT EXISTS __alkstore_heartbeat_call INSTEAD OF INSERT ON alkstore_heartbeat
BEGIN
  INSERT INTO __alkstore_check_name(what, name) VALUES ('queue', NEW.queue);
  SELECT RAISE(ABORT, 'AK003 invalid_option: extend_s must be a whole number from 1 to 2147483647')
  WHERE typeof(NEW.extend_s) NOT IN ('integer', 'null') OR NEW.extend_s NOT BETWEEN 1 AND 2147483647;
  SELECT RAISE(IGNORE) WHERE NOT EXISTS (
    SELECT 1 FROM __alkstore_held WHERE id = NEW.job_id AND queue = NEW.queue AND attempt = NEW.attempt);
  UPDATE __alkstore_job SET
    claim_expires_at = c.now + coalesce(NEW.extend_s, visibility_timeout_s),
    ready = 0,
    due_at = c.now + coalesce(NEW.extend_s, visibility_timeout_s) + 1
  FROM __alkstore_clock c
  WHERE id = NEW.job_id;
END;
