-- fire_schedules
BEGIN;
SELECT plan(31);
\ir ../clock.sql
\ir ../_effects.sql

-- What a firing gives, its rows as lines.
CREATE FUNCTION pg_temp.fire(name text DEFAULT NULL) RETURNS text[]
LANGUAGE sql
AS $$ SELECT pg_temp.lines(format('SELECT * FROM alkstore.fire_schedules(%L)', fire.name)) $$;

SELECT pg_temp.fresh();
SELECT alkstore.schedule('s', '@every 10s', 'q', '{"a":1}');
SELECT pg_temp.advance(9);
SELECT is(
  pg_temp.fire() || pg_temp.lines('SELECT next_run_at FROM alkstore.schedules'),
  '{1000000010}',
  '[fire] nothing fires before its boundary');

SELECT pg_temp.advance(1);
SELECT is(
  pg_temp.fire()
    || pg_temp.lines('SELECT queue, state, payload, run_at, created_at FROM alkstore.jobs')
    || pg_temp.lines('SELECT next_run_at FROM alkstore.schedules'),
  ARRAY['s|q|1|1000000010', 'q|pending|{"a":1}|1000000010|1000000010', '1000000020'],
  '[fire] at its boundary a schedule fires one job and moves on');

SELECT is(
  pg_temp.fire() || pg_temp.fire('s'),
  '{}',
  '[fire] what has fired does not fire again within the same second');

SELECT pg_temp.fresh();
SELECT alkstore.schedule('s', '@every 10s', 'q', '1');
SELECT pg_temp.advance(65);
SELECT is(
  pg_temp.fire()
    || pg_temp.lines('SELECT job_id, run_at, created_at FROM alkstore.jobs ORDER BY job_id')
    || pg_temp.lines('SELECT next_run_at FROM alkstore.schedules')
    || pg_temp.lines($$SELECT run_at FROM alkstore.claim('q', 'w', 10)$$),
  '{s|q|1|1000000010,s|q|2|1000000020,s|q|3|1000000030,s|q|4|1000000040,s|q|5|1000000050,s|q|6|1000000060,
    1|1000000010|1000000065,2|1000000020|1000000065,3|1000000030|1000000065,4|1000000040|1000000065,5|1000000050|1000000065,6|1000000060|1000000065,
    1000000070,
    1000000010,1000000020,1000000030,1000000040,1000000050,1000000060}',
  '[fire] six missed boundaries give six jobs, oldest first');

SELECT pg_temp.fresh();
SELECT alkstore.schedule('s', '@every 1s', 'q', '1');
SELECT pg_temp.advance(200);
SELECT is(
  pg_temp.lines('SELECT count(*), min(boundary), max(boundary) FROM alkstore.fire_schedules()')
    || pg_temp.lines('SELECT next_run_at FROM alkstore.schedules')
    || pg_temp.lines('SELECT count(*), count(DISTINCT run_at), min(run_at), max(run_at), bool_and(run_at = to_timestamp(1000000000 + job_id)) FROM alkstore.jobs')
    || pg_temp.fire(),
  '{64|1000000001|1000000064,1000000201,64|64|1000000001|1000000064|true}',
  '[fire] of 200 missed boundaries the oldest 64 fire and the rest is skipped');

SELECT pg_temp.advance(3);
SELECT is(
  pg_temp.lines('SELECT boundary FROM alkstore.fire_schedules()'),
  '{1000000201,1000000202,1000000203}',
  '[fire] a skipped boundary never comes back');

SELECT pg_temp.fresh();
SELECT alkstore.schedule('s', '@every 10s', 'q', '1');
SELECT pg_temp.advance(649);
SELECT is(
  pg_temp.lines('SELECT count(*), max(boundary) FROM alkstore.fire_schedules()') || pg_temp.lines('SELECT next_run_at FROM alkstore.schedules'),
  '{64|1000000640,1000000650}',
  '[fire] 64 missed boundaries fire all');

SELECT pg_temp.fresh();
SELECT alkstore.schedule('s', '@every 10s', 'q', '1');
SELECT pg_temp.advance(650);
SELECT is(
  pg_temp.lines('SELECT count(*), max(boundary) FROM alkstore.fire_schedules()') || pg_temp.lines('SELECT next_run_at FROM alkstore.schedules'),
  '{64|1000000640,1000000660}',
  '[fire] of 65 missed boundaries the last is skipped');

