-- alkstore_schedule: enqueue a job at every boundary of an interval, from now on.
--
--   INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('sweep', '@every 5m', 'maintenance', '{}')
--   RETURNING (SELECT next_run_at FROM alkstore_schedules s WHERE s.name = alkstore_schedule.name);
--
-- spec: '@every 30s', 90m, 36h, 7d. The first boundary is one interval from now; registering again with the same spec keeps the next
-- boundary, a changed spec starts anew; queue, payload and options are replaced. Nothing fires by itself: see fire_schedules.
-- Errors: AK001 invalid_name, AK002 invalid_payload, AK003 invalid_option, AK004 invalid_spec.
CREATE VIEW IF NOT EXISTS alkstore_schedule(name, spec, queue, payload, priority, max_attempts, expires_s) AS
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL WHERE 0;

CREATE TRIGGER IF NOT EXISTS __alkstore_schedule_check INSTEAD OF INSERT ON alkstore_schedule
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

-- The upsert proper: the spec read, the defaults put in, the clock read once.
CREATE VIEW IF NOT EXISTS __alkstore_schedule_set(
  name, spec, interval_s, queue, payload, priority, max_attempts, expires_s, now) AS
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL WHERE 0;

CREATE TRIGGER IF NOT EXISTS __alkstore_schedule_set_call INSTEAD OF INSERT ON __alkstore_schedule_set
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
