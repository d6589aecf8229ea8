-- Tools for tests that look at what a call does to the storage: \ir this file after clock.sql.

-- A fresh start, as every SQLite test has it: nothing stored, ids from 1, the clock at 1000000000.
CREATE FUNCTION pg_temp.fresh() RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
  TRUNCATE alkstore._job, alkstore._dead_job, alkstore._schedule, alkstore._lock RESTART IDENTITY;
  PERFORM pg_temp.set_now('2001-09-09 01:46:40+00');
END $$;

-- The rows of a query as the SQLite tests write them: columns joined by |, NULL as NULL, instants as unix seconds.
CREATE FUNCTION pg_temp.lines(query text) RETURNS text[]
LANGUAGE plpgsql
AS $$
DECLARE
  r record;
  lines text[] := '{}';
BEGIN
  FOR r IN EXECUTE query LOOP
    lines := lines || (
      SELECT string_agg(
        CASE
          WHEN c.value IS NULL THEN 'NULL'
          WHEN c.value ~ '^\d+-\d\d-\d\dT\d\d:\d\d:\d\d' THEN extract(epoch FROM c.value::timestamptz)::bigint::text
          ELSE c.value
        END, '|' ORDER BY c.position)
      FROM json_each_text(row_to_json(r)) WITH ORDINALITY c (name, value, position));
  END LOOP;
  RETURN lines;
END $$;

-- Every version of every row: equal only when nothing at all was written in between.
CREATE FUNCTION pg_temp.storage() RETURNS text[]
LANGUAGE sql
AS $$
  SELECT ARRAY(
    (SELECT (j.ctid, j.*)::text FROM alkstore._job j ORDER BY j.id)
    UNION ALL
    (SELECT (d.ctid, d.*)::text FROM alkstore._dead_job d ORDER BY d.id)
    UNION ALL
    (SELECT (s.ctid, s.*)::text FROM alkstore._schedule s ORDER BY s.name)
    UNION ALL
    (SELECT (l.ctid, l.*)::text FROM alkstore._lock l ORDER BY l.name))
$$;

-- What a call gives, its value or its SQLSTATE, and what it does to the storage:
-- 'true, changed', 'false, untouched', 'AK001, untouched'.
CREATE FUNCTION pg_temp.effect(call text) RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
  before text[] := pg_temp.storage();
  result text;
BEGIN
  BEGIN
    EXECUTE 'SELECT ' || call INTO result;
  EXCEPTION WHEN OTHERS THEN
    result := SQLSTATE;
  END;
  RETURN coalesce(result, 'NULL')
    || CASE WHEN pg_temp.storage() = before THEN ', untouched' ELSE ', changed' END;
END $$;
