-- claim
BEGIN;
SELECT plan(46);
\ir ../clock.sql
\ir ../_effects.sql
\ir ../_answers.sql

-- [claim-once]
SELECT pg_temp.fresh();
SELECT alkstore.enqueue_batch('q', '[1,2,3]');
SELECT is(
  pg_temp.lines($$ SELECT payload, worker_id FROM alkstore.claim('q', 'a', 2) $$)
  || pg_temp.lines($$ SELECT payload, worker_id FROM alkstore.claim('q', 'b', 2) $$)
  || pg_temp.lines($$ SELECT payload, worker_id FROM alkstore.claim('q', 'c', 2) $$),
  ARRAY['1|a', '2|a', '3|b'],
  '[claim-once] a job is handed out once');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '0', visibility_timeout_s => 1);
SELECT alkstore.claim('q', 'w');
SELECT count(alkstore.enqueue('q', to_json(g), delay_s => g % 2)) FROM generate_series(1, 20) g;
SELECT is(
  pg_temp.lines($$ SELECT count(*) FROM alkstore.claim('q', 'w', 1) $$)
  || pg_temp.lines($$ SELECT count(*) FROM alkstore.claim('q', 'w', 5) $$)
  || pg_temp.lines($$ SELECT pg_temp.advance(2) $$)
  || pg_temp.lines($$ SELECT count(*) FROM alkstore.claim('q', 'w', 1) $$)
  || pg_temp.lines($$ SELECT count(*) FROM alkstore.claim('q', 'w', 5) $$)
  || pg_temp.lines($$ SELECT count(*) FROM alkstore.claim('q', 'w', 99) $$),
  ARRAY['1', '5', 'NULL', '1', '5', '9'],
  '[claim-once] a claim hands out n jobs at most');

-- [claim-ready]
SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', delay_s => 60);
SELECT pg_temp.advance(59);
SELECT is(pg_temp.lines($$ SELECT payload FROM alkstore.claim('q', 'w') $$), '{}',
  '[claim-ready] a delayed job is not ready a second before its run_at');
SELECT pg_temp.advance(1);
SELECT is(pg_temp.lines($$ SELECT payload FROM alkstore.claim('q', 'w') $$), '{1}',
  '[claim-ready] a delayed job is ready at its run_at');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', visibility_timeout_s => 60);
SELECT alkstore.claim('q', 'w');
SELECT pg_temp.advance(60);
SELECT is(pg_temp.lines($$ SELECT payload FROM alkstore.claim('q', 'w') $$), '{}',
  '[claim-ready] a claim still holds at its claim_expires_at');
SELECT pg_temp.advance(1);
SELECT is(pg_temp.lines($$ SELECT payload FROM alkstore.claim('q', 'w') $$), '{1}',
  '[claim-ready] a second after its claim_expires_at the job is ready');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', expires_s => 60), alkstore.enqueue('q', '2', expires_s => 60);
SELECT pg_temp.advance(60);
SELECT is(pg_temp.lines($$ SELECT payload FROM alkstore.claim('q', 'w') $$), '{1}',
  '[claim-ready] a job is ready at its expires_at');
SELECT pg_temp.advance(1);
SELECT is(pg_temp.lines($$ SELECT payload FROM alkstore.claim('q', 'w') $$), '{}',
  '[claim-ready] a second after its expires_at a job is never ready');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', delay_s => 60, expires_s => 60), alkstore.enqueue('q', '2', delay_s => 60, expires_s => 59);
SELECT pg_temp.advance(60);
SELECT is(pg_temp.lines($$ SELECT payload FROM alkstore.claim('q', 'w', 9) $$), '{1}',
  '[claim-ready] a delayed job that expires before its run_at is never ready');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', visibility_timeout_s => 10, expires_s => 11);
SELECT alkstore.enqueue('q', '2', visibility_timeout_s => 10, expires_s => 10);
SELECT alkstore.claim('q', 'w', 2);
SELECT pg_temp.advance(11);
SELECT is(pg_temp.lines($$ SELECT payload FROM alkstore.claim('q', 'w', 9) $$), '{1}',
  '[claim-ready] a lapsed claim on an expired job is not taken over');

