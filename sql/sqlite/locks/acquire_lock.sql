-- alkstore_acquire_lock: take a named lock, or renew one's own.
--
--   INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES ('nightly', 'host-1', 60) RETURNING name;
--
-- A row back: owner now holds the lock for ttl_s seconds; it was free, lapsed, or the owner's already (then renewed).
-- No row: another owner holds it. Errors: AK001 invalid_name, AK003 invalid_option.
CREATE VIEW IF NOT EXISTS alkstore_acquire_lock(name, owner, ttl_s) AS SELECT NULL, NULL, NULL WHERE 0;

CREATE TRIGGER IF NOT EXISTS __alkstore_acquire_lock_check INSTEAD OF INSERT ON alkstore_acquire_lock
BEGIN
  INSERT INTO __alkstore_check_public_name(what, name) VALUES ('name', NEW.name);
  INSERT INTO __alkstore_check_name(what, name) VALUES ('owner', NEW.owner);
  INSERT INTO __alkstore_check_ttl(ttl_s) VALUES (NEW.ttl_s);
  SELECT RAISE(IGNORE) WHERE EXISTS (
    SELECT 1 FROM alkstore_locks WHERE name = NEW.name AND owner <> NEW.owner);
  INSERT INTO __alkstore_acquire_lock(name, owner, ttl_s) VALUES (NEW.name, NEW.owner, NEW.ttl_s);
END;

-- The taking itself, once it is known that nobody else holds the lock; the name may be a reserved one.
CREATE VIEW IF NOT EXISTS __alkstore_acquire_lock(name, owner, ttl_s) AS SELECT NULL, NULL, NULL WHERE 0;

CREATE TRIGGER IF NOT EXISTS __alkstore_acquire_lock_call INSTEAD OF INSERT ON __alkstore_acquire_lock
BEGIN
  DELETE FROM __alkstore_lock WHERE name = NEW.name AND expires_at < (SELECT now FROM __alkstore_clock);
  UPDATE __alkstore_lock SET expires_at = (SELECT now FROM __alkstore_clock) + NEW.ttl_s WHERE name = NEW.name;
  INSERT INTO __alkstore_lock(name, owner, acquired_at, expires_at)
  SELECT NEW.name, NEW.owner, now, now + NEW.ttl_s FROM __alkstore_clock
  WHERE NOT EXISTS (SELECT 1 FROM __alkstore_lock WHERE name = NEW.name);
END;
