-- alkstore_renew_lock: hold on to a lock that has not lapsed.
--
--   INSERT INTO alkstore_renew_lock(name, owner, ttl_s) VALUES ('nightly', 'host-1', 60) RETURNING name;
--
-- A row back: the deadline is ttl_s seconds from now. No row, and nothing changed, unless owner holds it unlapsed: after a lapse
-- somebody else may have acted. Errors: AK001 invalid_name, AK003 invalid_option.
CREATE VIEW IF NOT EXISTS alkstore_renew_lock(name, owner, ttl_s) AS SELECT NULL, NULL, NULL WHERE 0;

CREATE TRIGGER IF NOT EXISTS __alkstore_renew_lock_call INSTEAD OF INSERT ON alkstore_renew_lock
BEGIN
  INSERT INTO __alkstore_check_public_name(what, name) VALUES ('name', NEW.name);
  INSERT INTO __alkstore_check_name(what, name) VALUES ('owner', NEW.owner);
  INSERT INTO __alkstore_check_ttl(ttl_s) VALUES (NEW.ttl_s);
  SELECT RAISE(IGNORE) WHERE NOT EXISTS (
    SELECT 1 FROM alkstore_locks WHERE name = NEW.name AND owner = NEW.owner);
  UPDATE __alkstore_lock SET expires_at = (SELECT now FROM __alkstore_clock) + NEW.ttl_s WHERE name = NEW.name;
END;
