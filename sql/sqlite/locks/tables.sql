-- Named locks with a time to live. A row past its expires_at is as good as none.
CREATE TABLE IF NOT EXISTS __alkstore_lock (
  name        TEXT PRIMARY KEY,
  owner       TEXT NOT NULL,
  acquired_at INTEGER NOT NULL,
  expires_at  INTEGER NOT NULL
) WITHOUT ROWID;

CREATE VIEW IF NOT EXISTS __alkstore_check_ttl(ttl_s) AS SELECT NULL WHERE 0;

CREATE TRIGGER IF NOT EXISTS __alkstore_check_ttl_call INSTEAD OF INSERT ON __alkstore_check_ttl
WHEN typeof(NEW.ttl_s) <> 'integer' OR NEW.ttl_s NOT BETWEEN 1 AND 2147483647
BEGIN
  SELECT RAISE(ABORT, 'AK003 invalid_option: ttl_s must be a whole number from 1 to 2147483647');
END;
