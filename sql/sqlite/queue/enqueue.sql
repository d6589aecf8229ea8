-- alkstore_enqueue: one row in, one job. All options are resolved here, once, onto the job.
--
--   INSERT INTO alkstore_enqueue(queue, payload) VALUES ('emails', '{"to": 7}') RETURNING job_id;
--
-- payload: JSON text, kept byte for byte. delay_s (seconds from now) wins over run_at (unix seconds); priority: higher first,
-- default 0; expires_s: seconds from now after which the job is never claimed; max_attempts 3, visibility_timeout_s 300,
-- backoff_base_s 5, dead_letter_retention_s NULL (keep dead jobs for ever) are stamped onto the job. NULL means the default.
-- Many rows in one INSERT: all or none, one id back per row. last_insert_rowid() works too.
-- Errors: AK001 invalid_name, AK002 invalid_payload, AK003 invalid_option.
--
-- A table, not a view, so that the new id is known to the caller; it never keeps a row.
CREATE TABLE IF NOT EXISTS alkstore_enqueue (
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

-- The payload and the options that a job is made of, or what is wrong with them.
CREATE VIEW IF NOT EXISTS __alkstore_check_job(
  payload, delay_s, run_at, priority, expires_s, max_attempts, visibility_timeout_s, backoff_base_s,
  dead_letter_retention_s) AS
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL WHERE 0;

CREATE TRIGGER IF NOT EXISTS __alkstore_check_job_call INSTEAD OF INSERT ON __alkstore_check_job
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

CREATE TRIGGER IF NOT EXISTS __alkstore_enqueue_check BEFORE INSERT ON alkstore_enqueue
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

CREATE TRIGGER IF NOT EXISTS __alkstore_enqueue_call AFTER INSERT ON alkstore_enqueue
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
