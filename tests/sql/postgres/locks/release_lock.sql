-- release_lock
BEGIN;
SELECT plan(5);
\ir ../clock.sql
\ir ../_effects.sql
\ir ../_answers.sql

SELECT pg_temp.fresh();
SELECT alkstore.acquire_lock('l', 'a', 60);
SELECT alkstore.acquire_lock('m', 'a', 60);
SELECT pg_temp.advance(60);
SELECT is(
  ARRAY[pg_temp.effect($$alkstore.release_lock('l', 'a')$$), pg_temp.effect($$alkstore.release_lock('l', 'a')$$)]
    || pg_temp.lines('SELECT name FROM alkstore.locks')
    || ARRAY[pg_temp.effect($$alkstore.acquire_lock('l', 'b', 60)$$)],
  '{"true, changed","false, untouched",m,"true, changed"}',
  '[lock] release: the owner gives the lock back, once, and another may take it at once');

SELECT pg_temp.fresh();
SELECT alkstore.acquire_lock('l', 'a', 60);
SELECT pg_temp.advance(61);
SELECT is(
  pg_temp.effect($$alkstore.release_lock('l', 'a')$$), 'false, untouched',
  '[lock] release: who has lapsed has nothing to release');

SELECT pg_temp.fresh();
SELECT alkstore.acquire_lock('l', 'a', 60);
SELECT is(
  ARRAY[
    pg_temp.effect($$alkstore.release_lock('l', 'b')$$), pg_temp.effect($$alkstore.release_lock('l', 'A')$$),
    pg_temp.effect($$alkstore.release_lock('L', 'a')$$), pg_temp.effect($$alkstore.release_lock('none', 'a')$$)],
  array_fill('false, untouched'::text, ARRAY[4]),
  '[idle] release: another''s lock, or one that is free, is left alone');

SELECT pg_temp.fresh();
SELECT is(
  pg_temp.answers('alkstore.release_lock(%L, ''a'')', NULL, '', repeat('x', 256), repeat('é', 128), '__alkstore_', '__alkstore_x', repeat('é', 127)),
  array_fill('AK001 invalid_name: name'::text, ARRAY[6]) || '{false}',
  '[name] release: a lock''s name that cannot exist, or is reserved, is refused');

SELECT pg_temp.fresh();
SELECT is(
  pg_temp.answers('alkstore.release_lock(''l'', %L)', NULL, '', repeat('x', 256), repeat('é', 128), '__alkstore_x'),
  array_fill('AK001 invalid_name: owner'::text, ARRAY[4]) || '{false}',
  '[name] release: an owner''s name has 1 to 255 bytes, and may start with anything');

SELECT * FROM finish();
ROLLBACK;
