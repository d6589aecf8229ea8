-- renew_lock
BEGIN;
SELECT plan(7);
\ir ../clock.sql
\ir ../_effects.sql
\ir ../_answers.sql

SELECT pg_temp.fresh();
SELECT alkstore.acquire_lock('l', 'a', 60);
SELECT pg_temp.advance(60);
SELECT is(
  ARRAY[pg_temp.effect($$alkstore.renew_lock('l', 'a', 5)$$)] || pg_temp.lines('SELECT * FROM alkstore.locks'),
  '{"true, changed",l|a|1000000000|1000000065}',
  '[lock] renew: the owner renews up to the very second of the deadline, to ttl_s from now');

SELECT pg_temp.fresh();
SELECT alkstore.acquire_lock('l', 'a', 60);
SELECT pg_temp.advance(61);
SELECT is(
  pg_temp.effect($$alkstore.renew_lock('l', 'a', 60)$$), 'false, untouched',
  '[lock] renew: who has lapsed is refused even if nobody took the lock');

SELECT pg_temp.fresh();
SELECT alkstore.acquire_lock('l', 'a', 60);
SELECT pg_temp.advance(61);
SELECT alkstore.acquire_lock('l', 'b', 60);
SELECT is(
  ARRAY[pg_temp.effect($$alkstore.renew_lock('l', 'a', 60)$$)] || pg_temp.lines('SELECT * FROM alkstore.locks'),
  '{"false, untouched",l|b|1000000061|1000000121}',
  '[lock] renew: whose lock was taken is refused');

SELECT pg_temp.fresh();
SELECT alkstore.acquire_lock('l', 'a', 60);
SELECT is(
  ARRAY[
    pg_temp.effect($$alkstore.renew_lock('l', 'b', 60)$$), pg_temp.effect($$alkstore.renew_lock('l', 'A', 60)$$),
    pg_temp.effect($$alkstore.renew_lock('L', 'a', 60)$$), pg_temp.effect($$alkstore.renew_lock('none', 'a', 60)$$)],
  array_fill('false, untouched'::text, ARRAY[4]),
  '[idle] renew: another''s lock, or one that is free, is left alone');

SELECT pg_temp.fresh();
SELECT is(
  pg_temp.answers('alkstore.renew_lock(%L, ''a'', 60)', NULL, '', repeat('x', 256), repeat('é', 128), '__alkstore_', '__alkstore_x', repeat('é', 127)),
  array_fill('AK001 invalid_name: name'::text, ARRAY[6]) || '{false}',
  '[name] renew: a lock''s name that cannot exist, or is reserved, is refused');

SELECT pg_temp.fresh();
SELECT is(
  pg_temp.answers('alkstore.renew_lock(''l'', %L, 60)', NULL, '', repeat('x', 256), repeat('é', 128), '__alkstore_x'),
  array_fill('AK001 invalid_name: owner'::text, ARRAY[4]) || '{false}',
  '[name] renew: an owner''s name has 1 to 255 bytes, and may start with anything');

SELECT pg_temp.fresh();
SELECT alkstore.acquire_lock('l', 'a', 60);
SELECT is(
  pg_temp.answers('alkstore.renew_lock(''l'', ''a'', %s)', 'NULL', '0', '-1', '2147483648', '2147483647')
    || pg_temp.answers('alkstore.renew_lock(''none'', ''a'', %s)', '0')
    || pg_temp.lines('SELECT * FROM alkstore.locks'),
  array_fill('AK003 invalid_option: ttl_s'::text, ARRAY[4]) || '{true,AK003 invalid_option: ttl_s,l|a|1000000000|3147483647}'::text[],
  '[refusals] renew: ttl_s is required, from 1 to 2147483647');

SELECT * FROM finish();
ROLLBACK;
