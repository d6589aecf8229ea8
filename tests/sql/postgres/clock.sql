-- The clock of a test: \ir this file after BEGIN. It stands still at 2001-09-09 01:46:40 UTC, which
-- is 1000000000 in unix seconds, until the test moves it. It ends with the test's transaction.

SET LOCAL test.now = '2001-09-09 01:46:40+00';

CREATE OR REPLACE FUNCTION alkstore._now() RETURNS timestamptz
LANGUAGE sql VOLATILE
AS $$ SELECT pg_catalog.current_setting('test.now')::timestamptz $$;

CREATE FUNCTION pg_temp.set_now(instant timestamptz) RETURNS void
LANGUAGE sql
AS $$ SELECT pg_catalog.set_config('test.now', instant::text, true) $$;

CREATE FUNCTION pg_temp.advance(seconds bigint) RETURNS void
LANGUAGE sql
AS $$
    SELECT pg_catalog.set_config(
        'test.now', (alkstore._now() + pg_catalog.make_interval(secs => seconds))::text, true);
$$;
