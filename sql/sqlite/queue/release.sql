-- alkstore_release: the worker gives a claim back unused; it does not count as an attempt.
--
--   INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('emails', 1, 1) RETURNING job_id;
--
-- Pending again at once with its old run_at. A row back: accepted, as for alkstore_ack. Errors: AK001 invalid_name.
CREATE VIEW IF NOT EXISTS alkstore_release(queue, job_id, attempt) AS SELECT NULL, NULL, NULL WHERE 0;

CREATE TRIGGER IF NOT EXISTS __alkstore_release_call INSTEAD OF INSERT ON alkstore_release
BEGIN
  INSERT INTO __alkstore_check_name(what, name) VALUES ('queue', NEW.queue);
  SELECT RAISE(IGNORE) WHERE NOT EXISTS (
    SELECT 1 FROM __alkstore_held WHERE id = NEW.job_id AND queue = NEW.queue AND attempt = NEW.attempt);
  UPDATE __alkstore_job SET
    worker_id = NULL,
    claimed_at = NULL,
    claim_expires_at = NULL,
    released = released + 1,
    ready = run_at <= (SELECT now FROM __alkstore_clock),
    due_at = run_at
  WHERE id = NEW.job_id;
END;
