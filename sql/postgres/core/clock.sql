-- The one clock. Tests replace this function; nothing else reads the time.
-- clock_timestamp(), not now(): a lease taken late in a long transaction starts at the call.
-- Qualified, since operators read it through the views, with a search_path of their own.
CREATE FUNCTION alkstore._now() RETURNS timestamptz
LANGUAGE sql VOLATILE
AS $$ SELECT pg_catalog.date_trunc('second', pg_catalog.clock_timestamp()) $$;