-- Enough of them to be moved at once, which the clock then contradicts.
SELECT pg_temp.fresh();
SELECT count(alkstore.enqueue('q', to_json(g), delay_s => 60)) FROM generate_series(1, 150) g;
SELECT pg_temp.advance(60);
SELECT is(
  pg_temp.lines($$ SELECT payload FROM alkstore.claim('q', 'w') $$)
  || pg_temp.lines($$ SELECT pg_temp.advance(-2) $$)
  || pg_temp.lines($$ SELECT payload FROM alkstore.claim('q', 'w', 9) $$)
  || pg_temp.lines($$ SELECT alkstore.enqueue('q', '151', delay_s => 1) $$)
  || pg_temp.lines($$ SELECT pg_temp.advance(1) $$)
  || pg_temp.lines($$ SELECT payload FROM alkstore.claim('q', 'w', 9) $$)
  || pg_temp.lines($$ SELECT pg_temp.advance(1) $$)
  || pg_temp.lines($$ SELECT payload FROM alkstore.claim('q', 'w', 2) $$),
  ARRAY['1', 'NULL', '151', 'NULL', '151', 'NULL', '2', '3'],
  '[claim-ready] when the clock steps back, jobs that had become due wait again');

SELECT pg_temp.fresh();
SELECT count(alkstore.enqueue('q', to_json(g), visibility_timeout_s => 60)) FROM generate_series(1, 150) g;
SELECT count(*) FROM alkstore.claim('q', 'w', 150);
SELECT pg_temp.advance(61);
SELECT is(
  pg_temp.lines($$ SELECT payload, attempt FROM alkstore.claim('q', 'v') $$)
  || pg_temp.lines($$ SELECT pg_temp.advance(-1) $$)
  || pg_temp.lines($$ SELECT payload FROM alkstore.claim('q', 'v', 9) $$)
  || pg_temp.lines($$ SELECT alkstore.ack('q', 2, 1), alkstore.heartbeat('q', 3, 1, 2) $$)
  || pg_temp.lines($$ SELECT pg_temp.advance(1) $$)
  || pg_temp.lines($$ SELECT payload, attempt FROM alkstore.claim('q', 'v', 2) $$)
  || pg_temp.lines($$ SELECT pg_temp.advance(2) $$)
  || pg_temp.lines($$ SELECT payload, attempt FROM alkstore.claim('q', 'v', 2) $$),
  ARRAY['1|2', 'NULL', 'true|true', 'NULL', '4|2', '5|2', 'NULL', '3|2', '6|2'],
  '[claim-ready] when the clock steps back, claims that had lapsed hold again');

-- [claim-order]
SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', to_json(p), priority => p) FROM unnest('{0,5,1,9}'::int[]) p;
SELECT is(pg_temp.lines($$ SELECT priority FROM alkstore.claim('q', 'w', 4) $$), '{9,5,1,0}',
  '[claim-order] the highest priority first');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', to_json(p), priority => p) FROM unnest('{0,-2147483648,2147483647,-1,-2147483647,2147483646,1}'::int[]) p;
SELECT is(
  pg_temp.lines($$ SELECT priority FROM alkstore.claim('q', 'w', 9) $$),
  '{2147483647,2147483646,1,0,-1,-2147483647,-2147483648}',
  '[claim-order] priorities rank over all of their range');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', to_json(p), run_at => to_timestamp(1000000000 - s), priority => p)
FROM (VALUES (0, 0), (0, 20), (0, 10), (1, 10), (0, 20), (1, 10), (0, 0)) job (p, s);
SELECT is(
  pg_temp.lines($$ SELECT job_id FROM alkstore.claim('q', 'w', 9) $$), '{4,6,2,5,3,1,7}',
  '[claim-order] then the earliest run_at, then the lowest id');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', to_json(p), run_at => to_timestamp(1000000000 - s), priority => p)
FROM (VALUES (0, 0), (0, 20), (0, 10), (1, 10), (0, 20), (1, 10), (0, 0)) job (p, s);
SELECT is(
  pg_temp.lines($$ SELECT c.job_id FROM generate_series(1, 9) i, alkstore.claim('q', i::text) c $$), '{4,6,2,5,3,1,7}',
  '[claim-order] the order is the same one job at a time');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '"lapsed"', priority => 1, visibility_timeout_s => 5);
