-- alkstore_release_lock: give a lock back.
--
--   INSERT INTO alkstore_release_lock(name, owner) VALUES ('nightly', 'host-1') RETURNING name;
--
-- A row back: it is free. No row, and nothing changed, unless owner holds it unlapsed. Errors: AK001 invalid_name.
CREATE VIEW IF NOT EXISTS alkstore_release_lock(name, owner) AS SELECT NULL, NULL WHERE 0;

CREATE TRIGGER IF NOT EXISTS __alkstore_release_lock_call INSTEAD OF INSERT ON alkstore_release_lock
BEGIN
  INSERT INTO __alkstore_check_public_name(what, name) VALUES ('name', NEW.name);
  INSERT INTO __alkstore_check_name(what, name) VALUES ('owner', NEW.owner);
  SELECT RAISE(IGNORE) WHERE NOT EXISTS (
    SELECT 1 FROM alkstore_locks WHERE name = NEW.name AND owner = NEW.owner);
  DELETE FROM __alkstore_lock WHERE name = NEW.name;
END;
