-- schedule
BEGIN;
SELECT plan(21);
\ir ../clock.sql
\ir ../_effects.sql
\ir ../_answers.sql

SELECT pg_temp.fresh();
SELECT is(
  pg_temp.lines($$SELECT alkstore.schedule('s', '@every 10s', 'q', '{"b":1, "a":[1.0]}')$$)
    || pg_temp.lines('SELECT * FROM alkstore.schedules'),
  '{1000000010,"s|@every 10s|q|{\"b\":1, \"a\":[1.0]}|0|3|NULL|1000000010|NULL|1000000000"}',
  '[schedule] the first boundary is one interval from now');

SELECT pg_temp.fresh();
SELECT is(
  pg_temp.lines($$
    SELECT alkstore.schedule(spec, spec, 'q', '1')
    FROM unnest('{@every 1s,@every 90m,@every 36h,@every 7d,@every 2147483647s,@every 35791394m,@every 596523h,@every 24855d}'::text[]) spec$$),
  '{1000000001,1000005400,1000129600,1000604800,3147483647,3147483640,3147482800,3147472000}',
  '[schedule] an interval is a number of seconds, minutes, hours or days, at most 2147483647 seconds in all');

SELECT pg_temp.fresh();
SELECT is(
  ARRAY(SELECT left(answer, 5) FROM unnest(pg_temp.answers('alkstore.schedule(''s'', %L, ''q'', ''1'')', VARIADIC refused)) answer),
  array_fill('AK004'::text, ARRAY[cardinality(refused)]),
  '[refusals] schedule: any other spec is AK004')
FROM (SELECT ARRAY[
  NULL, '', '@every', '@every ', '@every 5', '@every s', '@every 0s', '@every 05s', '@every +5s', '@every -1m', '-1m', '1.5h', '@every 1.5h',
  '5 m', '@every 5 m', '@every  5m', '@every5m', ' @every 5m ', ' @every 5m', '@every 5m ', E'@every 5m\n', E'@every\t5m', '@EVERY 5m',
  '@every 5M', '@every 5w', '@every 5ms', '@every 1h30m', '0 2 * * *', '@daily', '@every 123456789012s', '@every 2147483648s',
  '@every 35791395m', '@every 596524h', '@every 24856d', '@every 9999999999d', '@every ٣s', '@every 99999999999999999999999999999d']) r (refused);

-- On PostgreSQL alone: SQLite cannot put a value into a message.
SELECT throws_ok(
  $$SELECT alkstore.schedule('s', '@da''ily', 'q', '1')$$, 'AK004', $$invalid_spec: '@da''ily' is not a schedule$$,
  '[refusals] schedule: the message quotes the spec');

SELECT pg_temp.fresh();
SELECT alkstore.schedule('s', '@every 10s', 'q', '1', priority => 7, max_attempts => 5, expires_s => 60);
SELECT pg_temp.advance(4);
SELECT is(
  pg_temp.lines($$SELECT alkstore.schedule('s', '@every 10s', 'r', '2', priority => -1, max_attempts => 6, expires_s => 61)$$)
    || pg_temp.lines('SELECT * FROM alkstore.schedules')
    || pg_temp.lines($$SELECT alkstore.schedule('s', '@every 10s', 'r', '2')$$)
    || pg_temp.lines('SELECT * FROM alkstore.schedules'),
  '{1000000010,s|@every 10s|r|2|-1|6|61|1000000010|NULL|1000000000,1000000010,s|@every 10s|r|2|0|3|NULL|1000000010|NULL|1000000000}',
  '[schedule] the same spec again keeps the next boundary and replaces queue, payload and options');

SELECT pg_temp.fresh();
SELECT alkstore.schedule('s', '@every 60s', 'q', '1');
SELECT pg_temp.advance(4);
SELECT is(
  pg_temp.lines($$SELECT alkstore.schedule('s', '@every 61s', 'q', '1')$$)
    || pg_temp.lines('SELECT spec, next_run_at, created_at FROM alkstore.schedules'),
  '{1000000065,@every 61s|1000000065|1000000000}',
  '[schedule] a changed spec starts anew');

SELECT pg_temp.fresh();
SELECT alkstore.schedule('s', '@every 60s', 'q', '1');
SELECT pg_temp.advance(4);
SELECT is(
  pg_temp.lines($$SELECT alkstore.schedule('s', '@every 1m', 'q', '1')$$),
  '{1000000064}',
  '[schedule] the same interval in another spelling is a changed spec');

SELECT pg_temp.fresh();
SELECT alkstore.schedule('s', '@every 10s', 'q', '1');
SELECT pg_temp.advance(35);
SELECT is(
  pg_temp.lines($$SELECT alkstore.schedule('s', '@every 10s', 'q', '2')$$)
    || pg_temp.lines('SELECT boundary FROM alkstore.fire_schedules()')
    || pg_temp.lines('SELECT job_id, payload FROM alkstore.jobs ORDER BY job_id'),
  '{1000000010,1000000010,1000000020,1000000030,1|2,2|2,3|2}',
  '[schedule] the same spec again keeps boundaries that were missed');