SELECT pg_temp.fresh();
SELECT alkstore.schedule('s', '@every 10s', 'q', '1', priority => -7, max_attempts => 9, expires_s => 60);
SELECT alkstore.schedule('t', '@every 10s', 'q', '2');
SELECT pg_temp.advance(25);
SELECT count(*) FROM alkstore.fire_schedules();
SELECT is(
  pg_temp.lines($$
    SELECT job_id, priority, max_attempts, expires_at, visibility_timeout_s, backoff_base_s, dead_letter_retention_s
    FROM alkstore.jobs ORDER BY job_id$$),
  '{1|-7|9|1000000085|300|5|NULL,2|-7|9|1000000085|300|5|NULL,3|0|3|NULL|300|5|NULL,4|0|3|NULL|300|5|NULL}',
  '[fire] the schedule''s options go onto the job; it expires expires_s after the firing');

SELECT pg_temp.fresh();
SELECT alkstore.schedule('b', '@every 10s', 'q', '1');
SELECT alkstore.schedule('a', '@every 15s', 'r', '2');
SELECT alkstore.schedule('c', '@every 10s', 'r', '3');
SELECT alkstore.schedule('d', '@every 99s', 'r', '4');
SELECT pg_temp.advance(30);
SELECT is(
  pg_temp.fire() || pg_temp.lines('SELECT name, next_run_at FROM alkstore.schedules ORDER BY name'),
  '{b|q|1|1000000010,b|q|2|1000000020,b|q|3|1000000030,c|r|4|1000000010,c|r|5|1000000020,c|r|6|1000000030,a|r|7|1000000015,a|r|8|1000000030,
    a|1000000045,b|1000000040,c|1000000040,d|1000000099}',
  '[fire] all that are due fire, ordered by first boundary and name');

SELECT pg_temp.fresh();
SELECT alkstore.schedule('s', '@every 10s', 'q', '1');
SELECT alkstore.schedule('t', '@every 10s', 'q', '2');
SELECT alkstore.schedule('u', '@every 11s', 'q', '3');
SELECT pg_temp.advance(10);
SELECT is(
  pg_temp.fire('t') || pg_temp.lines('SELECT name, next_run_at FROM alkstore.schedules ORDER BY name') || pg_temp.fire(NULL),
  '{t|q|1|1000000010,s|1000000010,t|1000000020,u|1000000011,s|q|2|1000000010}',
  '[fire] by name only that one fires, by NULL all');

SELECT pg_temp.fresh();
SELECT alkstore.schedule('s', '@every 10s', 'q', '1');
SELECT alkstore.schedule('t', '@every 11s', 'q', '2');
SELECT pg_temp.advance(10);
SELECT is(
  pg_temp.fire('t') || pg_temp.fire('S') || pg_temp.fire('') || pg_temp.fire('__alkstore_x')
    || pg_temp.lines('SELECT name, next_run_at FROM alkstore.schedules ORDER BY name'),
  '{s|1000000010,t|1000000011}',
  '[fire] by a name that is not due, or that there is not, nothing fires');

SELECT pg_temp.fresh();
SELECT alkstore.schedule('s', '@every 10s', 'q', '1');
SELECT pg_temp.advance(25);
SAVEPOINT before;
SELECT count(*) FROM alkstore.fire_schedules();
ROLLBACK TO before;
SELECT is(
  pg_temp.lines('SELECT next_run_at FROM alkstore.schedules')
    || pg_temp.lines('SELECT job_id FROM alkstore.jobs')
    || pg_temp.lines('SELECT boundary FROM alkstore.fire_schedules()')
    || pg_temp.fire(),
  '{1000000010,1000000010,1000000020}',
  '[fire] an aborted firing leaves neither job nor advance, and the boundaries fire once after it');

