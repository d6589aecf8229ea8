-- alkstore_ack: the work is done, the job is gone.
--
--   INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('emails', 1, 1) RETURNING job_id;
--
-- A row back: accepted. No row, and nothing changed, unless the job is processing under that very attempt and its claim has
-- not expired. Many rows in one INSERT are judged one by one. Errors: AK001 invalid_name.
CREATE VIEW IF NOT EXISTS alkstore_ack(queue, job_id, attempt) AS SELECT NULL, NULL, NULL WHERE 0;

CREATE TRIGGER IF NOT EXISTS __alkstore_ack_call INSTEAD OF INSERT ON alkstore_ack
BEGIN
  INSERT INTO __alkstore_check_name(what, name) VALUES ('queue', NEW.queue);
  SELECT RAISE(IGNORE) WHERE NOT EXISTS (
    SELECT 1 FROM __alkstore_held WHERE id = NEW.job_id AND queue = NEW.queue AND attempt = NEW.attempt);
  DELETE FROM __alkstore_job WHERE id = NEW.job_id;
  DELETE FROM __alkstore_payload WHERE id = NEW.job_id;
END;

-- alkstore_ack_batch: the same, and attempt may be left out or NULL: it is then not checked, so that a worker whose claim
-- was taken over by another could ack the other's claim.
CREATE VIEW IF NOT EXISTS alkstore_ack_batch(queue, job_id, attempt) AS SELECT NULL, NULL, NULL WHERE 0;

CREATE TRIGGER IF NOT EXISTS __alkstore_ack_batch_call INSTEAD OF INSERT ON alkstore_ack_batch
BEGIN
  INSERT INTO __alkstore_check_name(what, name) VALUES ('queue', NEW.queue);
  SELECT RAISE(IGNORE) WHERE NOT EXISTS (
    SELECT 1 FROM __alkstore_held
    WHERE id = NEW.job_id AND queue = NEW.queue AND attempt = coalesce(NEW.attempt, attempt));
  DELETE FROM __alkstore_job WHERE id = NEW.job_id;
  DELETE FROM __alkstore_payload WHERE id = NEW.job_id;
END;
