-- The installed version lives in the catalog with the function, so any dump carries it.
CREATE FUNCTION alkstore.version() RETURNS text
LANGUAGE sql IMMUTABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$ SELECT '0.1.0' $$;
COMMENT ON FUNCTION alkstore.version() IS 'The version of the alkstore schema that is installed.';
