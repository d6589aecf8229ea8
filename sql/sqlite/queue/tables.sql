-- Storage: live jobs, dead jobs. Instants are unix seconds.
--
-- A live row is processing while it has a claim_expires_at, else pending.
-- Private columns ready and due_at put each row into exactly one of two partial indexes:
--   ready = 1  claimable as far as the clock is concerned: a claim reads its head in claim order
--   ready = 0  waits for due_at (a delayed job, or a claim that may lapse): a claim asks whether any is due
-- so neither delayed jobs nor claims in flight stand in the way of a claim, however many there are.
CREATE TABLE IF NOT EXISTS __alkstore_job (
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

CREATE INDEX IF NOT EXISTS __alkstore_job_ready ON __alkstore_job (queue, priority DESC, run_at, id) WHERE ready = 1;
CREATE INDEX IF NOT EXISTS __alkstore_job_due ON __alkstore_job (queue, due_at) WHERE ready = 0;
CREATE INDEX IF NOT EXISTS __alkstore_job_expires ON __alkstore_job (queue, expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE IF NOT EXISTS __alkstore_dead_job (
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

CREATE INDEX IF NOT EXISTS __alkstore_dead_job_prune ON __alkstore_dead_job (queue, prune_at) WHERE prune_at IS NOT NULL;

-- The payloads of more than 2000 bytes, of live and dead jobs; the job's own payload is then NULL. SQLite writes a changed row anew
-- with all that is in it: a claim, a retry or a dead move would write a long payload again each time.
CREATE TABLE IF NOT EXISTS __alkstore_payload (
  id      INTEGER PRIMARY KEY,
  payload TEXT NOT NULL
);

-- The claims that are good now: what ack, retry, release, fail and heartbeat act on.
CREATE VIEW IF NOT EXISTS __alkstore_held(id, queue, attempt, now) AS
SELECT j.id, j.queue, j.attempts, c.now
FROM __alkstore_job j, __alkstore_clock c
WHERE j.claim_expires_at >= c.now;

-- The dead move, one row a job. An error is what retry was given, and stays on the row; last_error says why the job died.
CREATE VIEW IF NOT EXISTS __alkstore_bury(id, last_error, died_at, error) AS SELECT NULL, NULL, NULL, NULL WHERE 0;

CREATE TRIGGER IF NOT EXISTS __alkstore_bury_call INSTEAD OF INSERT ON __alkstore_bury
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
