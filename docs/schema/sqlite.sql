-- What sql/sqlite/install.sql makes, written by `make schema-dump`. Not for installing.

CREATE VIEW alkstore_version(version) AS SELECT '0.1.0';

CREATE VIEW __alkstore_clock(now) AS SELECT unixepoch();

CREATE VIEW __alkstore_check_name(what, name) AS SELECT NULL, NULL WHERE 0;

CREATE TRIGGER __alkstore_check_name_call INSTEAD OF INSERT ON __alkstore_check_name
WHEN typeof(NEW.name) <> 'text' OR NEW.name = '' OR length(CAST(NEW.name AS BLOB)) > 255
  OR instr(CAST(NEW.name AS BLOB), x'00') > 0
BEGIN
  SELECT CASE NEW.what
    WHEN 'queue' THEN RAISE(ABORT, 'AK001 invalid_name: queue must be text of 1 to 255 bytes without NUL')
    WHEN 'worker_id' THEN RAISE(ABORT, 'AK001 invalid_name: worker_id must be text of 1 to 255 bytes without NUL')
    WHEN 'name' THEN RAISE(ABORT, 'AK001 invalid_name: name must be text of 1 to 255 bytes without NUL')
    WHEN 'owner' THEN RAISE(ABORT, 'AK001 invalid_name: owner must be text of 1 to 255 bytes without NUL')
    WHEN 'outbox' THEN RAISE(ABORT, 'AK001 invalid_name: outbox must be text of 1 to 237 bytes without NUL')
  END;
END;

CREATE VIEW __alkstore_check_public_name(what, name) AS SELECT NULL, NULL WHERE 0;

CREATE TRIGGER __alkstore_check_public_name_call INSTEAD OF INSERT ON __alkstore_check_public_name
BEGIN
  INSERT INTO __alkstore_check_name(what, name) VALUES (NEW.what, NEW.name);
  SELECT CASE NEW.what
    WHEN 'queue' THEN RAISE(ABORT, 'AK001 invalid_name: queue must not start with the reserved prefix __alkstore_')
    WHEN 'name' THEN RAISE(ABORT, 'AK001 invalid_name: name must not start with the reserved prefix __alkstore_')
    WHEN 'outbox' THEN RAISE(ABORT, 'AK001 invalid_name: outbox must not start with the reserved prefix __alkstore_')
  END
  WHERE substr(NEW.name, 1, 11) = '__alkstore_';
END;

CREATE VIEW __alkstore_check_target(queue, outbox) AS SELECT NULL, NULL WHERE 0;

CREATE TRIGGER __alkstore_check_target_queue INSTEAD OF INSERT ON __alkstore_check_target
WHEN NEW.outbox IS NULL
BEGIN
  INSERT INTO __alkstore_check_public_name(what, name) VALUES ('queue', NEW.queue);
END;

CREATE TRIGGER __alkstore_check_target_outbox INSTEAD OF INSERT ON __alkstore_check_target
WHEN NEW.outbox IS NOT NULL
BEGIN
  SELECT RAISE(ABORT, 'AK003 invalid_option: give queue or outbox, not both') WHERE NEW.queue IS NOT NULL;
  INSERT INTO __alkstore_check_public_name(what, name) VALUES ('outbox', NEW.outbox);
  SELECT RAISE(ABORT, 'AK001 invalid_name: outbox must be text of 1 to 237 bytes without NUL')
  WHERE length(CAST(NEW.outbox AS BLOB)) > 237;
END;

CREATE TABLE __alkstore_job (
  id                      INTEGER PRIMARY KEY,
  queue                   TEXT NOT NULL,
  payload                 TEXT,
  priority                INTEGER NOT NULL,
  attempts                INTEGER NOT NULL DEFAULT 0,
  released                INTEGER NOT NULL DEFAULT 0,
  max_attempts            INTEGER NOT NULL,
  visibility_timeout_s    INTEGER NOT NULL,
  backoff_base_s          INTEGER NOT NULL,
  dead_letter_retention_s INTEGER,
  created_at              INTEGER NOT NULL,
  run_at                  INTEGER NOT NULL,
  expires_at              INTEGER,
  worker_id               TEXT,
  claimed_at              INTEGER,
  claim_expires_at        INTEGER,
  retry_error             TEXT,
  ready                   INTEGER NOT NULL,
  due_at                  INTEGER NOT NULL,
  CHECK ((worker_id IS NULL) = (claim_expires_at IS NULL) AND (claimed_at IS NULL) = (claim_expires_at IS NULL))
);

CREATE INDEX __alkstore_job_ready ON __alkstore_job (queue, priority DESC, run_at, id) WHERE ready = 1;

CREATE INDEX __alkstore_job_due ON __alkstore_job (queue, due_at) WHERE ready = 0;