SELECT alkstore.claim('q', 'w');
SELECT alkstore.enqueue('q', '"ready"', priority => 1), alkstore.enqueue('q', '"ready, last"', priority => -1);
SELECT alkstore.enqueue('q', '"delayed"', priority => 1, delay_s => 6), alkstore.enqueue('q', '"delayed, first"', priority => 2, delay_s => 6);
SELECT alkstore.enqueue('q', '"delayed, of low priority"', delay_s => 1);
SELECT pg_temp.advance(6);
SELECT alkstore.enqueue('q', '"new"', priority => 1);
SELECT is(
  pg_temp.lines($$ SELECT payload FROM alkstore.claim('q', 'w', 2) $$)
  || pg_temp.lines($$ SELECT payload FROM alkstore.claim('q', 'w', 9) $$),
  ARRAY['delayed, first', 'lapsed', 'ready', 'delayed', 'new', 'delayed, of low priority', 'ready, last'],
  '[claim-order] delayed jobs and lapsed claims rank among the others');

SELECT pg_temp.fresh();
SELECT count(alkstore.enqueue('q', '"lapsed"', priority => g % 5, visibility_timeout_s => 10)) FROM generate_series(1, 60) g;
SELECT count(*) FROM alkstore.claim('q', 'w', 60);
SELECT count(alkstore.enqueue('q', '"delayed"', priority => g % 7, delay_s => 20 + g % 3)) FROM generate_series(1, 150) g;
SELECT count(alkstore.enqueue('q', '"expired"', priority => 9, delay_s => 20, expires_s => 50)) FROM generate_series(1, 10) g;
SELECT pg_temp.advance(60);
SELECT count(alkstore.enqueue('q', '"ready"', priority => g % 6)) FROM generate_series(1, 50) g;
SELECT is(
  pg_temp.lines($$ SELECT count(*) FROM generate_series(0, 40) i, alkstore.claim('q', i::text, 7) c $$)
  || pg_temp.lines($$
    SELECT count(*), sum((worker_id = ((position - 1) / 7)::text)::int) FROM (
      SELECT *, row_number() OVER (ORDER BY priority DESC, run_at, job_id) AS position
      FROM alkstore.jobs WHERE expires_at IS NULL) j $$),
  ARRAY['260', '260|260'],
  '[claim-order] hundreds that became due at once rank among the others');

SELECT pg_temp.fresh();
SELECT count(alkstore.enqueue('q', '1', priority => g * 37 % 101, run_at => to_timestamp(1000000000 - g * 41 % 103))) FROM generate_series(1, 2000) g;
ANALYZE alkstore._job;
SELECT results_eq(
  $$ SELECT job_id FROM alkstore.claim('q', 'w', 6) $$,
  $$ SELECT job_id FROM alkstore.jobs ORDER BY priority DESC, run_at, job_id LIMIT 6 $$,
  '[claim-order] six of 2,000, the statistics being fresh');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue_batch('q', '[1,2,3]');
SELECT alkstore.claim('q', 'w', 2);
SELECT pg_temp.advance(10);
SELECT alkstore.retry('q', 1, 1, 'e', 0), alkstore.release('q', 2, 1);
SELECT is(
  pg_temp.lines($$ SELECT job_id, run_at FROM alkstore.claim('q', 'w', 3) $$),
  ARRAY['2|1000000000', '3|1000000000', '1|1000000010'],
  '[claim-order] a retried job ranks by its new run_at, a released one by its old');

-- What finished jobs leave in the index costs every claim a walk, until a vacuum may take it away.
SELECT pg_temp.fresh();
SELECT count(alkstore.enqueue('walk', '0')) FROM generate_series(1, 6000);
SELECT sum(alkstore.ack('walk', job_id, 1)::int) FROM alkstore.claim('walk', 'w', 6000);
SELECT alkstore.enqueue('walk', '1');
SELECT alkstore.claim('walk', 'w');
SELECT alkstore.enqueue('walk', '2'), alkstore.enqueue('walk', '3', priority => 9);
SELECT alkstore.enqueue('other', '4'), alkstore.enqueue('other', '5', priority => 10);
SELECT is(
  pg_temp.lines($$ SELECT c.payload FROM generate_series(1, 3) i, alkstore.claim('walk', i::text) c $$)
  || pg_temp.lines($$ SELECT c.payload FROM generate_series(1, 2) i, alkstore.claim('other', i::text) c $$),
  ARRAY['2', '3', '5', '4'],
  '[claim-order] a claim may go on from where a costly walk ended, and finds the rest all the same');
