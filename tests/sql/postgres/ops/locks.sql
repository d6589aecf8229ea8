-- the view locks
BEGIN;
SELECT plan(2);
\ir ../clock.sql
\ir ../_effects.sql

SELECT pg_temp.fresh();
SELECT alkstore.acquire_lock('l', 'a', 60);
SELECT is(
  pg_temp.lines('SELECT json_object_keys(row_to_json(l)) FROM alkstore.locks l'),
  '{name,owner,acquired_at,expires_at}',
  '[lock] locks: its columns, in order');

SELECT pg_temp.fresh();
SELECT alkstore.acquire_lock('short', 'a', 10), alkstore.acquire_lock('long', 'b', 60), alkstore.acquire_lock('released', 'c', 60),
  alkstore.lead_schedules('d', 10);
SELECT alkstore.release_lock('released', 'c');
SELECT pg_temp.advance(10);
CREATE TEMPORARY TABLE at_deadline AS SELECT * FROM alkstore.locks;
SELECT pg_temp.advance(1);
SELECT is(
  pg_temp.lines('SELECT * FROM at_deadline ORDER BY name') || pg_temp.lines('SELECT * FROM alkstore.locks'),
  '{__alkstore_scheduler|d|1000000000|1000000010,long|b|1000000000|1000000060,short|a|1000000000|1000000010,long|b|1000000000|1000000060}',
  '[lock] locks: those held now, the leadership among them');

SELECT * FROM finish();
ROLLBACK;