CREATE INDEX __alkstore_job_expires ON __alkstore_job (queue, expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE __alkstore_dead_job (
  id                      INTEGER PRIMARY KEY,
  queue                   TEXT NOT NULL,
  payload                 TEXT,
  priority                INTEGER NOT NULL,
  attempts                INTEGER NOT NULL,
  released                INTEGER NOT NULL,
  max_attempts            INTEGER NOT NULL,
  visibility_timeout_s    INTEGER NOT NULL,
  backoff_base_s          INTEGER NOT NULL,
  dead_letter_retention_s INTEGER,
  created_at              INTEGER NOT NULL,
  run_at                  INTEGER NOT NULL,
  expires_at              INTEGER,
  worker_id               TEXT,
  claimed_at              INTEGER,
  claim_expires_at        INTEGER,
  retry_error             TEXT,
  last_error              TEXT NOT NULL,
  died_at                 INTEGER NOT NULL,
  prune_at                INTEGER
);

CREATE INDEX __alkstore_dead_job_prune ON __alkstore_dead_job (queue, prune_at) WHERE prune_at IS NOT NULL;

CREATE TABLE __alkstore_payload (
  id      INTEGER PRIMARY KEY,
  payload TEXT NOT NULL
);

CREATE VIEW __alkstore_held(id, queue, attempt, now) AS
SELECT j.id, j.queue, j.attempts, c.now
FROM __alkstore_job j, __alkstore_clock c
WHERE j.claim_expires_at >= c.now;

CREATE VIEW __alkstore_bury(id, last_error, died_at, error) AS SELECT NULL, NULL, NULL, NULL WHERE 0;

CREATE TRIGGER __alkstore_bury_call INSTEAD OF INSERT ON __alkstore_bury
BEGIN
  INSERT INTO __alkstore_dead_job (
    id, queue, payload, priority, attempts, released, max_attempts, visibility_timeout_s, backoff_base_s,
    dead_letter_retention_s, created_at, run_at, expires_at, worker_id, claimed_at, claim_expires_at,
    retry_error, last_error, died_at, prune_at)
  SELECT
    j.id, j.queue, j.payload, j.priority, j.attempts, j.released, j.max_attempts, j.visibility_timeout_s,
    j.backoff_base_s, j.dead_letter_retention_s, j.created_at, j.run_at, j.expires_at, j.worker_id, j.claimed_at,
    j.claim_expires_at, coalesce(NEW.error, j.retry_error), NEW.last_error, NEW.died_at,
    NEW.died_at + j.dead_letter_retention_s
  FROM __alkstore_job j
  WHERE j.id = NEW.id;
  DELETE FROM __alkstore_job WHERE id = NEW.id;
END;

CREATE TABLE alkstore_enqueue (
  job_id INTEGER PRIMARY KEY AUTOINCREMENT,
  queue,
  payload,
  delay_s,
  run_at,
  priority,
  expires_s,
  max_attempts,
  visibility_timeout_s,
  backoff_base_s,
  dead_letter_retention_s,
  outbox
);

CREATE TABLE sqlite_sequence(name,seq);

CREATE VIEW __alkstore_check_job(
  payload, delay_s, run_at, priority, expires_s, max_attempts, visibility_timeout_s, backoff_base_s,
  dead_letter_retention_s) AS
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL WHERE 0;

CREATE TRIGGER __alkstore_check_job_call INSTEAD OF INSERT ON __alkstore_check_job
BEGIN
  SELECT CASE
    WHEN typeof(NEW.payload) IN ('null', 'blob') OR instr(CAST(NEW.payload AS BLOB), x'00') > 0
      OR NOT json_valid(CAST(NEW.payload AS TEXT)) THEN
      RAISE(ABORT, 'AK002 invalid_payload: the payload is not JSON text')
    WHEN typeof(NEW.delay_s) NOT IN ('integer', 'null') OR NEW.delay_s NOT BETWEEN 0 AND 2147483647 THEN
      RAISE(ABORT, 'AK003 invalid_option: delay_s must be a whole number from 0 to 2147483647')
    WHEN typeof(NEW.run_at) NOT IN ('integer', 'null') OR NEW.run_at NOT BETWEEN -62135596800 AND 253402300799 THEN
      RAISE(ABORT, 'AK003 invalid_option: run_at must be unix seconds in the years 1 to 9999')
    WHEN typeof(NEW.priority) NOT IN ('integer', 'null') OR NEW.priority NOT BETWEEN -2147483648 AND 2147483647 THEN
      RAISE(ABORT, 'AK003 invalid_option: priority must be a whole number from -2147483648 to 2147483647')
    WHEN typeof(NEW.expires_s) NOT IN ('integer', 'null') OR NEW.expires_s NOT BETWEEN 1 AND 2147483647 THEN
      RAISE(ABORT, 'AK003 invalid_option: expires_s must be a whole number from 1 to 2147483647')
    WHEN typeof(NEW.max_attempts) NOT IN ('integer', 'null') OR NEW.max_attempts NOT BETWEEN 1 AND 2147483647 THEN
      RAISE(ABORT, 'AK003 invalid_option: max_attempts must be a whole number from 1 to 2147483647')
    WHEN typeof(NEW.visibility_timeout_s) NOT IN ('integer', 'null')
      OR NEW.visibility_timeout_s NOT BETWEEN 1 AND 2147483647 THEN
      RAISE(ABORT, 'AK003 invalid_option: visibility_timeout_s must be a whole number from 1 to 2147483647')
    WHEN typeof(NEW.backoff_base_s) NOT IN ('integer', 'null') OR NEW.backoff_base_s NOT BETWEEN 0 AND 2147483647 THEN
      RAISE(ABORT, 'AK003 invalid_option: backoff_base_s must be a whole number from 0 to 2147483647')
    WHEN typeof(NEW.dead_letter_retention_s) NOT IN ('integer', 'null')
      OR NEW.dead_letter_retention_s NOT BETWEEN 0 AND 2147483647 THEN
      RAISE(ABORT, 'AK003 invalid_option: dead_letter_retention_s must be a whole number from 0 to 2147483647')
  END;
END;

CREATE TRIGGER __alkstore_enqueue_check BEFORE INSERT ON alkstore_enqueue
BEGIN
  INSERT INTO __alkstore_check_target(queue, outbox) VALUES (NEW.queue, NEW.outbox);
  SELECT RAISE(ABORT, 'AK003 invalid_option: an outbox has the default visibility timeout, backoff and retention')
  WHERE NEW.outbox IS NOT NULL
    AND coalesce(NEW.visibility_timeout_s, NEW.backoff_base_s, NEW.dead_letter_retention_s) IS NOT NULL;
  -- SQLite shows an id that it is still to choose as -1.
  SELECT RAISE(ABORT, 'AK003 invalid_option: job_id is chosen by the queue') WHERE NEW.job_id <> -1;
  INSERT INTO __alkstore_check_job(
    payload, delay_s, run_at, priority, expires_s, max_attempts, visibility_timeout_s, backoff_base_s,
    dead_letter_retention_s)
  VALUES (
    NEW.payload, NEW.delay_s, NEW.run_at, NEW.priority, NEW.expires_s, NEW.max_attempts, NEW.visibility_timeout_s,
    NEW.backoff_base_s, NEW.dead_letter_retention_s);
END;

CREATE TRIGGER __alkstore_enqueue_call AFTER INSERT ON alkstore_enqueue
BEGIN
  -- An explicit -1 passed the check above.
  SELECT RAISE(ABORT, 'AK003 invalid_option: job_id is chosen by the queue') WHERE NEW.job_id < 1;
  -- First of all, so that a long payload's pages are free again when it is stored.
  DELETE FROM alkstore_enqueue WHERE job_id = NEW.job_id;
  INSERT INTO __alkstore_payload(id, payload)
  SELECT NEW.job_id, NEW.payload WHERE length(CAST(NEW.payload AS BLOB)) > 2000;
  INSERT INTO __alkstore_job (
    id, queue, payload, priority, max_attempts, visibility_timeout_s, backoff_base_s, dead_letter_retention_s,
    created_at, run_at, expires_at, ready, due_at)
  SELECT
    NEW.job_id, coalesce('__alkstore_outbox_' || NEW.outbox, NEW.queue),
    CASE WHEN length(CAST(NEW.payload AS BLOB)) <= 2000 THEN NEW.payload END,
    coalesce(NEW.priority, 0), coalesce(NEW.max_attempts, 3), coalesce(NEW.visibility_timeout_s, 300), coalesce(NEW.backoff_base_s, 5), NEW.dead_letter_retention_s,
    t.now, t.due, t.now + NEW.expires_s, t.due <= t.now, t.due
  FROM (SELECT c.now, coalesce(c.now + NEW.delay_s, NEW.run_at, c.now) AS due FROM __alkstore_clock c) t;
END;

CREATE TABLE __alkstore_claimed (
  position INTEGER PRIMARY KEY,
  job_id   INTEGER NOT NULL
);

CREATE VIEW alkstore_claimed AS
SELECT
  j.id AS job_id, j.queue, coalesce(j.payload, (SELECT p.payload FROM __alkstore_payload p WHERE p.id = j.id)) AS payload,
  j.attempts AS attempt, j.claim_expires_at, j.priority, j.max_attempts, j.worker_id, j.claimed_at, j.run_at, j.expires_at,
  j.created_at
FROM __alkstore_claimed c CROSS JOIN __alkstore_job j ON j.id = c.job_id
ORDER BY c.position;

CREATE VIEW alkstore_claimed_json(jobs) AS
SELECT json_group_array(json_object(
  'job_id', job_id, 'queue', queue, 'payload', payload, 'attempt', attempt, 'claim_expires_at', claim_expires_at,
  'priority', priority, 'max_attempts', max_attempts, 'worker_id', worker_id, 'claimed_at', claimed_at, 'run_at', run_at,
  'expires_at', expires_at, 'created_at', created_at))
FROM (SELECT * FROM alkstore_claimed LIMIT -1);

CREATE VIEW alkstore_claim(queue, worker_id, n, outbox) AS SELECT NULL, NULL, NULL, NULL WHERE 0;

CREATE TRIGGER __alkstore_claim_check INSTEAD OF INSERT ON alkstore_claim
BEGIN
  INSERT INTO __alkstore_check_target(queue, outbox) VALUES (NEW.queue, NEW.outbox);
  INSERT INTO __alkstore_check_name(what, name) VALUES ('worker_id', NEW.worker_id);
  SELECT RAISE(ABORT, 'AK003 invalid_option: n must be a whole number') WHERE typeof(NEW.n) NOT IN ('integer', 'null');
  INSERT INTO __alkstore_claim(queue, worker_id, n, now)
  SELECT coalesce('__alkstore_outbox_' || NEW.outbox, NEW.queue), NEW.worker_id, max(0, coalesce(NEW.n, 1)), now
  FROM __alkstore_clock;
END;

CREATE VIEW __alkstore_claim(queue, worker_id, n, now) AS SELECT NULL, NULL, NULL, NULL WHERE 0;

CREATE TRIGGER __alkstore_claim_call INSTEAD OF INSERT ON __alkstore_claim
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

CREATE VIEW alkstore_ack(queue, job_id, attempt) AS SELECT NULL, NULL, NULL WHERE 0;

CREATE TRIGGER __alkstore_ack_call INSTEAD OF INSERT ON alkstore_ack
BEGIN
  INSERT INTO __alkstore_check_name(what, name) VALUES ('queue', NEW.queue);
  SELECT RAISE(IGNORE) WHERE NOT EXISTS (
    SELECT 1 FROM __alkstore_held WHERE id = NEW.job_id AND queue = NEW.queue AND attempt = NEW.attempt);
  DELETE FROM __alkstore_job WHERE id = NEW.job_id;
  DELETE FROM __alkstore_payload WHERE id = NEW.job_id;
END;

CREATE VIEW alkstore_ack_batch(queue, job_id, attempt) AS SELECT NULL, NULL, NULL WHERE 0;

CREATE TRIGGER __alkstore_ack_batch_call INSTEAD OF INSERT ON alkstore_ack_batch
BEGIN
  INSERT INTO __alkstore_check_name(what, name) VALUES ('queue', NEW.queue);
  SELECT RAISE(IGNORE) WHERE NOT EXISTS (
    SELECT 1 FROM __alkstore_held
    WHERE id = NEW.job_id AND queue = NEW.queue AND attempt = coalesce(NEW.attempt, attempt));
  DELETE FROM __alkstore_job WHERE id = NEW.job_id;
  DELETE FROM __alkstore_payload WHERE id = NEW.job_id;
END;

CREATE VIEW alkstore_retry(queue, job_id, attempt, error, delay_s) AS
SELECT NULL, NULL, NULL, NULL, NULL WHERE 0;

CREATE TRIGGER __alkstore_retry_call INSTEAD OF INSERT ON alkstore_retry
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

CREATE VIEW alkstore_release(queue, job_id, attempt) AS SELECT NULL, NULL, NULL WHERE 0;

CREATE TRIGGER __alkstore_release_call INSTEAD OF INSERT ON alkstore_release
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

CREATE VIEW alkstore_fail(queue, job_id, attempt, error) AS SELECT NULL, NULL, NULL, NULL WHERE 0;

CREATE TRIGGER __alkstore_fail_call INSTEAD OF INSERT ON alkstore_fail
BEGIN
  INSERT INTO __alkstore_check_name(what, name) VALUES ('queue', NEW.queue);
  SELECT RAISE(IGNORE) WHERE NOT EXISTS (
    SELECT 1 FROM __alkstore_held WHERE id = NEW.job_id AND queue = NEW.queue AND attempt = NEW.attempt);
  INSERT INTO __alkstore_bury(id, last_error, died_at)
  SELECT NEW.job_id, coalesce(substr(CAST(NEW.error AS TEXT), 1, 65536), 'failed'), now FROM __alkstore_clock;
END;

CREATE VIEW alkstore_heartbeat(queue, job_id, attempt, extend_s) AS SELECT NULL, NULL, NULL, NULL WHERE 0;

CREATE TRIGGER __alkstore_heartbeat_call INSTEAD OF INSERT ON alkstore_heartbeat
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

CREATE VIEW alkstore_cancel(queue, job_id, outbox) AS SELECT NULL, NULL, NULL WHERE 0;

CREATE TRIGGER __alkstore_cancel_call INSTEAD OF INSERT ON alkstore_cancel
BEGIN
  INSERT INTO __alkstore_check_target(queue, outbox) VALUES (NEW.queue, NEW.outbox);
  SELECT RAISE(IGNORE) WHERE NOT EXISTS (
    SELECT 1 FROM __alkstore_job
    WHERE id = NEW.job_id AND queue = coalesce('__alkstore_outbox_' || NEW.outbox, NEW.queue));
  DELETE FROM __alkstore_job WHERE id = NEW.job_id;
  DELETE FROM __alkstore_payload WHERE id = NEW.job_id;
END;

CREATE TABLE __alkstore_swept (
  id      INTEGER PRIMARY KEY CHECK (id = 1),
  expired INTEGER NOT NULL,
  pruned  INTEGER NOT NULL
);

CREATE VIEW alkstore_swept(expired, pruned) AS SELECT expired, pruned FROM __alkstore_swept;

CREATE VIEW alkstore_sweep_expired(queue, outbox) AS SELECT NULL, NULL WHERE 0;

CREATE TRIGGER __alkstore_sweep_expired_check INSTEAD OF INSERT ON alkstore_sweep_expired
BEGIN
  INSERT INTO __alkstore_check_target(queue, outbox) VALUES (NEW.queue, NEW.outbox);
  INSERT INTO __alkstore_sweep_expired(queue, now)
  SELECT coalesce('__alkstore_outbox_' || NEW.outbox, NEW.queue), now FROM __alkstore_clock;
END;

CREATE VIEW __alkstore_sweep_expired(queue, now) AS SELECT NULL, NULL WHERE 0;

CREATE TRIGGER __alkstore_sweep_expired_call INSTEAD OF INSERT ON __alkstore_sweep_expired
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

CREATE VIEW alkstore_next_due(queue, next_due) AS
-- Hop from name to name along each index: a DISTINCT would read every job. The time goes along: a join with the clock would
-- make tables of it, which cost more than all the rest.
WITH RECURSIVE
  ready_queue(queue, now) AS (
    SELECT min(queue), (SELECT now FROM __alkstore_clock) FROM __alkstore_job WHERE ready = 1
    UNION ALL
    SELECT (SELECT min(j.queue) FROM __alkstore_job j WHERE j.ready = 1 AND j.queue > q.queue), q.now
    FROM ready_queue q WHERE q.queue IS NOT NULL),
  due_queue(queue, now) AS (
    SELECT min(queue), (SELECT now FROM __alkstore_clock) FROM __alkstore_job WHERE ready = 0
    UNION ALL
    SELECT (SELECT min(j.queue) FROM __alkstore_job j WHERE j.ready = 0 AND j.queue > q.queue), q.now
    FROM due_queue q WHERE q.queue IS NOT NULL),
  -- Any one that is ready will do: its instant has come. Only after the clock stepped back does the least one matter.
  head(queue, due_at) AS (
    SELECT q.queue, coalesce(
      (SELECT j.due_at FROM __alkstore_job j
       WHERE j.queue = q.queue AND j.ready = 1 AND j.due_at <= q.now AND (j.expires_at IS NULL OR j.expires_at >= q.now)
       ORDER BY j.priority DESC, j.run_at, j.id LIMIT 1),
      (SELECT min(j.due_at) FROM __alkstore_job j
       WHERE j.queue = q.queue AND j.ready = 1 AND j.due_at > q.now AND (j.expires_at IS NULL OR j.expires_at >= j.due_at)))
    FROM ready_queue q
    UNION ALL
    SELECT q.queue,
      (SELECT j.due_at FROM __alkstore_job j
       WHERE j.queue = q.queue AND j.ready = 0 AND (j.expires_at IS NULL OR j.expires_at >= max(j.due_at, q.now))
       ORDER BY j.due_at LIMIT 1)
    FROM due_queue q)
SELECT queue, min(due_at) FROM head WHERE queue IS NOT NULL GROUP BY queue;

CREATE TABLE __alkstore_lock (
  name        TEXT PRIMARY KEY,
  owner       TEXT NOT NULL,
  acquired_at INTEGER NOT NULL,
  expires_at  INTEGER NOT NULL
) WITHOUT ROWID;

CREATE VIEW __alkstore_check_ttl(ttl_s) AS SELECT NULL WHERE 0;

CREATE TRIGGER __alkstore_check_ttl_call INSTEAD OF INSERT ON __alkstore_check_ttl
WHEN typeof(NEW.ttl_s) <> 'integer' OR NEW.ttl_s NOT BETWEEN 1 AND 2147483647
BEGIN
  SELECT RAISE(ABORT, 'AK003 invalid_option: ttl_s must be a whole number from 1 to 2147483647');
END;

CREATE VIEW alkstore_acquire_lock(name, owner, ttl_s) AS SELECT NULL, NULL, NULL WHERE 0;

CREATE TRIGGER __alkstore_acquire_lock_check INSTEAD OF INSERT ON alkstore_acquire_lock
BEGIN
  INSERT INTO __alkstore_check_public_name(what, name) VALUES ('name', NEW.name);
  INSERT INTO __alkstore_check_name(what, name) VALUES ('owner', NEW.owner);
  INSERT INTO __alkstore_check_ttl(ttl_s) VALUES (NEW.ttl_s);
  SELECT RAISE(IGNORE) WHERE EXISTS (
    SELECT 1 FROM alkstore_locks WHERE name = NEW.name AND owner <> NEW.owner);
  INSERT INTO __alkstore_acquire_lock(name, owner, ttl_s) VALUES (NEW.name, NEW.owner, NEW.ttl_s);
END;

CREATE VIEW __alkstore_acquire_lock(name, owner, ttl_s) AS SELECT NULL, NULL, NULL WHERE 0;

CREATE TRIGGER __alkstore_acquire_lock_call INSTEAD OF INSERT ON __alkstore_acquire_lock
BEGIN
  DELETE FROM __alkstore_lock WHERE name = NEW.name AND expires_at < (SELECT now FROM __alkstore_clock);
  UPDATE __alkstore_lock SET expires_at = (SELECT now FROM __alkstore_clock) + NEW.ttl_s WHERE name = NEW.name;
  INSERT INTO __alkstore_lock(name, owner, acquired_at, expires_at)
  SELECT NEW.name, NEW.owner, now, now + NEW.ttl_s FROM __alkstore_clock
  WHERE NOT EXISTS (SELECT 1 FROM __alkstore_lock WHERE name = NEW.name);
END;

CREATE VIEW alkstore_renew_lock(name, owner, ttl_s) AS SELECT NULL, NULL, NULL WHERE 0;

CREATE TRIGGER __alkstore_renew_lock_call INSTEAD OF INSERT ON alkstore_renew_lock
BEGIN
  INSERT INTO __alkstore_check_public_name(what, name) VALUES ('name', NEW.name);
  INSERT INTO __alkstore_check_name(what, name) VALUES ('owner', NEW.owner);
  INSERT INTO __alkstore_check_ttl(ttl_s) VALUES (NEW.ttl_s);
  SELECT RAISE(IGNORE) WHERE NOT EXISTS (
    SELECT 1 FROM alkstore_locks WHERE name = NEW.name AND owner = NEW.owner);
  UPDATE __alkstore_lock SET expires_at = (SELECT now FROM __alkstore_clock) + NEW.ttl_s WHERE name = NEW.name;
END;

CREATE VIEW alkstore_release_lock(name, owner) AS SELECT NULL, NULL WHERE 0;

CREATE TRIGGER __alkstore_release_lock_call INSTEAD OF INSERT ON alkstore_release_lock
BEGIN
  INSERT INTO __alkstore_check_public_name(what, name) VALUES ('name', NEW.name);
  INSERT INTO __alkstore_check_name(what, name) VALUES ('owner', NEW.owner);
  SELECT RAISE(IGNORE) WHERE NOT EXISTS (
    SELECT 1 FROM alkstore_locks WHERE name = NEW.name AND owner = NEW.owner);
  DELETE FROM __alkstore_lock WHERE name = NEW.name;
END;

CREATE TABLE __alkstore_schedule (
  name         TEXT PRIMARY KEY,
  spec         TEXT NOT NULL,
  interval_s   INTEGER NOT NULL,
  queue        TEXT NOT NULL,
  payload      TEXT NOT NULL,
  priority     INTEGER NOT NULL,
  max_attempts INTEGER NOT NULL,
  expires_s    INTEGER,
  next_run_at  INTEGER NOT NULL,
  last_error   TEXT,
  created_at   INTEGER NOT NULL
) WITHOUT ROWID;

CREATE VIEW alkstore_schedule(name, spec, queue, payload, priority, max_attempts, expires_s) AS
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL WHERE 0;

CREATE TRIGGER __alkstore_schedule_check INSTEAD OF INSERT ON alkstore_schedule
BEGIN
  INSERT INTO __alkstore_check_public_name(what, name) VALUES ('name', NEW.name), ('queue', NEW.queue);
  SELECT RAISE(ABORT, 'AK004 invalid_spec: spec must be @every, one space, a number from 1, and s, m, h or d: @every 90m')
  WHERE typeof(NEW.spec) <> 'text' OR instr(CAST(NEW.spec AS BLOB), x'00') > 0
    OR NEW.spec NOT GLOB '@every [1-9]*[smhd]'
    OR substr(NEW.spec, 8, length(NEW.spec) - 8) GLOB '*[^0-9]*';
  INSERT INTO __alkstore_schedule_set(name, spec, interval_s, queue, payload, priority, max_attempts, expires_s, now)
  SELECT
    NEW.name, NEW.spec,
    CAST(substr(NEW.spec, 8) AS INTEGER)
      * CASE substr(NEW.spec, -1) WHEN 's' THEN 1 WHEN 'm' THEN 60 WHEN 'h' THEN 3600 ELSE 86400 END,
    NEW.queue, NEW.payload, coalesce(NEW.priority, 0), coalesce(NEW.max_attempts, 3), NEW.expires_s, now
  FROM __alkstore_clock;
END;

CREATE VIEW __alkstore_schedule_set(
  name, spec, interval_s, queue, payload, priority, max_attempts, expires_s, now) AS
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL WHERE 0;

CREATE TRIGGER __alkstore_schedule_set_call INSTEAD OF INSERT ON __alkstore_schedule_set
BEGIN
  SELECT RAISE(ABORT, 'AK004 invalid_spec: spec must be at most 2147483647 seconds') WHERE NEW.interval_s > 2147483647;
  INSERT INTO __alkstore_check_job(payload, priority, expires_s, max_attempts)
  VALUES (NEW.payload, NEW.priority, NEW.expires_s, NEW.max_attempts);
  -- The same spec keeps its next boundary: an application that registers at every start must still fire.
  UPDATE __alkstore_schedule SET
    spec = NEW.spec,
    interval_s = NEW.interval_s,
    queue = NEW.queue,
    payload = NEW.payload,
    priority = NEW.priority,
    max_attempts = NEW.max_attempts,
    expires_s = NEW.expires_s,
    next_run_at = CASE WHEN spec = NEW.spec THEN next_run_at ELSE NEW.now + NEW.interval_s END
  WHERE name = NEW.name AND (spec, queue, payload, priority, max_attempts, expires_s)
    IS NOT (NEW.spec, NEW.queue, NEW.payload, NEW.priority, NEW.max_attempts, NEW.expires_s);
  INSERT INTO __alkstore_schedule(
    name, spec, interval_s, queue, payload, priority, max_attempts, expires_s, next_run_at, created_at)
  SELECT
    NEW.name, NEW.spec, NEW.interval_s, NEW.queue, NEW.payload, NEW.priority, NEW.max_attempts, NEW.expires_s,
    NEW.now + NEW.interval_s, NEW.now
  WHERE NOT EXISTS (SELECT 1 FROM __alkstore_schedule WHERE name = NEW.name);
END;

CREATE VIEW alkstore_unschedule(name) AS SELECT NULL WHERE 0;

CREATE TRIGGER __alkstore_unschedule_call INSTEAD OF INSERT ON alkstore_unschedule
BEGIN
  INSERT INTO __alkstore_check_public_name(what, name) VALUES ('name', NEW.name);
  SELECT RAISE(IGNORE) WHERE NOT EXISTS (SELECT 1 FROM __alkstore_schedule WHERE name = NEW.name);
  DELETE FROM __alkstore_schedule WHERE name = NEW.name;
END;

CREATE TABLE __alkstore_fired (
  position INTEGER PRIMARY KEY,
  name     TEXT NOT NULL,
  queue    TEXT NOT NULL,
  job_id   INTEGER NOT NULL,
  boundary INTEGER NOT NULL
);

CREATE VIEW alkstore_fired AS
SELECT name, queue, job_id, boundary FROM __alkstore_fired ORDER BY position;

CREATE VIEW __alkstore_due_boundary(name, boundary, next_run_at) AS
WITH RECURSIVE step(n) AS (VALUES (0) UNION ALL SELECT n + 1 FROM step WHERE n < 63)
SELECT s.name, s.next_run_at + step.n * s.interval_s, s.next_run_at
FROM __alkstore_clock c CROSS JOIN __alkstore_schedule s ON s.next_run_at <= c.now
CROSS JOIN step ON s.next_run_at + step.n * s.interval_s <= c.now;

CREATE VIEW alkstore_fire_schedules(name) AS SELECT NULL WHERE 0;

CREATE TRIGGER __alkstore_fire_schedules_call INSTEAD OF INSERT ON alkstore_fire_schedules
BEGIN
  -- With a WHERE: clearing an empty table whole would write a page and wake every watcher of the file.
  DELETE FROM __alkstore_fired WHERE position > 0;
  INSERT INTO __alkstore_fire(name, boundary)
  SELECT name, boundary FROM __alkstore_due_boundary
  WHERE NEW.name IS NULL OR name = NEW.name
  ORDER BY next_run_at, name, boundary;
  UPDATE __alkstore_schedule SET
    next_run_at = next_run_at + ((c.now - next_run_at) / interval_s + 1) * interval_s,
    last_error = NULL
  FROM __alkstore_clock c
  WHERE next_run_at <= c.now AND (NEW.name IS NULL OR name = NEW.name);
END;

CREATE VIEW __alkstore_fire(name, boundary) AS SELECT NULL, NULL WHERE 0;

CREATE TRIGGER __alkstore_fire_call INSTEAD OF INSERT ON __alkstore_fire
BEGIN
  INSERT INTO alkstore_enqueue(queue, payload, run_at, priority, expires_s, max_attempts)
  SELECT queue, payload, NEW.boundary, priority, expires_s, max_attempts FROM __alkstore_schedule WHERE name = NEW.name;
  INSERT INTO __alkstore_fired(name, queue, job_id, boundary)
  SELECT name, queue, last_insert_rowid(), NEW.boundary FROM __alkstore_schedule WHERE name = NEW.name;
END;

CREATE VIEW __alkstore_schedule_failed(name, error) AS SELECT NULL, NULL WHERE 0;

CREATE TRIGGER __alkstore_schedule_failed_call INSTEAD OF INSERT ON __alkstore_schedule_failed
BEGIN
  UPDATE __alkstore_schedule SET last_error = substr(NEW.error, 1, 65536)
  WHERE name = NEW.name AND last_error IS NOT substr(NEW.error, 1, 65536);
END;

CREATE VIEW alkstore_lead_schedules(owner, ttl_s) AS SELECT NULL, NULL WHERE 0;

CREATE TRIGGER __alkstore_lead_schedules_call INSTEAD OF INSERT ON alkstore_lead_schedules
BEGIN
  INSERT INTO __alkstore_check_name(what, name) VALUES ('owner', NEW.owner);
  INSERT INTO __alkstore_check_ttl(ttl_s) VALUES (NEW.ttl_s);
  SELECT RAISE(IGNORE) WHERE EXISTS (
    SELECT 1 FROM alkstore_locks WHERE name = '__alkstore_scheduler' AND owner <> NEW.owner);
  INSERT INTO __alkstore_acquire_lock(name, owner, ttl_s) VALUES ('__alkstore_scheduler', NEW.owner, NEW.ttl_s);
END;

CREATE VIEW alkstore_resign_schedules(owner) AS SELECT NULL WHERE 0;

CREATE TRIGGER __alkstore_resign_schedules_call INSTEAD OF INSERT ON alkstore_resign_schedules
BEGIN
  INSERT INTO __alkstore_check_name(what, name) VALUES ('owner', NEW.owner);
  SELECT RAISE(IGNORE) WHERE NOT EXISTS (
    SELECT 1 FROM alkstore_locks WHERE name = '__alkstore_scheduler' AND owner = NEW.owner);
  DELETE FROM __alkstore_lock WHERE name = '__alkstore_scheduler';
END;

CREATE VIEW alkstore_jobs AS
SELECT
  id AS job_id, queue, CASE WHEN claim_expires_at IS NULL THEN 'pending' ELSE 'processing' END AS state,
  coalesce(payload, (SELECT p.payload FROM __alkstore_payload p WHERE p.id = j.id)) AS payload,
  priority, attempts, max_attempts, visibility_timeout_s, backoff_base_s, dead_letter_retention_s,
  worker_id, created_at, run_at, expires_at, claimed_at, claim_expires_at, retry_error,
  NULL AS last_error, NULL AS died_at, released
FROM __alkstore_job j
UNION ALL
SELECT
  id, queue, 'dead',
  coalesce(payload, (SELECT p.payload FROM __alkstore_payload p WHERE p.id = j.id)),
  priority, attempts, max_attempts, visibility_timeout_s, backoff_base_s, dead_letter_retention_s,
  worker_id, created_at, run_at, expires_at, claimed_at, claim_expires_at, retry_error,
  last_error, died_at, released
FROM __alkstore_dead_job j;

CREATE VIEW alkstore_dead_jobs AS
SELECT * FROM alkstore_jobs WHERE state = 'dead';

CREATE VIEW alkstore_queue_stats AS
SELECT
  queue,
  count(*) FILTER (WHERE condition = 'ready') AS ready,
  count(*) FILTER (WHERE condition = 'delayed') AS delayed,
  count(*) FILTER (WHERE condition = 'processing') AS processing,
  count(*) FILTER (WHERE condition = 'lapsed') AS lapsed,
  count(*) FILTER (WHERE condition = 'expired') AS expired,
  count(*) FILTER (WHERE condition = 'dead') AS dead,
  min(run_at) FILTER (WHERE condition = 'ready') AS oldest_ready_at
FROM (
  SELECT
    j.queue,
    CASE
      WHEN j.expires_at < c.now THEN 'expired'
      WHEN j.claim_expires_at IS NULL AND j.run_at <= c.now THEN 'ready'
      WHEN j.claim_expires_at IS NULL THEN 'delayed'
      WHEN j.claim_expires_at >= c.now THEN 'processing'
      ELSE 'lapsed'
    END AS condition,
    j.run_at
  FROM __alkstore_job j, __alkstore_clock c
  UNION ALL
  SELECT queue, 'dead', NULL FROM __alkstore_dead_job)
GROUP BY queue;

CREATE VIEW alkstore_schedules AS
SELECT name, spec, queue, payload, priority, max_attempts, expires_s, next_run_at, last_error, created_at
FROM __alkstore_schedule;

CREATE VIEW alkstore_locks AS
SELECT l.name, l.owner, l.acquired_at, l.expires_at
FROM __alkstore_lock l, __alkstore_clock c
WHERE l.expires_at >= c.now;
