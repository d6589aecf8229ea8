-- unschedule
BEGIN;
SELECT plan(6);
\ir ../clock.sql
\ir ../_effects.sql
\ir ../_answers.sql

SELECT pg_temp.fresh();
SELECT alkstore.schedule('s', '@every 10s', 'q', '1');
SELECT alkstore.schedule('t', '@every 10s', 'q', '2');
SELECT pg_temp.advance(25);
SELECT count(*) FROM alkstore.fire_schedules();
SELECT pg_temp.advance(10);
SELECT is(
  pg_temp.effect($$alkstore.unschedule('s')$$)
    || pg_temp.lines('SELECT name FROM alkstore.schedules')
    || pg_temp.lines('SELECT name, boundary FROM alkstore.fire_schedules()')
    || pg_temp.lines('SELECT job_id, payload FROM alkstore.jobs ORDER BY job_id'),
  '{"true, changed",t,t|1000000030,1|1,2|1,3|2,4|2,5|2}',
  '[schedule] unschedule: no more boundaries, not even a missed one; jobs that fired stay');

SELECT pg_temp.fresh();
SELECT alkstore.schedule('s', '@every 10s', 'q', '1');
SELECT is(
  ARRAY[pg_temp.effect($$alkstore.unschedule('s')$$), pg_temp.effect($$alkstore.unschedule('s')$$)],
  '{"true, changed","false, untouched"}',
  '[schedule] unschedule: true once');

SELECT pg_temp.fresh();
SELECT alkstore.schedule('s', '@every 10s', 'q', '1');
SELECT is(
  ARRAY(SELECT pg_temp.effect(format('alkstore.unschedule(%L)', n)) FROM unnest('{S,"s ",ss,q}'::text[]) n),
  array_fill('false, untouched'::text, ARRAY[4]),
  '[idle] unschedule: a name that has no schedule writes nothing');

SELECT pg_temp.fresh();
SELECT is(
  pg_temp.answers('alkstore.unschedule(%L)', NULL, '', repeat('x', 256), repeat('é', 128), repeat('é', 127)),
  ARRAY['AK001 invalid_name: name', 'AK001 invalid_name: name', 'AK001 invalid_name: name', 'AK001 invalid_name: name', 'false'],
  '[refusals] unschedule: a name that cannot exist is AK001');

SELECT pg_temp.fresh();
SELECT is(
  pg_temp.answers('alkstore.unschedule(%L)', '__alkstore_', '__alkstore_scheduler', '__alkstore'),
  ARRAY['AK001 invalid_name: name', 'AK001 invalid_name: name', 'false'],
  '[name] unschedule: a reserved name is refused');

SELECT pg_temp.fresh();
SELECT alkstore.schedule(name, '@every 10s', 'q', '1') FROM unnest('{a,b,c}'::text[]) name;
SELECT is(
  pg_temp.lines($$SELECT name FROM unnest('{a,x,c}'::text[]) name WHERE alkstore.unschedule(name)$$)
    || pg_temp.lines('SELECT name FROM alkstore.schedules'),
  '{a,c,b}',
  '[schedule] unschedule: many at once are judged one by one');

SELECT * FROM finish();
ROLLBACK;
