-- acquire_lock
BEGIN;
SELECT plan(11);
\ir ../clock.sql
\ir ../_effects.sql
\ir ../_answers.sql

SELECT pg_temp.fresh();
SELECT is(
  ARRAY[pg_temp.effect($$alkstore.acquire_lock('l', 'a', 60)$$)] || pg_temp.lines('SELECT * FROM alkstore.locks'),
  '{"true, changed",l|a|1000000000|1000000060}',
  '[lock] acquire: a free lock is taken');

SELECT pg_temp.fresh();
SELECT alkstore.acquire_lock('l', 'a', 60);
SELECT pg_temp.advance(60);
SELECT is(
  ARRAY[pg_temp.effect($$alkstore.acquire_lock('l', 'b', 60)$$)] || pg_temp.lines('SELECT * FROM alkstore.locks'),
  '{"false, untouched",l|a|1000000000|1000000060}',
  '[lock] acquire: a held lock is refused up to the very second of its deadline');

SELECT pg_temp.fresh();
SELECT alkstore.acquire_lock('l', 'a', 60);
SELECT pg_temp.advance(61);
SELECT is(
  ARRAY[pg_temp.effect($$alkstore.acquire_lock('l', 'b', 5)$$)] || pg_temp.lines('SELECT * FROM alkstore.locks'),
  '{"true, changed",l|b|1000000061|1000000066}',
  '[lock] acquire: a lapsed lock is taken by anyone');

SELECT pg_temp.fresh();
SELECT alkstore.acquire_lock('l', 'a', 60);
SELECT pg_temp.advance(61);
SELECT is(
  ARRAY[pg_temp.effect($$alkstore.acquire_lock('l', 'a', 5)$$)] || pg_temp.lines('SELECT * FROM alkstore.locks'),
  '{"true, changed",l|a|1000000061|1000000066}',
  '[lock] acquire: the owner of a lapsed lock takes it anew');

SELECT pg_temp.fresh();
SELECT alkstore.acquire_lock('l', 'a', 60);
SELECT pg_temp.advance(60);
SELECT is(
  ARRAY[pg_temp.effect($$alkstore.acquire_lock('l', 'a', 5)$$)] || pg_temp.lines('SELECT * FROM alkstore.locks'),
  '{"true, changed",l|a|1000000000|1000000065}',
  '[lock] acquire: the owner renews, to ttl_s from now and not added');

SELECT pg_temp.fresh();
SELECT is(
  ARRAY[
    pg_temp.effect($$alkstore.acquire_lock('l', 'a', 60)$$), pg_temp.effect($$alkstore.acquire_lock('L', 'b', 60)$$),
    pg_temp.effect($$alkstore.acquire_lock('l ', 'c', 60)$$), pg_temp.effect($$alkstore.acquire_lock('l', 'A', 60)$$)]
    || pg_temp.lines('SELECT name, owner FROM alkstore.locks ORDER BY name'),
  '{"true, changed","true, changed","true, changed","false, untouched",L|b,l|a,"l |c"}',
  '[lock] acquire: names and owners that differ in a byte are different');

SELECT pg_temp.fresh();
SELECT is(
  pg_temp.answers('alkstore.acquire_lock(%L, ''a'', 60)', NULL, '', repeat('x', 256), repeat('é', 128), '__alkstore_', '__alkstore_x', repeat('é', 127)),
  array_fill('AK001 invalid_name: name'::text, ARRAY[6]) || '{true}',
  '[name] acquire: a lock''s name that cannot exist, or is reserved, is refused');

SELECT pg_temp.fresh();
SELECT is(
  pg_temp.answers('alkstore.acquire_lock(''l'', %L, 60)', NULL, '', repeat('x', 256), repeat('é', 128), '__alkstore_x'),
  array_fill('AK001 invalid_name: owner'::text, ARRAY[4]) || '{true}',
  '[name] acquire: an owner''s name has 1 to 255 bytes, and may start with anything');

SELECT pg_temp.fresh();
SELECT alkstore.acquire_lock('l', 'a', 60);
SELECT is(
  pg_temp.answers('alkstore.acquire_lock(''l'', ''a'', %s)', 'NULL', '0', '-1', '2147483648')
    || pg_temp.answers('alkstore.acquire_lock(''l'', ''b'', %s)', '0')
    || pg_temp.lines('SELECT * FROM alkstore.locks'),
  array_fill('AK003 invalid_option: ttl_s'::text, ARRAY[5]) || '{l|a|1000000000|1000000060}'::text[],
  '[refusals] acquire: ttl_s is required, from 1 to 2147483647');

SELECT pg_temp.fresh();
SELECT is(
  pg_temp.answers('alkstore.acquire_lock(%s)', $$'', '', 0$$, $$'l', '', 0$$, $$'l', 'a', 0$$, $$'l', 'a', 2147483647$$)
    || pg_temp.lines('SELECT * FROM alkstore.locks'),
  '{AK001 invalid_name: name,AK001 invalid_name: owner,AK003 invalid_option: ttl_s,true,l|a|1000000000|3147483647}',
  '[refusals] acquire: name, owner and ttl_s are judged in this order');

SELECT pg_temp.fresh();
SAVEPOINT before;
SELECT alkstore.acquire_lock('l', 'a', 60);
ROLLBACK TO before;
SELECT is(
  pg_temp.answers('alkstore.acquire_lock(''l'', %L, 60)', 'b'),
  '{true}',
  '[lock] acquire: it belongs to the caller''s transaction');

SELECT * FROM finish();
ROLLBACK;
