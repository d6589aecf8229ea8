-- renew_lock: hold on to a lock that has not lapsed.

CREATE FUNCTION alkstore.renew_lock(name text, owner text, ttl_s bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  moment timestamptz := alkstore._now();
BEGIN
  PERFORM alkstore._check_public_name('name', renew_lock.name);
  PERFORM alkstore._check_name('owner', renew_lock.owner);
  PERFORM alkstore._check_ttl(renew_lock.ttl_s);
  UPDATE alkstore._lock l SET expires_at = moment + make_interval(secs => renew_lock.ttl_s)
  WHERE l.name = renew_lock.name AND l.owner = renew_lock.owner AND l.expires_at >= moment;
  RETURN FOUND;
END $$;
COMMENT ON FUNCTION alkstore.renew_lock(text, text, bigint) IS
'Resets the deadline of the owner''s lock to ttl_s seconds from now. False, and nothing changed, unless owner holds it unlapsed:
after a lapse somebody else may have acted. Errors: AK001 invalid_name, AK003 invalid_option.';