SELECT alkstore.enqueue('walk', '6');
SELECT alkstore.claim('walk', 'w');
SELECT pg_temp.advance(1);
SELECT alkstore.enqueue('walk', '7'), alkstore.enqueue('walk', '8', priority => 9);
SELECT is(
  pg_temp.lines($$ SELECT payload FROM alkstore.claim('walk', 'w', 2) $$), '{8,7}',
  '[claim-order] the next second begins at the head again');

-- [claim-n]
SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', max_attempts => 1), alkstore.enqueue('q', '2');
SELECT alkstore.claim('q', 'w');
SELECT pg_temp.advance(301);
SELECT is(
  ARRAY(SELECT pg_temp.effect(format('alkstore.claim(''q'', ''w'', %s)', n))
    FROM unnest('{0,-1,-2147483648,-9223372036854775808}'::text[]) n),
  ARRAY['NULL, untouched', 'NULL, untouched', 'NULL, untouched', 'NULL, untouched'],
  '[claim-n] n of 0 or less gives no rows and changes nothing');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue_batch('q', '[1,2,3]');
SELECT is(
  pg_temp.lines($$ SELECT payload FROM alkstore.claim('q', 'w', NULL) $$)
  || pg_temp.lines($$ SELECT count(*) FROM alkstore.claim('q', 'w') $$)
  || pg_temp.lines($$ SELECT payload FROM alkstore.claim('q', 'w', n => 5) $$),
  ARRAY['1', '1', '3'],
  '[claim-n] NULL and no n are one');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue_batch('q', '[1,2,3]');
SELECT alkstore.enqueue_batch('due', '[4,5,6]', delay_s => 1);
SELECT pg_temp.advance(1);
SELECT is(
  pg_temp.lines($$ SELECT payload FROM alkstore.claim('q', 'w', 2147483647) $$)
  || pg_temp.lines($$ SELECT payload FROM alkstore.claim('due', 'w', 9223372036854775807) $$),
  ARRAY['1', '2', '3', '4', '5', '6'],
  '[claim-n] n has 64 bits');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1');
SELECT is(
  pg_temp.answers('alkstore.claim(''q'', ''w'', %s)', '1.5', '''x''', '9223372036854775808'),
  ARRAY['42883', '22P02', '42883'],
  '[claim-n] what is no whole number is refused');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', delay_s => 1), alkstore.enqueue('other', '2');
SELECT is(
  pg_temp.lines($$ SELECT * FROM alkstore.claim('q', 'w', 9) $$) || pg_temp.lines($$ SELECT * FROM alkstore.claim('empty', 'w', 9) $$),
  '{}'::text[],
  '[claim-n] no row when nothing is ready');

-- [claim-stamps]
SELECT is(
  pg_temp.lines($$
    SELECT attname, format_type(atttypid, NULL) FROM pg_attribute
    WHERE attrelid = 'alkstore.claimed_job'::regclass AND attnum BETWEEN 1 AND 12 ORDER BY attnum $$),
  ARRAY['job_id|bigint', 'queue|text', 'payload|json', 'attempt|bigint', 'claim_expires_at|timestamp with time zone', 'priority|bigint',
    'max_attempts|bigint', 'worker_id|text', 'claimed_at|timestamp with time zone', 'run_at|timestamp with time zone',
    'expires_at|timestamp with time zone', 'created_at|timestamp with time zone'],
  '[claim-stamps] the columns of a claim');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '{"a": 1}', delay_s => 5, priority => 2, expires_s => 900, max_attempts => 4, visibility_timeout_s => 60);
SELECT pg_temp.advance(10);
SELECT is(
  pg_temp.lines($$ SELECT * FROM alkstore.claim('q', 'w') $$),
  ARRAY['1|q|{"a": 1}|1|1000000070|2|4|w|1000000010|1000000005|1000000900|1000000000'],
  '[claim-stamps] a claim returns the job as claimed');
