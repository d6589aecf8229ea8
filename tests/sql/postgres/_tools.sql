-- What the tests share: \ir this file after BEGIN.

-- What a statement comes to: the text of what it gives, or its error code and message.
CREATE FUNCTION pg_temp.outcome(statement text) RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
  result text;
BEGIN
  EXECUTE statement INTO result;
  RETURN result;
EXCEPTION WHEN OTHERS THEN
  RETURN sqlstate || ' ' || sqlerrm;
END $$;

-- An instant as unix seconds, which is how the SQLite tests write theirs.
CREATE FUNCTION pg_temp.unix(instant timestamptz) RETURNS bigint
LANGUAGE sql
AS $$ SELECT pg_catalog.date_part('epoch', instant)::bigint $$;