SELECT pg_temp.fresh();
SELECT alkstore.schedule('s', '@every 1s', 'q', '1');
SELECT pg_temp.advance(1);
SELECT count(*) FROM alkstore.fire_schedules();
SELECT alkstore.claim('q', 'w');
SELECT is(alkstore.ack('q', 1, 1), true, '[fire] a fired job is claimed and acked like any other');
SELECT pg_temp.advance(1);
SELECT is(
  pg_temp.fire() || pg_temp.lines('SELECT job_id, state FROM alkstore.jobs'),
  '{s|q|2|1000000002,2|pending}',
  '[fire] when a fired job is gone the next boundary still comes');

-- The application forbids what it pleases.
CREATE FUNCTION pg_temp.forbid() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
  IF NEW.payload::text LIKE '%bad%' THEN
    RAISE EXCEPTION 'the payload is % bytes, at most 4 are allowed', octet_length(NEW.payload::text);
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER forbid BEFORE INSERT ON alkstore._job FOR EACH ROW EXECUTE FUNCTION pg_temp.forbid();

SELECT pg_temp.fresh();
SELECT alkstore.schedule('a', '@every 10s', 'q', '1');
SELECT alkstore.schedule('b', '@every 10s', 'q', '"bad"');
SELECT alkstore.schedule('c', '@every 10s', 'q', '3');
SELECT pg_temp.advance(10);
SELECT is(
  pg_temp.lines('SELECT name, boundary FROM alkstore.fire_schedules()')
    || pg_temp.lines('SELECT payload FROM alkstore.jobs ORDER BY job_id'),
  '{a|1000000010,c|1000000010,1,3}',
  '[fire] one schedule that cannot enqueue does not stop the others');
SELECT is(
  pg_temp.lines('SELECT name, next_run_at, last_error FROM alkstore.schedules ORDER BY name'),
  '{a|1000000020|NULL,"b|1000000010|the payload is 5 bytes, at most 4 are allowed",c|1000000020|NULL}',
  '[fire] its error stands in last_error and its boundary is kept');
SELECT is(
  pg_temp.effect('count(*) FROM alkstore.fire_schedules()'),
  '0, untouched',
  '[idle] fire: the same failure again writes nothing');

SELECT pg_temp.advance(10);
SELECT alkstore.schedule('b', '@every 10s', 'q', '"bed"');
SELECT is(
  pg_temp.lines('SELECT name, boundary FROM alkstore.fire_schedules()')
    || pg_temp.lines('SELECT name, next_run_at, last_error FROM alkstore.schedules ORDER BY name'),
  '{b|1000000010,b|1000000020,a|1000000020,c|1000000020,a|1000000030|NULL,b|1000000030|NULL,c|1000000030|NULL}',
  '[fire] tried again, a good firing fires what was missed and clears the error');

SELECT pg_temp.fresh();
SELECT alkstore.schedule(name, '@every 10s', 'q', CASE name WHEN 'c' THEN '"bad"' ELSE '1' END) FROM unnest('{a,b,c,d,e}'::text[]) name;
SELECT pg_temp.advance(35);
SELECT is(
  pg_temp.lines('SELECT name, count(*) FROM alkstore.fire_schedules() GROUP BY name ORDER BY name')
    || pg_temp.lines('SELECT name, next_run_at FROM alkstore.schedules ORDER BY name'),
  '{a|3,b|3,d|3,e|3,a|1000000040,b|1000000040,c|1000000010,d|1000000040,e|1000000040}',
  '[fire] when the third of five fails, the four others fire and the third keeps its boundaries');
DROP TRIGGER forbid ON alkstore._job;
SELECT is(
  pg_temp.lines('SELECT name, boundary FROM alkstore.fire_schedules()')
    || pg_temp.lines('SELECT run_at, count(*) FROM alkstore.jobs GROUP BY run_at ORDER BY run_at'),
  '{c|1000000010,c|1000000020,c|1000000030,1000000010|5,1000000020|5,1000000030|5}',
  '[fire] no boundary is lost and none is doubled');

-- The failure in the middle of a catch-up takes back what the schedule enqueued before it.
CREATE FUNCTION pg_temp.forbid_third() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
  IF NEW.run_at = to_timestamp(1000000030) THEN
    RAISE EXCEPTION 'not this one';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER forbid_third BEFORE INSERT ON alkstore._job FOR EACH ROW EXECUTE FUNCTION pg_temp.forbid_third();
