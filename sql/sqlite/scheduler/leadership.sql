-- alkstore_lead_schedules, alkstore_resign_schedules: one runner of many does the firing.
--
--   INSERT INTO alkstore_lead_schedules(owner, ttl_s) VALUES ('host-1', 30) RETURNING owner;
--   INSERT INTO alkstore_resign_schedules(owner) VALUES ('host-1') RETURNING owner;
--
-- A row back: owner now leads for ttl_s seconds (nobody did, the leader lapsed, or it is the owner already); owner has resigned.
-- Leadership saves work; it is not needed for correctness. Errors: AK001 invalid_name, AK003 invalid_option.
CREATE VIEW IF NOT EXISTS alkstore_lead_schedules(owner, ttl_s) AS SELECT NULL, NULL WHERE 0;

CREATE TRIGGER IF NOT EXISTS __alkstore_lead_schedules_call INSTEAD OF INSERT ON alkstore_lead_schedules
BEGIN
  INSERT INTO __alkstore_check_name(what, name) VALUES ('owner', NEW.owner);
  INSERT INTO __alkstore_check_ttl(ttl_s) VALUES (NEW.ttl_s);
  SELECT RAISE(IGNORE) WHERE EXISTS (
    SELECT 1 FROM alkstore_locks WHERE name = '__alkstore_scheduler' AND owner <> NEW.owner);
  INSERT INTO __alkstore_acquire_lock(name, owner, ttl_s) VALUES ('__alkstore_scheduler', NEW.owner, NEW.ttl_s);
END;

CREATE VIEW IF NOT EXISTS alkstore_resign_schedules(owner) AS SELECT NULL WHERE 0;

CREATE TRIGGER IF NOT EXISTS __alkstore_resign_schedules_call INSTEAD OF INSERT ON alkstore_resign_schedules
BEGIN
  INSERT INTO __alkstore_check_name(what, name) VALUES ('owner', NEW.owner);
  SELECT RAISE(IGNORE) WHERE NOT EXISTS (
    SELECT 1 FROM alkstore_locks WHERE name = '__alkstore_scheduler' AND owner = NEW.owner);
  DELETE FROM __alkstore_lock WHERE name = '__alkstore_scheduler';
END;