SELECT is(
  pg_temp.lines('SELECT state, attempts, worker_id, claimed_at, claim_expires_at, released FROM alkstore.jobs'),
  ARRAY['processing|1|w|1000000010|1000000070|0'],
  '[claim-stamps] the job is processing, its attempt counted');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', visibility_timeout_s => 1), alkstore.enqueue('q', '2', visibility_timeout_s => 2147483647);
SELECT is(
  pg_temp.lines($$ SELECT payload, claim_expires_at FROM alkstore.claim('q', 'w', 2) $$),
  ARRAY['1|1000000001', '2|3147483647'],
  '[claim-stamps] each job runs out by its own visibility_timeout_s');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', max_attempts => 2147483647);
UPDATE alkstore._job SET attempts = 2147483646;
SELECT is(
  pg_temp.lines($$ SELECT attempt FROM alkstore.claim('q', 'w') $$)
  || pg_temp.lines($$ SELECT alkstore.release('q', 1, 2147483647) $$)
  || pg_temp.lines($$ SELECT attempt FROM alkstore.claim('q', 'w') $$)
  || pg_temp.lines($$ SELECT alkstore.ack('q', 1, 2147483648) $$),
  ARRAY['2147483647', 'true', '2147483648', 'true'],
  '[claim-stamps] attempt numbers go on past 2^31');

-- [reclaim]
SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', visibility_timeout_s => 60);
SELECT alkstore.claim('q', 'w');
SELECT pg_temp.advance(61);
SELECT is(
  pg_temp.lines('SELECT state, attempts, worker_id, claimed_at, claim_expires_at, last_error FROM alkstore.jobs'),
  ARRAY['processing|1|w|1000000000|1000000060|NULL'],
  '[reclaim] a lapse changes nothing');
SELECT is(
  pg_temp.lines($$ SELECT payload, attempt, worker_id, claimed_at, claim_expires_at, run_at FROM alkstore.claim('q', 'v') $$),
  ARRAY['1|2|v|1000000061|1000000121|1000000000'],
  '[reclaim] taking over a lapsed claim costs an attempt');
SELECT pg_temp.advance(61);
SELECT is(
  pg_temp.lines($$ SELECT payload, attempt, worker_id FROM alkstore.claim('q', 'v') $$),
  ARRAY['1|3|v'],
  '[reclaim] the same worker''s name makes no difference');

-- [exhausted]
SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', max_attempts => 1, priority => 9);
SELECT alkstore.claim('q', 'w');
SELECT pg_temp.advance(301);
SELECT alkstore.enqueue('q', '2');
SELECT is(
  pg_temp.lines($$ SELECT c.payload FROM generate_series(1, 3) i, alkstore.claim('q', i::text) c $$)
  || pg_temp.lines('SELECT payload, state, last_error FROM alkstore.jobs ORDER BY job_id'),
  ARRAY['2', '1|dead|max attempts exceeded', '2|processing|NULL'],
  '[exhausted] a spent job does not stand in the way');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '{"b":1, "a":1e2}', priority => 2, expires_s => 900, max_attempts => 1, visibility_timeout_s => 60,
  backoff_base_s => 7, dead_letter_retention_s => 8);
SELECT alkstore.claim('q', 'w');
SELECT pg_temp.advance(60);
SELECT is(
  pg_temp.lines($$ SELECT count(*) FROM alkstore.claim('q', 'v') $$) || pg_temp.lines('SELECT state FROM alkstore.jobs'),
  ARRAY['0', 'processing'],
  '[exhausted] not while the claim still holds');
SELECT pg_temp.advance(1);
SELECT is(
  pg_temp.lines($$ SELECT count(*) FROM alkstore.claim('q', 'v') $$) || pg_temp.lines('SELECT * FROM alkstore.jobs'),
  ARRAY['0', '1|q|dead|{"b":1, "a":1e2}|2|1|1|60|7|8|w|1000000000|1000000000|1000000900|1000000000|1000000060|NULL|'
    || 'max attempts exceeded|1000000061|0'],
  '[exhausted] a second after its claim_expires_at a claim buries it, though it hands out nothing');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', visibility_timeout_s => 1);
