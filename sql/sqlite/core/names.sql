-- Names: text of 1 to 255 bytes without NUL. `what` is the argument that the refusal names.
CREATE VIEW IF NOT EXISTS __alkstore_check_name(what, name) AS SELECT NULL, NULL WHERE 0;

CREATE TRIGGER IF NOT EXISTS __alkstore_check_name_call INSTEAD OF INSERT ON __alkstore_check_name
WHEN typeof(NEW.name) <> 'text' OR NEW.name = '' OR length(CAST(NEW.name AS BLOB)) > 255
  OR instr(CAST(NEW.name AS BLOB), x'00') > 0
BEGIN
  SELECT CASE NEW.what
    WHEN 'queue' THEN RAISE(ABORT, 'AK001 invalid_name: queue must be text of 1 to 255 bytes without NUL')
    WHEN 'worker_id' THEN RAISE(ABORT, 'AK001 invalid_name: worker_id must be text of 1 to 255 bytes without NUL')
    WHEN 'name' THEN RAISE(ABORT, 'AK001 invalid_name: name must be text of 1 to 255 bytes without NUL')
    WHEN 'owner' THEN RAISE(ABORT, 'AK001 invalid_name: owner must be text of 1 to 255 bytes without NUL')
    WHEN 'outbox' THEN RAISE(ABORT, 'AK001 invalid_name: outbox must be text of 1 to 237 bytes without NUL')
  END;
END;

-- Names that a user chooses for a shared thing; the prefix __alkstore_ is the engine's own.
CREATE VIEW IF NOT EXISTS __alkstore_check_public_name(what, name) AS SELECT NULL, NULL WHERE 0;

CREATE TRIGGER IF NOT EXISTS __alkstore_check_public_name_call INSTEAD OF INSERT ON __alkstore_check_public_name
BEGIN
  INSERT INTO __alkstore_check_name(what, name) VALUES (NEW.what, NEW.name);
  SELECT CASE NEW.what
    WHEN 'queue' THEN RAISE(ABORT, 'AK001 invalid_name: queue must not start with the reserved prefix __alkstore_')
    WHEN 'name' THEN RAISE(ABORT, 'AK001 invalid_name: name must not start with the reserved prefix __alkstore_')
    WHEN 'outbox' THEN RAISE(ABORT, 'AK001 invalid_name: outbox must not start with the reserved prefix __alkstore_')
  END
  WHERE substr(NEW.name, 1, 11) = '__alkstore_';
END;
