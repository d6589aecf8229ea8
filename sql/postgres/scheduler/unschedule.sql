-- unschedule: no more boundaries; jobs that fired stay.

CREATE FUNCTION alkstore.unschedule(name text) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  PERFORM alkstore._check_public_name('name', unschedule.name);
  DELETE FROM alkstore._schedule s WHERE s.name = unschedule.name;
  RETURN FOUND;
END $$;
COMMENT ON FUNCTION alkstore.unschedule(text) IS
'Removes a schedule; jobs that it has fired stay. False when there is none. Errors: AK001 invalid_name.';
