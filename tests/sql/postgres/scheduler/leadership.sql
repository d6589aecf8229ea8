-- lead_schedules, resign_schedules
BEGIN;
SELECT plan(11);
\ir ../clock.sql
\ir ../_effects.sql
\ir ../_answers.sql

SELECT pg_temp.fresh();
SELECT is(
  ARRAY[pg_temp.effect($$alkstore.lead_schedules('a', 30)$$)]
    || pg_temp.lines('SELECT * FROM alkstore.locks'),
  '{"true, changed",__alkstore_scheduler|a|1000000000|1000000030}',
  '[leader] who asks first leads, under the reserved name');

SELECT pg_temp.fresh();
SELECT alkstore.lead_schedules('a', 30);
SELECT pg_temp.advance(30);
SELECT is(
  ARRAY[pg_temp.effect($$alkstore.lead_schedules('b', 30)$$)]
    || pg_temp.lines('SELECT owner, acquired_at, expires_at FROM alkstore.locks'),
  '{"false, untouched",a|1000000000|1000000030}',
  '[leader] nobody else leads up to the very second of the deadline');

SELECT pg_temp.fresh();
SELECT alkstore.lead_schedules('a', 30);
SELECT pg_temp.advance(31);
SELECT is(
  ARRAY[pg_temp.effect($$alkstore.lead_schedules('b', 20)$$), pg_temp.effect($$alkstore.lead_schedules('a', 30)$$)]
    || pg_temp.lines('SELECT owner, acquired_at, expires_at FROM alkstore.locks'),
  '{"true, changed","false, untouched",b|1000000031|1000000051}',
  '[leader] when the leader has lapsed, who asks first leads');

SELECT pg_temp.fresh();
SELECT alkstore.lead_schedules('a', 30);
SELECT pg_temp.advance(10);
SELECT is(
  ARRAY[pg_temp.effect($$alkstore.lead_schedules('a', 5)$$)]
    || pg_temp.lines('SELECT owner, acquired_at, expires_at FROM alkstore.locks'),
  '{"true, changed",a|1000000000|1000000015}',
  '[leader] the leader renews by asking again');

SELECT pg_temp.fresh();
SELECT alkstore.lead_schedules('a', 30);
SELECT pg_temp.advance(31);
SELECT is(
  ARRAY[pg_temp.effect($$alkstore.lead_schedules('a', 30)$$)]
    || pg_temp.lines('SELECT owner, acquired_at, expires_at FROM alkstore.locks'),
  '{"true, changed",a|1000000031|1000000061}',
  '[leader] a lapsed leader may lead anew');

SELECT pg_temp.fresh();
SELECT alkstore.lead_schedules('a', 30);
SELECT is(
  ARRAY[
    pg_temp.effect($$alkstore.resign_schedules('b')$$), pg_temp.effect($$alkstore.resign_schedules('a')$$),
    pg_temp.effect($$alkstore.resign_schedules('a')$$), pg_temp.effect($$alkstore.lead_schedules('b', 30)$$)],
  '{"false, untouched","true, changed","false, untouched","true, changed"}',
  '[leader] the leader resigns, once, and another may lead at once');

SELECT pg_temp.fresh();
SELECT alkstore.lead_schedules('a', 30);
SELECT pg_temp.advance(31);
SELECT is(
  pg_temp.effect($$alkstore.resign_schedules('a')$$),
  'false, untouched',
  '[leader] who has lapsed has nothing to resign');

SELECT pg_temp.fresh();
SELECT is(
  pg_temp.answers('alkstore.lead_schedules(%L, 30)', NULL, '', repeat('x', 256), repeat('é', 128), '__alkstore_x')
    || pg_temp.answers('alkstore.resign_schedules(%L)', NULL, '', repeat('x', 256), repeat('é', 128), '__alkstore_x'),
  array_fill('AK001 invalid_name: owner'::text, ARRAY[4]) || '{true}'
    || array_fill('AK001 invalid_name: owner'::text, ARRAY[4]) || '{true}',
  '[name] lead and resign: an owner''s name has 1 to 255 bytes, and may start with anything');

SELECT pg_temp.fresh();
SELECT alkstore.lead_schedules('b', 30);
SELECT is(
  pg_temp.answers('alkstore.lead_schedules(''a'', %s)', 'NULL', '0', '-1', '2147483648')
    || pg_temp.lines('SELECT owner, expires_at FROM alkstore.locks'),
  array_fill('AK003 invalid_option: ttl_s'::text, ARRAY[4]) || '{b|1000000030}'::text[],
  '[refusals] lead: ttl_s is required, from 1 to 2147483647');

SELECT pg_temp.fresh();
SELECT is(
  pg_temp.answers('alkstore.%s',
    $$acquire_lock('__alkstore_scheduler', 'a', 30)$$, $$renew_lock('__alkstore_scheduler', 'a', 30)$$,
    $$release_lock('__alkstore_scheduler', 'a')$$, $$lead_schedules('a', 2147483647)$$),
  array_fill('AK001 invalid_name: name'::text, ARRAY[3]) || '{true}',
  '[leader] the calls on locks do not reach the leadership');

-- Leadership saves work; the row locks are what keeps a boundary from firing twice.
SELECT pg_temp.fresh();
SELECT alkstore.schedule('s', '@every 10s', 'q', '1');
SELECT alkstore.lead_schedules('a', 30);
SELECT pg_temp.advance(10);
SELECT is(
  pg_temp.lines('SELECT * FROM alkstore.fire_schedules()'),
  '{s|q|1|1000000010}',
  '[leader] firing does not ask who leads');

SELECT * FROM finish();
ROLLBACK;
