-- alkstore_sweep_expired: bury what is past its expiry, delete dead jobs past their retention.
--
--   INSERT INTO alkstore_sweep_expired(queue) VALUES ('emails') RETURNING (SELECT expired FROM alkstore_swept);
--
-- Moves every job of the queue that is past its expires_at, pending or processing, to the dead jobs with last_error 'expired',
-- and deletes dead jobs older than their dead_letter_retention_s. Errors: AK001 invalid_name.
CREATE TABLE IF NOT EXISTS __alkstore_swept (
  id      INTEGER PRIMARY KEY CHECK (id = 1),
  expired INTEGER NOT NULL,
  pruned  INTEGER NOT NULL
);
INSERT OR IGNORE INTO __alkstore_swept (id, expired, pruned) VALUES (1, 0, 0);

-- alkstore_swept: what the last sweep of this database did. Read it in the sweep's own transaction.
CREATE VIEW IF NOT EXISTS alkstore_swept(expired, pruned) AS SELECT expired, pruned FROM __alkstore_swept;

CREATE VIEW IF NOT EXISTS alkstore_sweep_expired(queue, outbox) AS SELECT NULL, NULL WHERE 0;

CREATE TRIGGER IF NOT EXISTS __alkstore_sweep_expired_check INSTEAD OF INSERT ON alkstore_sweep_expired
BEGIN
  INSERT INTO __alkstore_check_target(queue, outbox) VALUES (NEW.queue, NEW.outbox);
  INSERT INTO __alkstore_sweep_expired(queue, now)
  SELECT coalesce('__alkstore_outbox_' || NEW.outbox, NEW.queue), now FROM __alkstore_clock;
END;

-- The sweep proper: arguments checked, the clock read once.
CREATE VIEW IF NOT EXISTS __alkstore_sweep_expired(queue, now) AS SELECT NULL, NULL WHERE 0;

CREATE TRIGGER IF NOT EXISTS __alkstore_sweep_expired_call INSTEAD OF INSERT ON __alkstore_sweep_expired
BEGIN
  -- Only when it differs: a sweep with nothing to do must not write.
  UPDATE __alkstore_swept SET expired = s.expired, pruned = s.pruned
  FROM (
    SELECT
      (SELECT count(*) FROM __alkstore_job INDEXED BY __alkstore_job_expires
       WHERE queue = NEW.queue AND expires_at < NEW.now) AS expired,
      (SELECT count(*) FROM __alkstore_dead_job INDEXED BY __alkstore_dead_job_prune
       WHERE queue = NEW.queue AND prune_at < NEW.now) AS pruned) s
  WHERE (__alkstore_swept.expired, __alkstore_swept.pruned) <> (s.expired, s.pruned);

  DELETE FROM __alkstore_payload WHERE id IN (
    SELECT id FROM __alkstore_dead_job INDEXED BY __alkstore_dead_job_prune
    WHERE queue = NEW.queue AND prune_at < NEW.now);
  DELETE FROM __alkstore_dead_job WHERE queue = NEW.queue AND prune_at < NEW.now;

  INSERT INTO __alkstore_bury(id, last_error, died_at)
  SELECT id, 'expired', NEW.now
  FROM __alkstore_job INDEXED BY __alkstore_job_expires
  WHERE queue = NEW.queue AND expires_at < NEW.now;
END;