SELECT pg_temp.fresh();
SELECT alkstore.schedule('s', '@every 10s', 'q', '1');
SELECT pg_temp.advance(45);
SELECT is(
  pg_temp.fire() || pg_temp.lines('SELECT job_id FROM alkstore.jobs') || pg_temp.lines('SELECT next_run_at, last_error FROM alkstore.schedules'),
  '{1000000010|not this one}',
  '[fire] a schedule''s missed boundaries fire all or none');
DROP TRIGGER forbid_third ON alkstore._job;

-- On PostgreSQL alone: what the caller cures by trying again is not the schedule's fault.
CREATE FUNCTION pg_temp.collide() RETURNS trigger
LANGUAGE plpgsql
AS $$ BEGIN RAISE EXCEPTION 'try again' USING ERRCODE = 'serialization_failure'; END $$;
CREATE TRIGGER collide BEFORE INSERT ON alkstore._job FOR EACH ROW EXECUTE FUNCTION pg_temp.collide();
SELECT throws_ok(
  'SELECT * FROM alkstore.fire_schedules()', '40001', 'try again',
  '[fire] a serialization failure is the caller''s');
SELECT is(
  pg_temp.lines('SELECT next_run_at, last_error FROM alkstore.schedules'), '{1000000010|not this one}',
  '[fire] a serialization failure does not stand in last_error');
DROP TRIGGER collide ON alkstore._job;

SELECT pg_temp.fresh();
SELECT alkstore.schedule('s', '@every 5m', 'q', '1');
SELECT pg_temp.advance(3600);
SELECT is(
  pg_temp.lines('SELECT count(*), max(boundary) FROM alkstore.fire_schedules()'),
  '{12|1000003600}',
  '[fire] a clock that jumps an hour ahead fires what lies between');
SELECT pg_temp.advance(-7200);
SELECT is(
  pg_temp.fire() || pg_temp.lines('SELECT next_run_at FROM alkstore.schedules'),
  '{1000003900}',
  '[fire] a clock that jumps two hours back fires nothing twice');
SELECT pg_temp.advance(7499);
SELECT is(pg_temp.fire(), '{}', '[fire] after a jump back nothing fires until the clock has caught up');
SELECT pg_temp.advance(1);
SELECT is(
  pg_temp.lines('SELECT boundary FROM alkstore.fire_schedules()') || pg_temp.lines('SELECT count(*), count(DISTINCT run_at) FROM alkstore.jobs'),
  '{1000003900,13|13}',
  '[fire] when the clock has caught up the next boundary fires, once');

SELECT pg_temp.fresh();
SELECT alkstore.schedule('s', '@every 2147483647s', 'q', '1');
SELECT pg_temp.advance(2 * 2147483647::bigint + 10);
SELECT is(
  pg_temp.lines('SELECT boundary FROM alkstore.fire_schedules()') || pg_temp.lines('SELECT next_run_at FROM alkstore.schedules'),
  '{3147483647,5294967294,7442450941}',
  '[fire] the longest interval fires too');

SELECT pg_temp.fresh();
SELECT alkstore.schedule('s', '@every 10s', 'q', '1');
SELECT pg_temp.advance(9);
SELECT is(
  ARRAY[
    pg_temp.effect('count(*) FROM alkstore.fire_schedules()'), pg_temp.effect('count(*) FROM alkstore.fire_schedules(''s'')'),
    pg_temp.effect('count(*) FROM alkstore.fire_schedules(''x'')')],
  array_fill('0, untouched'::text, ARRAY[3]),
  '[idle] fire: a firing with nothing due writes nothing');

SELECT pg_temp.fresh();
SELECT alkstore.schedule('s', '@every 10s', 'q', '1');
SELECT pg_temp.advance(10);
SELECT is(
  (SELECT array_agg(concat_ws('|', f.name, pg_typeof(f.name), f.queue, pg_typeof(f.queue), f.job_id, pg_typeof(f.job_id), extract(epoch FROM f.boundary)::bigint, pg_typeof(f.boundary)))
    FROM alkstore.fire_schedules() f),
  '{s|text|q|text|1|bigint|1000000010|timestamp with time zone}',
  '[fire] its rows are name, queue, job_id, boundary');

SELECT * FROM finish();
ROLLBACK;