-- Registers at every start, each 20 s, and fires after each start.
SELECT pg_temp.fresh();
CREATE FUNCTION pg_temp.restart_and_fire() RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
  lines text[];
BEGIN
  PERFORM pg_temp.advance(20);
  PERFORM alkstore.schedule('s', '@every 60s', 'q', '1');
  lines := pg_temp.lines('SELECT boundary FROM alkstore.fire_schedules()');
  RETURN array_to_string(lines, ',');
END $$;
SELECT alkstore.schedule('s', '@every 60s', 'q', '1');
SELECT is(
  ARRAY(SELECT pg_temp.restart_and_fire() FROM generate_series(1, 7)),
  '{"","",1000000060,"","",1000000120,""}',
  '[schedule] registered again every 20 s, a schedule fires every minute');

SELECT pg_temp.fresh();
SELECT alkstore.schedule('s', '@every 60s', 'q', '1');
SELECT pg_temp.advance(20);
SELECT alkstore.unschedule('s');
SELECT is(
  pg_temp.lines($$SELECT alkstore.schedule('s', '@every 60s', 'q', '1')$$),
  '{1000000080}',
  '[schedule] unscheduled and scheduled, it starts anew');

SELECT pg_temp.fresh();
SELECT is(
  pg_temp.lines($$
    SELECT alkstore.schedule('s', '@every 1s', 'q', '1', NULL, NULL, NULL),
      alkstore.schedule('t', '@every 1s', 'q', '1', -2147483648, 1, 1),
      alkstore.schedule('u', '@every 1s', 'q', '1', 2147483647, 2147483647, 2147483647)$$)
    || pg_temp.lines('SELECT name, priority, max_attempts, expires_s FROM alkstore.schedules ORDER BY name'),
  '{1000000001|1000000001|1000000001,s|0|3|NULL,t|-2147483648|1|1,u|2147483647|2147483647|2147483647}',
  '[schedule] options are those of a job, NULL means the default');

SELECT pg_temp.fresh();
SELECT alkstore.schedule('s', '@every 1s', 'q', '1');
SELECT is(
  ARRAY(SELECT pg_temp.effect(format('alkstore.schedule(''s'', ''@every 1s'', ''q'', ''1'', %s)', bad)) FROM unnest(ARRAY[
    'priority => -2147483649', 'priority => 2147483648', 'max_attempts => 0', 'max_attempts => -1', 'max_attempts => 2147483648',
    'expires_s => 0', 'expires_s => -1', 'expires_s => 2147483648']) bad),
  array_fill('AK003, untouched'::text, ARRAY[8]),
  '[refusals] schedule: an option out of range is AK003');

SELECT pg_temp.fresh();
SELECT alkstore.schedule('s', '@every 1s', 'q', '1');
SELECT is(
  ARRAY(SELECT pg_temp.effect(format('alkstore.schedule(''s'', ''@every 1s'', ''q'', %L)', bad)) FROM unnest(ARRAY[NULL, '', '{', 'NaN', '1 2']) bad),
  array_fill('AK002, untouched'::text, ARRAY[5]),
  '[refusals] schedule: a payload that is not JSON is AK002');

SELECT pg_temp.fresh();
SELECT is(
  pg_temp.answers($$alkstore.schedule(%s)$$,
    $$'', 'x', '', '{', 0, 0$$, $$'s', 'x', '', '{', 0, 0$$, $$'s', 'x', 'q', '{', 0, 0$$, $$'s', '@every 9999999999d', 'q', '{', 0, 0$$,
    $$'s', '@every 1s', 'q', '{', 0, 0$$, $$'s', '@every 1s', 'q', '1', 0, 0$$),
  '{AK001 invalid_name: name,AK001 invalid_name: queue,AK004,AK004,AK002 invalid_payload: the,AK003 invalid_option: max_attempts}',
  '[refusals] schedule: names are judged first, then spec, payload and options');

SELECT pg_temp.fresh();
SELECT is(
  pg_temp.answers('alkstore.schedule(%L, ''@every 1s'', ''q'', ''1'')',
    NULL, '', repeat('x', 256), repeat('é', 128), '__alkstore_', '__alkstore_x')
    || pg_temp.answers('alkstore.schedule(''s'', ''@every 1s'', %L, ''1'')',
    NULL, '', repeat('x', 256), repeat('é', 128), '__alkstore_', '__alkstore_outbox_x'),
  array_fill('AK001 invalid_name: name'::text, ARRAY[6]) || array_fill('AK001 invalid_name: queue'::text, ARRAY[6]),
  '[name] schedule: its own name and its queue''s name are refused alike');

