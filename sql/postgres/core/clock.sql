-- The one clock. Tests replace this function; nothing else reads the time.
-- clock_timestamp(), not now(): a lease taken late in a long transaction starts at the call.
CREATE FUNCTION alkstore._now() RETURNS timestamptz
LANGUAGE sql VOLATILE
AS $$ SELECT date_trunc('second', clock_timestamp()) $$;
