-- acquire_lock: take a named lock, or renew one's own.

CREATE FUNCTION alkstore.acquire_lock(name text, owner text, ttl_s bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  PERFORM alkstore._check_public_name('name', acquire_lock.name);
  RETURN alkstore._acquire_lock(acquire_lock.name, acquire_lock.owner, acquire_lock.ttl_s);
END $$;
COMMENT ON FUNCTION alkstore.acquire_lock(text, text, bigint) IS
'True when owner now holds the lock for ttl_s seconds: it was free, lapsed, or the owner''s already (then renewed). False: another
owner holds it. A row with a deadline, not a session lock: it works through poolers. Errors: AK001 invalid_name, AK003 invalid_option.';