SELECT is(
  pg_temp.lines($$ SELECT attempt FROM alkstore.claim('q', 'w') $$) || pg_temp.lines($$ SELECT pg_temp.advance(2) $$)
  || pg_temp.lines($$ SELECT attempt FROM alkstore.claim('q', 'w') $$) || pg_temp.lines($$ SELECT pg_temp.advance(2) $$)
  || pg_temp.lines($$ SELECT attempt FROM alkstore.claim('q', 'w') $$) || pg_temp.lines($$ SELECT pg_temp.advance(2) $$)
  || pg_temp.lines($$ SELECT attempt FROM alkstore.claim('q', 'w') $$)
  || pg_temp.lines('SELECT state, attempts, last_error FROM alkstore.jobs'),
  ARRAY['1', 'NULL', '2', 'NULL', '3', 'NULL', 'dead|3|max attempts exceeded'],
  '[exhausted] no job runs max_attempts + 1 times');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', max_attempts => 2, visibility_timeout_s => 1);
SELECT is(
  pg_temp.lines($$ SELECT attempt FROM alkstore.claim('q', 'w') $$) || pg_temp.lines($$ SELECT alkstore.release('q', 1, 1) $$)
  || pg_temp.lines($$ SELECT attempt FROM alkstore.claim('q', 'w') $$) || pg_temp.lines($$ SELECT alkstore.release('q', 1, 2) $$)
  || pg_temp.lines($$ SELECT attempt FROM alkstore.claim('q', 'w') $$) || pg_temp.lines($$ SELECT pg_temp.advance(2) $$)
  || pg_temp.lines($$ SELECT attempt FROM alkstore.claim('q', 'w') $$) || pg_temp.lines($$ SELECT pg_temp.advance(2) $$)
  || pg_temp.lines($$ SELECT attempt FROM alkstore.claim('q', 'w') $$)
  || pg_temp.lines('SELECT state, attempts, released, last_error FROM alkstore.jobs'),
  ARRAY['1', 'true', '2', 'true', '3', 'NULL', '4', 'NULL', 'dead|4|2|max attempts exceeded'],
  '[exhausted] released claims do not count');

SELECT pg_temp.fresh();
SELECT count(alkstore.enqueue('q', to_json(g), max_attempts => 1)) FROM generate_series(1, 150) g;
SELECT count(*) FROM alkstore.claim('q', 'w', 150);
SELECT pg_temp.advance(301);
SELECT alkstore.enqueue('q', '151');
SELECT is(
  pg_temp.lines($$ SELECT payload FROM alkstore.claim('q', 'v') $$)
  || pg_temp.lines('SELECT state, last_error, count(*) FROM alkstore.jobs GROUP BY 1, 2 ORDER BY 1'),
  ARRAY['151', 'dead|max attempts exceeded|150', 'processing|NULL|1'],
  '[exhausted] one claim buries them all');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', max_attempts => 1, visibility_timeout_s => 10, expires_s => 5);
SELECT alkstore.claim('q', 'w');
SELECT pg_temp.advance(11);
SELECT is(
  pg_temp.lines($$ SELECT count(*) FROM alkstore.claim('q', 'v') $$) || pg_temp.lines('SELECT last_error FROM alkstore.jobs'),
  ARRAY['0', 'max attempts exceeded'],
  '[exhausted] a job that is past its expires_at too is buried by the claim');

-- [idle]
SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '"held"'), alkstore.enqueue('q', '"held, exhausted"', max_attempts => 1);
SELECT alkstore.claim('q', 'w', 2);
SELECT alkstore.enqueue('q', '"expired"', expires_s => 1), alkstore.enqueue('q', '"expired while delayed"', delay_s => 2, expires_s => 1);
SELECT count(alkstore.enqueue('q', '"the same"', delay_s => 2, expires_s => 1)) FROM generate_series(1, 150);
SELECT alkstore.enqueue('q', '"delayed"', delay_s => 9);
SELECT pg_temp.advance(2);
SELECT is(
  ARRAY(SELECT pg_temp.effect('alkstore.' || call) FROM unnest(ARRAY[
    $$ claim('q', 'w', 9) $$, $$ claim('q', 'w') $$, $$ claim('empty', 'w') $$, $$ claim('q', 'w', 0) $$]) call),
  ARRAY['NULL, untouched', 'NULL, untouched', 'NULL, untouched', 'NULL, untouched'],
  '[idle] an empty claim changes nothing');

