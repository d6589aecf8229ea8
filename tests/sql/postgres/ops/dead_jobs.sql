-- dead_jobs
BEGIN;
SELECT plan(2);
\ir ../clock.sql
\ir ../_effects.sql

SELECT is(
  pg_temp.lines($$
    SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
    WHERE attrelid = 'alkstore.dead_jobs'::regclass AND attnum > 0 ORDER BY attnum $$),
  pg_temp.lines($$
    SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
    WHERE attrelid = 'alkstore.jobs'::regclass AND attnum > 0 ORDER BY attnum $$),
  '[dead-move] the columns of dead_jobs are those of jobs');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('p', '1'); SELECT alkstore.claim('p', 'w'); SELECT alkstore.fail('p', 1, 1, 'boom');
SELECT alkstore.enqueue('q', '2', expires_s => 10); SELECT alkstore.enqueue('q', '3', max_attempts => 1);
SELECT alkstore.enqueue('q', '4'); SELECT alkstore.enqueue('q', '5', delay_s => 1000);
SELECT alkstore.claim('q', 'w', 2); SELECT pg_temp.advance(301);
SELECT alkstore.sweep_expired('q'); SELECT alkstore.claim('q', 'w');
SELECT is(
  pg_temp.lines($$ SELECT * FROM alkstore.dead_jobs ORDER BY job_id $$),
  ARRAY[
    '1|p|dead|1|0|1|3|300|5|NULL|w|1000000000|1000000000|NULL|1000000000|1000000300|NULL|boom|1000000000|0',
    '2|q|dead|2|0|1|3|300|5|NULL|w|1000000000|1000000000|1000000010|1000000000|1000000300|NULL|expired|1000000301|0',
    '3|q|dead|3|0|1|1|300|5|NULL|w|1000000000|1000000000|NULL|1000000000|1000000300|NULL|max attempts exceeded|1000000301|0'],
  '[dead-move] dead_jobs shows the dead of all queues, with last_error and died_at, and nobody else');

SELECT * FROM finish();
ROLLBACK;