SELECT pg_temp.fresh();
CREATE TEMPORARY TABLE names AS
SELECT name FROM unnest(ARRAY[
  'a', 'A', 'a ', ' a', 'a/b', E'\u00e9', E'e\u0301', 'q"''%I$$;--', '%', ' ', E'\t', E'\n', '__ALKSTORE_x', '__alkstore',
  repeat('n', 255), repeat('n', 254) || 'm', repeat('é', 127)]) name;
SELECT count(alkstore.schedule(name, '@every 1s', name, to_json(name))) FROM names;
SELECT pg_temp.advance(1);
SELECT is(
  pg_temp.lines('SELECT count(*), bool_and(s.queue = s.name AND s.payload::text = to_json(n.name)::text) FROM names n JOIN alkstore.schedules s USING (name)')
    || pg_temp.lines('SELECT count(*), count(DISTINCT name), bool_and(name = queue) FROM alkstore.fire_schedules()')
    || pg_temp.lines($$SELECT count(*), bool_and(c.payload::text = to_json(n.name)::text) FROM names n, alkstore.claim(n.name, 'w', 2) c$$)
    || pg_temp.lines('SELECT bool_and(alkstore.unschedule(name)) FROM names')
    || pg_temp.lines('SELECT count(*) FROM alkstore.schedules'),
  '{17|true,17|17|true,17|true,true,0}',
  '[name] schedules and queues whose names differ in a byte are different');

SELECT pg_temp.fresh();
SELECT alkstore.schedule('s', '@every 1s', 'never used', '{"b":1, "a":[1.0,1e2], "a":18446744073709551617, "n":"\u0000"}');
SELECT pg_temp.advance(1);
CREATE TEMPORARY TABLE fired AS SELECT * FROM alkstore.fire_schedules();
SELECT is(
  pg_temp.lines('SELECT * FROM fired') || (SELECT j.payload::text FROM alkstore.jobs j),
  ARRAY['s|never used|1|1000000001', '{"b":1, "a":[1.0,1e2], "a":18446744073709551617, "n":"\u0000"}'],
  '[payload] schedule: the payload reaches the job byte for byte, in a queue that nothing has used');

SELECT pg_temp.fresh();
SELECT alkstore.schedule('s', '@every 10s', 'q', '1');
SAVEPOINT before;
SELECT alkstore.schedule('s', '@every 20s', 'r', '2');
SELECT alkstore.schedule('t', '@every 20s', 'r', '2');
SELECT alkstore.unschedule('s');
ROLLBACK TO before;
SELECT is(
  pg_temp.lines('SELECT name, spec, queue, payload, next_run_at FROM alkstore.schedules'),
  '{s|@every 10s|q|1|1000000010}',
  '[schedule] it belongs to the caller''s transaction');

SELECT pg_temp.fresh();
SELECT alkstore.schedule('s', '@every 10s', 'q', '1', 1, 2, 3);
SELECT alkstore.schedule('t', '@every 10s', 'q', '1');
SELECT pg_temp.advance(5);
SELECT is(
  ARRAY[
    pg_temp.effect($$alkstore.schedule('s', '@every 10s', 'q', '1', 1, 2, 3) - alkstore._now()$$),
    pg_temp.effect($$alkstore.schedule('t', '@every 10s', 'q', '1') - alkstore._now()$$),
    pg_temp.effect($$alkstore.schedule('t', '@every 10s', 'q', '1', 0, 3, NULL) - alkstore._now()$$)],
  array_fill('00:00:05, untouched'::text, ARRAY[3]),
  '[idle] schedule: to register what is registered writes nothing');

SELECT is(
  ARRAY(SELECT pg_temp.effect(format('alkstore.schedule(''t'', %s) - alkstore._now()', changed)) FROM unnest(ARRAY[
    $$'@every 10s', 'r', '1'$$, $$'@every 10s', 'r', '2'$$, $$'@every 10s', 'r', ' 2'$$, $$'@every 10s', 'r', ' 2', 1$$,
    $$'@every 10s', 'r', ' 2', 1, 2$$, $$'@every 10s', 'r', ' 2', 1, 2, 3$$, $$'@every 10s', 'r', ' 2', 1, 2$$]) changed),
  array_fill('00:00:05, changed'::text, ARRAY[7]),
  '[schedule] a difference in any one argument is taken over');

-- On PostgreSQL alone: SQLite has text only.
SELECT pg_temp.fresh();
SELECT is(
  pg_temp.lines($$
    SELECT alkstore.schedule('a', '@every 1s', 'q', '{"x":1}'::json), alkstore.schedule('b', '@every 1s', 'q', '{"x":1}'::jsonb),
      alkstore.schedule('c', '@every 1s', 'q', '{"x":1}'::text)$$)
    || pg_temp.lines('SELECT payload FROM alkstore.schedules ORDER BY name'),
  ARRAY['1000000001|1000000001|1000000001', '{"x":1}', '{"x": 1}', '{"x":1}'],
  '[payload] schedule: json and jsonb are taken as well as text');

SELECT * FROM finish();
ROLLBACK;
