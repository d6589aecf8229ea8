-- alkstore_cancel: a live job is no longer wanted; whoever holds it loses it.
--
--   INSERT INTO alkstore_cancel(queue, job_id) VALUES ('emails', 1) RETURNING job_id;
--
-- A row back: it was there, pending or processing, and is gone. No row: there is none (a dead job stays).
-- Errors: AK001 invalid_name.
CREATE VIEW IF NOT EXISTS alkstore_cancel(queue, job_id, outbox) AS SELECT NULL, NULL, NULL WHERE 0;

CREATE TRIGGER IF NOT EXISTS __alkstore_cancel_call INSTEAD OF INSERT ON alkstore_cancel
BEGIN
  INSERT INTO __alkstore_check_target(queue, outbox) VALUES (NEW.queue, NEW.outbox);
  SELECT RAISE(IGNORE) WHERE NOT EXISTS (
    SELECT 1 FROM __alkstore_job
    WHERE id = NEW.job_id AND queue = coalesce('__alkstore_outbox_' || NEW.outbox, NEW.queue));
  DELETE FROM __alkstore_job WHERE id = NEW.job_id;
  DELETE FROM __alkstore_payload WHERE id = NEW.job_id;
END;
