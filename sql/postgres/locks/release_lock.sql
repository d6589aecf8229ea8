-- release_lock: give a lock back.

CREATE FUNCTION alkstore.release_lock(name text, owner text) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  PERFORM alkstore._check_public_name('name', release_lock.name);
  RETURN alkstore._release_lock(release_lock.name, release_lock.owner);
END $$;
COMMENT ON FUNCTION alkstore.release_lock(text, text) IS
'Frees the owner''s lock. False, and nothing changed, unless owner holds it unlapsed. Errors: AK001 invalid_name.';
