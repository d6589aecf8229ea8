-- alkstore_fire_schedules: enqueue what is due, and move each schedule past now, in one step.
--
--   INSERT INTO alkstore_fire_schedules DEFAULT VALUES;         all that are due
--   INSERT INTO alkstore_fire_schedules(name) VALUES ('sweep');  only this one, if it is due
--
-- One job per missed boundary with run_at = the boundary, oldest first, at most 64 per schedule (the rest is skipped). What was
-- enqueued stands in alkstore_fired. Any number may call it, as often as they like: no boundary fires twice. SQLite cannot catch an
-- error here: when one schedule cannot enqueue, the call fails and nothing has fired; fire the others by name.

-- What the last firing of this database enqueued, in order.
CREATE TABLE IF NOT EXISTS __alkstore_fired (
  position INTEGER PRIMARY KEY,
  name     TEXT NOT NULL,
  queue    TEXT NOT NULL,
  job_id   INTEGER NOT NULL,
  boundary INTEGER NOT NULL
);

-- alkstore_fired: the jobs of the last firing of this database. Read it in the firing's own transaction.
CREATE VIEW IF NOT EXISTS alkstore_fired AS
SELECT name, queue, job_id, boundary FROM __alkstore_fired ORDER BY position;

-- Every boundary that is to fire now.
CREATE VIEW IF NOT EXISTS __alkstore_due_boundary(name, boundary, next_run_at) AS
WITH RECURSIVE step(n) AS (VALUES (0) UNION ALL SELECT n + 1 FROM step WHERE n < 63)
SELECT s.name, s.next_run_at + step.n * s.interval_s, s.next_run_at
FROM __alkstore_clock c CROSS JOIN __alkstore_schedule s ON s.next_run_at <= c.now
CROSS JOIN step ON s.next_run_at + step.n * s.interval_s <= c.now;

CREATE VIEW IF NOT EXISTS alkstore_fire_schedules(name) AS SELECT NULL WHERE 0;

CREATE TRIGGER IF NOT EXISTS __alkstore_fire_schedules_call INSTEAD OF INSERT ON alkstore_fire_schedules
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

-- One boundary, one job.
CREATE VIEW IF NOT EXISTS __alkstore_fire(name, boundary) AS SELECT NULL, NULL WHERE 0;

CREATE TRIGGER IF NOT EXISTS __alkstore_fire_call INSTEAD OF INSERT ON __alkstore_fire
BEGIN
  INSERT INTO alkstore_enqueue(queue, payload, run_at, priority, expires_s, max_attempts)
  SELECT queue, payload, NEW.boundary, priority, expires_s, max_attempts FROM __alkstore_schedule WHERE name = NEW.name;
  INSERT INTO __alkstore_fired(name, queue, job_id, boundary)
  SELECT name, queue, last_insert_rowid(), NEW.boundary FROM __alkstore_schedule WHERE name = NEW.name;
END;

-- For a runner that caught the error of a firing by name: PostgreSQL does this by itself.
CREATE VIEW IF NOT EXISTS __alkstore_schedule_failed(name, error) AS SELECT NULL, NULL WHERE 0;

CREATE TRIGGER IF NOT EXISTS __alkstore_schedule_failed_call INSTEAD OF INSERT ON __alkstore_schedule_failed
BEGIN
  UPDATE __alkstore_schedule SET last_error = substr(NEW.error, 1, 65536)
  WHERE name = NEW.name AND last_error IS NOT substr(NEW.error, 1, 65536);
END;
