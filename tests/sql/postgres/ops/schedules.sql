-- the view schedules
BEGIN;
SELECT plan(2);
\ir ../clock.sql
\ir ../_effects.sql

SELECT pg_temp.fresh();
SELECT alkstore.schedule('s', '@every 90m', 'q', '{"a":1}', priority => 7, max_attempts => 5, expires_s => 60);
SELECT is(
  pg_temp.lines('SELECT json_object_keys(row_to_json(s)) FROM alkstore.schedules s'),
  '{name,spec,queue,payload,priority,max_attempts,expires_s,next_run_at,last_error,created_at}',
  '[schedule] schedules: its columns, in order');

SELECT pg_temp.advance(3);
SELECT alkstore.schedule('t', '@every 1s', 'r', '2');
SELECT is(
  pg_temp.lines('SELECT * FROM alkstore.schedules ORDER BY name'),
  ARRAY['s|@every 90m|q|{"a":1}|7|5|60|1000005400|NULL|1000000000', 't|@every 1s|r|2|0|3|NULL|1000000004|NULL|1000000003'],
  '[schedule] schedules: every schedule with its next boundary');

SELECT * FROM finish();
ROLLBACK;
