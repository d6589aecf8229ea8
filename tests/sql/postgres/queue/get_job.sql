-- get_job
BEGIN;
SELECT plan(9);
\ir ../clock.sql
\ir ../_effects.sql

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '{"b":1, "a":[1.0,1e2]}', delay_s => 5, priority => -7, expires_s => 1000, max_attempts => 4,
  visibility_timeout_s => 60, backoff_base_s => 9, dead_letter_retention_s => 77);
SELECT is(pg_temp.lines($$ SELECT * FROM alkstore.get_job(queue => 'q', job_id => 1) $$), ARRAY[
    '1|q|pending|{"b":1, "a":[1.0,1e2]}|-7|0|4|60|9|77|NULL|1000000000|1000000005|1000001000|NULL|NULL|NULL|NULL|NULL|0'],
  '[get-job] a pending job, enqueued in this transaction');
SELECT pg_temp.advance(10); SELECT alkstore.claim('q', 'w');
SELECT is(pg_temp.lines($$ SELECT * FROM alkstore.get_job('q', 1) $$), ARRAY[
    '1|q|processing|{"b":1, "a":[1.0,1e2]}|-7|1|4|60|9|77|w|1000000000|1000000005|1000001000|1000000010|1000000070|NULL|NULL|NULL|0'],
  '[get-job] a processing job');
SELECT pg_temp.advance(61);
SELECT is(pg_temp.lines($$ SELECT state, worker_id, attempts FROM alkstore.get_job('q', 1) $$), '{processing|w|1}',
  '[get-job] a lapsed job is processing until somebody claims it');
SELECT alkstore.claim('q', 'v'); SELECT alkstore.fail('q', 1, 2, 'boom');
SELECT is(pg_temp.lines($$ SELECT * FROM alkstore.get_job('q', 1) $$), ARRAY[
    '1|q|dead|{"b":1, "a":[1.0,1e2]}|-7|2|4|60|9|77|v|1000000000|1000000005|1000001000|1000000071|1000000131|NULL|boom|1000000071|0'],
  '[get-job] a dead job');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue_batch('q', '[1,2,3]'); SELECT alkstore.claim('q', 'w');
SELECT alkstore.ack('q', 1, 1); SELECT alkstore.cancel('q', 2);
SELECT is(
  pg_temp.lines($$ SELECT i, (SELECT count(*) FROM alkstore.get_job('q', i)) FROM unnest('{1,2,3,99,NULL}'::bigint[]) i $$)
    || pg_temp.lines($$ SELECT * FROM alkstore.get_job('other', 3) $$),
  '{1|0,2|0,3|1,99|0,NULL|0}', '[get-job] no row for an acked, a cancelled, an unknown, a NULL and another queue''s job_id');

SELECT is(
  pg_temp.lines($$
    SELECT left(name, 3), (SELECT count(*) FROM alkstore.get_job(name, 3))
    FROM unnest(ARRAY[NULL, '', repeat('x', 256), '__alkstore_q', 'q']) name $$),
  '{NULL|0,|0,xxx|0,__a|0,q|1}', '[get-job] a name that cannot exist has no jobs, and is not refused');

SELECT is(
  ARRAY[
    pg_temp.effect($$ count(*) FROM alkstore.get_job('q', 3) $$),
    pg_temp.effect($$ count(*) FROM alkstore.get_job('q', 99) $$)],
  '{"1, untouched","0, untouched"}', '[get-job] a read writes nothing');

SELECT is(
  pg_temp.lines($$
    SELECT proname FROM pg_proc WHERE pronamespace = 'alkstore'::regnamespace
      AND proname ~ 'redrive|revive|requeue|replay|resurrect|restore' $$),
  '{}', '[no-redrive] there is no call that brings back a dead job');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '{"b":1, "a":[1.0,1e2]}', priority => 7); SELECT alkstore.claim('q', 'w'); SELECT alkstore.fail('q', 1, 1, 'boom');
SELECT alkstore.enqueue(d.queue, d.payload, priority => d.priority) FROM alkstore.get_job('q', 1) d;
SELECT is(
  pg_temp.lines($$ SELECT job_id, state, payload, priority, attempts, last_error FROM alkstore.jobs ORDER BY job_id $$),
  ARRAY['1|dead|{"b":1, "a":[1.0,1e2]}|7|1|boom', '2|pending|{"b":1, "a":[1.0,1e2]}|7|0|NULL'],
  '[no-redrive] the recipe: a dead job is read and its payload enqueued again, as another job');

SELECT * FROM finish();
ROLLBACK;
