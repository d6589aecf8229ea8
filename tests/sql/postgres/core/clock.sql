-- the clock
BEGIN;
SELECT plan(6);
\ir ../_effects.sql

-- Before the tests' clock takes its place.
SELECT clock_timestamp() AS before \gset
SELECT ok(
  alkstore._now() BETWEEN date_trunc('second', :'before'::timestamptz) AND clock_timestamp(),
  '[clock] the clock tells the time of day');
SELECT is(date_part('microseconds', alkstore._now())::bigint % 1000000, 0::bigint,
  '[clock] the clock tells whole seconds');

\ir ../clock.sql

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', expires_s => 5000, dead_letter_retention_s => 100);
SELECT pg_temp.advance(10);
SELECT alkstore.claim('q', 'w');
SELECT pg_temp.advance(10);
SELECT alkstore.heartbeat('q', 1, 1, 50);
SELECT is(
  pg_temp.lines('SELECT created_at, run_at, expires_at, claimed_at, claim_expires_at FROM alkstore.jobs'),
  ARRAY['1000000000|1000000000|1000005000|1000000010|1000000070'],
  '[clock] the instants of a live job come from the one clock');

SELECT pg_temp.advance(10);
SELECT alkstore.fail('q', 1, 1);
SELECT is(
  pg_temp.lines('SELECT created_at, run_at, expires_at, claimed_at, claim_expires_at, died_at FROM alkstore.jobs'),
  ARRAY['1000000000|1000000000|1000005000|1000000010|1000000070|1000000030'],
  '[clock] the instants of a dead job come from the one clock');

SELECT is(
  ARRAY(
    SELECT o.name FROM (
      SELECT p.proname, p.prosrc FROM pg_proc p WHERE p.pronamespace = 'alkstore'::regnamespace
      UNION ALL
      SELECT c.relname, pg_get_viewdef(c.oid) FROM pg_class c WHERE c.relnamespace = 'alkstore'::regnamespace AND c.relkind = 'v'
      UNION ALL
      SELECT d.adrelid::regclass::text, pg_get_expr(d.adbin, d.adrelid) FROM pg_attrdef d JOIN pg_class c ON c.oid = d.adrelid
      WHERE c.relnamespace = 'alkstore'::regnamespace
    ) o (name, source)
    WHERE o.name <> '_now'
      AND o.source ~* '(?<!_)now\(|(clock|statement|transaction)_timestamp|current_(date|time)|localtime|timeofday|''now'''),
  '{}'::name[],
  '[clock] nothing else reads the time');

-- A clock that counts its readers, and moves while a call runs.
SET LOCAL test.reads = 0;
CREATE OR REPLACE FUNCTION alkstore._now() RETURNS timestamptz
LANGUAGE sql VOLATILE
AS $$
  SELECT timestamptz '2001-09-09 01:46:40+00' + pg_catalog.make_interval(
    secs => pg_catalog.set_config('test.reads', (pg_catalog.current_setting('test.reads')::int + 1)::text, true)::int)
$$;
CREATE FUNCTION pg_temp.reads(call text) RETURNS int
LANGUAGE plpgsql
AS $$
BEGIN
  SET LOCAL test.reads = 0;
  EXECUTE 'SELECT ' || call;
  RETURN current_setting('test.reads');
END $$;
TRUNCATE alkstore._job, alkstore._dead_job RESTART IDENTITY;
SELECT is(
  ARRAY(SELECT pg_temp.reads('alkstore.' || call) FROM unnest(ARRAY[
    $$enqueue('q', '1', delay_s => 0, expires_s => 5)$$, $$enqueue_batch('q', '[2, 3, 4, 5]')$$, $$next_due('q')$$,
    $$claim('q', 'w', 5)$$, $$heartbeat('q', 1, 1)$$, $$ack('q', 1, 1)$$, $$ack_batch('q', '{2}', '{1}')$$, $$release('q', 3, 1)$$,
    $$fail('q', 4, 1)$$, $$retry('q', 5, 1, 'e', 0)$$, $$claim('q', 'w')$$, $$cancel('q', 5)$$, $$sweep_expired('q')$$,
    $$claim('empty', 'w')$$, $$get_job('q', 3)$$, $$wake_channel('q')$$]) call),
  ARRAY[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 0, 0],
  '[clock] a call reads the clock once');

SELECT * FROM finish();
ROLLBACK;