-- [plans]
-- The tables that a call reads from end to end, and the indexes that it uses.
CREATE FUNCTION pg_temp.scanned(call text) RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
  scans CONSTANT text := $query$
    SELECT jsonb_object_agg(c.relname, pg_stat_get_xact_numscans(c.oid)) FROM pg_class c
    WHERE c.relnamespace = 'alkstore'::regnamespace AND c.relkind IN ('r', 'i') $query$;
  before jsonb;
  after jsonb;
BEGIN
  PERFORM pg_temp.advance(1);  -- within a second of the clock a claim may go on from where the last one ended
  EXECUTE scans INTO before;
  EXECUTE 'SELECT ' || call;
  EXECUTE scans INTO after;
  RETURN (SELECT string_agg(key, ' ' ORDER BY key) FROM jsonb_each(after) WHERE value <> before->key);
END $$;

SELECT pg_temp.fresh();
ANALYZE alkstore._job, alkstore._dead_job;
SELECT count(alkstore.enqueue('q', to_json(g), expires_s => 9999)) FROM generate_series(1, 1000) g;
SELECT count(*) FROM alkstore.claim('q', 'w', 1000);
SELECT count(alkstore.enqueue('q', to_json(g), priority => 9, delay_s => 60)) FROM generate_series(1, 1000) g;
SELECT count(alkstore.enqueue('q', to_json(g), expires_s => 9999)) FROM generate_series(1, 1000) g;
CREATE TEMPORARY TABLE claim_plans AS
SELECT pg_temp.scanned($$ alkstore.claim('q', 'w') $$) AS scanned UNION ALL SELECT pg_temp.scanned($$ alkstore.claim('q', 'w', 50) $$);
CREATE TEMPORARY TABLE by_id_plans AS
SELECT pg_temp.scanned('alkstore.' || call) AS scanned FROM unnest(ARRAY[
  $$ ack('q', 1, 1) $$, $$ ack_batch('q', '{2,3}', '{1,1}') $$, $$ ack_batch('q', '{4,5}') $$, $$ retry('q', 6, 1, 'e') $$,
  $$ release('q', 7, 1) $$, $$ fail('q', 8, 1) $$, $$ heartbeat('q', 9, 1) $$, $$ cancel('q', 10) $$]) call;
ANALYZE alkstore._job, alkstore._dead_job;
INSERT INTO claim_plans
SELECT pg_temp.scanned($$ alkstore.claim('q', 'w') $$) UNION ALL SELECT pg_temp.scanned($$ alkstore.claim('q', 'w', 50) $$);
INSERT INTO by_id_plans
SELECT pg_temp.scanned('alkstore.' || call) AS scanned FROM unnest(ARRAY[
  $$ ack('q', 11, 1) $$, $$ ack_batch('q', '{12,13}', '{1,1}') $$, $$ ack_batch('q', '{14,15}') $$, $$ retry('q', 16, 1, 'e') $$,
  $$ release('q', 17, 1) $$, $$ fail('q', 18, 1) $$, $$ heartbeat('q', 19, 1) $$, $$ cancel('q', 20) $$]) call;
SELECT is(
  pg_temp.lines('SELECT scanned, count(*) FROM claim_plans GROUP BY 1'), ARRAY['_job_due _job_pkey _job_ready|4'],
  '[plans] a claim reads the partial indexes, the statistics being those of empty tables or fresh');
SELECT is(
  pg_temp.lines('SELECT scanned, count(*) FROM by_id_plans GROUP BY 1'), ARRAY['_job_pkey|16'],
  '[plans] a call on a job reads the primary key');
SELECT is(
  pg_temp.scanned($$ alkstore.get_job('q', 21) $$), '_dead_job_pkey _job_pkey',
  '[plans] get_job reads the primary keys');

SELECT * FROM finish();
ROLLBACK;
