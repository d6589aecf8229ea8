-- alkstore_unschedule: no more boundaries; jobs that fired stay.
--
--   INSERT INTO alkstore_unschedule(name) VALUES ('sweep') RETURNING name;
--
-- A row back: it was there and is gone. No row: there is none. Errors: AK001 invalid_name.
CREATE VIEW IF NOT EXISTS alkstore_unschedule(name) AS SELECT NULL WHERE 0;

CREATE TRIGGER IF NOT EXISTS __alkstore_unschedule_call INSTEAD OF INSERT ON alkstore_unschedule
BEGIN
  INSERT INTO __alkstore_check_public_name(what, name) VALUES ('name', NEW.name);
  SELECT RAISE(IGNORE) WHERE NOT EXISTS (SELECT 1 FROM __alkstore_schedule WHERE name = NEW.name);
  DELETE FROM __alkstore_schedule WHERE name = NEW.name;
END;
