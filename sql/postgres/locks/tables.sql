-- Named locks with a time to live. A row past its expires_at is as good as none.
CREATE TABLE alkstore._lock (
  name        text COLLATE "C" PRIMARY KEY,
  owner       text COLLATE "C" NOT NULL,
  acquired_at timestamptz NOT NULL,
  expires_at  timestamptz NOT NULL
);

CREATE FUNCTION alkstore._check_ttl(ttl_s bigint) RETURNS void
LANGUAGE plpgsql STABLE
AS $$
BEGIN
  IF ttl_s IS NULL THEN
    RAISE EXCEPTION 'invalid_option: ttl_s is required' USING ERRCODE = 'AK003', HINT = 'It is NULL.';
  END IF;
  PERFORM alkstore._check_option('ttl_s', ttl_s, 1);
END $$;

CREATE FUNCTION alkstore._acquire_lock(name text, owner text, ttl_s bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  moment timestamptz := alkstore._now();
BEGIN
  PERFORM alkstore._check_name('owner', _acquire_lock.owner);
  PERFORM alkstore._check_ttl(_acquire_lock.ttl_s);
  -- Looked at first: the upsert locks even a row that it then leaves alone, and would make the holder's renewal wait.
  IF EXISTS (
    SELECT 1 FROM alkstore._lock l
    WHERE l.name = _acquire_lock.name AND l.owner <> _acquire_lock.owner AND l.expires_at >= moment)
  THEN
    RETURN false;
  END IF;
  INSERT INTO alkstore._lock AS l (name, owner, acquired_at, expires_at)
  VALUES (_acquire_lock.name, _acquire_lock.owner, moment, moment + make_interval(secs => _acquire_lock.ttl_s))
  ON CONFLICT ON CONSTRAINT _lock_pkey DO UPDATE SET
    owner = excluded.owner,
    acquired_at = CASE WHEN l.expires_at < moment THEN moment ELSE l.acquired_at END,
    expires_at = excluded.expires_at
  WHERE l.owner = excluded.owner OR l.expires_at < moment;
  RETURN FOUND;
END $$;

CREATE FUNCTION alkstore._release_lock(name text, owner text) RETURNS boolean
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  moment timestamptz := alkstore._now();
BEGIN
  PERFORM alkstore._check_name('owner', _release_lock.owner);
  DELETE FROM alkstore._lock l
  WHERE l.name = _release_lock.name AND l.owner = _release_lock.owner AND l.expires_at >= moment;
  RETURN FOUND;
END $$;
