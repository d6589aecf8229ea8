-- alkstore_claim: hand out up to n ready jobs to a worker, by priority (higher first), run_at, id.
--
--   INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('emails', 'worker-1', 1)
--   RETURNING (SELECT jobs FROM alkstore_claimed_json);
--
-- Each job is the worker's until claim_expires_at; then anyone may claim it again, as the next attempt.
-- n: NULL is 1, 0 or less gives no rows. Errors: AK001 invalid_name, AK003 invalid_option.

-- What the last claim of this database handed out, in claim order.
CREATE TABLE IF NOT EXISTS __alkstore_claimed (
  position INTEGER PRIMARY KEY,
  job_id   INTEGER NOT NULL
);

-- alkstore_claimed: the jobs of the last claim of this database. Read it in the claim's own transaction.
CREATE VIEW IF NOT EXISTS alkstore_claimed AS
SELECT
  j.id AS job_id, j.queue, coalesce(j.payload, (SELECT p.payload FROM __alkstore_payload p WHERE p.id = j.id)) AS payload,
  j.attempts AS attempt, j.claim_expires_at, j.priority, j.max_attempts, j.worker_id, j.claimed_at, j.run_at, j.expires_at,
  j.created_at
FROM __alkstore_claimed c CROSS JOIN __alkstore_job j ON j.id = c.job_id
ORDER BY c.position;

-- alkstore_claimed_json: the same as one JSON array of objects, for RETURNING; payload is the text as a string.
CREATE VIEW IF NOT EXISTS alkstore_claimed_json(jobs) AS
SELECT json_group_array(json_object(
  'job_id', job_id, 'queue', queue, 'payload', payload, 'attempt', attempt, 'claim_expires_at', claim_expires_at,
  'priority', priority, 'max_attempts', max_attempts, 'worker_id', worker_id, 'claimed_at', claimed_at, 'run_at', run_at,
  'expires_at', expires_at, 'created_at', created_at))
FROM (SELECT * FROM alkstore_claimed LIMIT -1);

CREATE VIEW IF NOT EXISTS alkstore_claim(queue, worker_id, n, outbox) AS SELECT NULL, NULL, NULL, NULL WHERE 0;

CREATE TRIGGER IF NOT EXISTS __alkstore_claim_check INSTEAD OF INSERT ON alkstore_claim
BEGIN
  INSERT INTO __alkstore_check_target(queue, outbox) VALUES (NEW.queue, NEW.outbox);
  INSERT INTO __alkstore_check_name(what, name) VALUES ('worker_id', NEW.worker_id);
  SELECT RAISE(ABORT, 'AK003 invalid_option: n must be a whole number') WHERE typeof(NEW.n) NOT IN ('integer', 'null');
  INSERT INTO __alkstore_claim(queue, worker_id, n, now)
  SELECT coalesce('__alkstore_outbox_' || NEW.outbox, NEW.queue), NEW.worker_id, max(0, coalesce(NEW.n, 1)), now
  FROM __alkstore_clock;
END;

-- The claim proper: arguments checked, the clock read once.
CREATE VIEW IF NOT EXISTS __alkstore_claim(queue, worker_id, n, now) AS SELECT NULL, NULL, NULL, NULL WHERE 0;

CREATE TRIGGER IF NOT EXISTS __alkstore_claim_call INSTEAD OF INSERT ON __alkstore_claim
BEGIN
  -- With a WHERE: clearing an empty table whole would write a page and wake every watcher of the file.
  DELETE FROM __alkstore_claimed WHERE position > 0;

  -- Lapsed and no attempts left: never to run again.
  INSERT INTO __alkstore_bury(id, last_error, died_at)
  SELECT id, 'max attempts exceeded', NEW.now
  FROM __alkstore_job INDEXED BY __alkstore_job_due
  WHERE queue = NEW.queue AND ready = 0 AND due_at <= NEW.now AND NEW.n > 0
    AND claim_expires_at < NEW.now AND attempts - released >= max_attempts;

  -- What has become due, delayed or lapsed, moves into the ready index, once.
  UPDATE __alkstore_job SET ready = 1
  WHERE id IN (
    SELECT id FROM __alkstore_job INDEXED BY __alkstore_job_due
    WHERE queue = NEW.queue AND ready = 0 AND due_at <= NEW.now AND NEW.n > 0
      AND (expires_at IS NULL OR expires_at >= NEW.now));

  -- due_at again: the clock may have stepped back since a row became ready.
  INSERT INTO __alkstore_claimed(job_id)
  SELECT id
  FROM __alkstore_job INDEXED BY __alkstore_job_ready
  WHERE queue = NEW.queue AND ready = 1 AND due_at <= NEW.now AND (expires_at IS NULL OR expires_at >= NEW.now)
  ORDER BY priority DESC, run_at, id
  LIMIT NEW.n;

  UPDATE __alkstore_job SET
    worker_id = NEW.worker_id,
    claimed_at = NEW.now,
    attempts = attempts + 1,
    claim_expires_at = NEW.now + visibility_timeout_s,
    ready = 0,
    due_at = NEW.now + visibility_timeout_s + 1
  WHERE id IN (SELECT job_id FROM __alkstore_claimed);
END;
