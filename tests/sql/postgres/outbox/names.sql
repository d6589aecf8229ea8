-- The outbox calls
BEGIN;
SELECT plan(14);
\ir ../clock.sql
\ir ../_effects.sql

SELECT pg_temp.fresh();
SELECT is(
  pg_temp.lines($$ SELECT alkstore.outbox_enqueue('mail', '{"b":1, "a":[1.0]}') $$)
  || pg_temp.lines($$ SELECT job_id, queue, payload, state FROM alkstore.jobs $$),
  '{1,"1|__alkstore_outbox_mail|{\"b\":1, \"a\":[1.0]}|pending"}', '[outbox] a message is a job of a reserved queue');
SELECT is(
  pg_temp.lines($$ SELECT visibility_timeout_s, max_attempts, backoff_base_s, dead_letter_retention_s FROM alkstore.jobs $$),
  '{300|3|5|NULL}', '[outbox] a message has the default stamps');

SELECT pg_temp.fresh();
SELECT alkstore.outbox_enqueue('mail', '1', delay_s => 7, priority => -2, expires_s => 60, max_attempts => 9);
SELECT alkstore.outbox_enqueue('mail', '2', run_at => to_timestamp(1000000050));
SELECT is(
  pg_temp.lines($$ SELECT run_at, priority, expires_at, max_attempts FROM alkstore.jobs ORDER BY job_id $$),
  '{1000000007|-2|1000000060|9,1000000050|0|NULL|3}', '[outbox] delay_s, run_at, priority, expires_s and max_attempts are given per message');

SELECT pg_temp.fresh();
SELECT alkstore.outbox_enqueue('mail', '1'); SELECT alkstore.outbox_enqueue('post', '2'); SELECT alkstore.enqueue('mail', '3');
SELECT is(
  pg_temp.lines($$ SELECT job_id, queue, attempt, worker_id FROM alkstore.outbox_claim('mail', 'w', 9) $$)
  || pg_temp.lines($$ SELECT job_id, queue FROM alkstore.claim('mail', 'w', 9) $$),
  '{1|__alkstore_outbox_mail|1|w,3|mail}', '[outbox] outboxes and queues of one name share no job');

SELECT pg_temp.fresh();
SELECT count(alkstore.outbox_enqueue('mail', n::text)) FROM generate_series(1, 5) n;
SELECT alkstore.outbox_claim('mail', 'w', 5);
SELECT is(
  ARRAY[
    alkstore.ack('__alkstore_outbox_mail', 1, 1),
    alkstore.retry('__alkstore_outbox_mail', 2, 1, 'later', 30),
    alkstore.fail('__alkstore_outbox_mail', 3, 1, 'never'),
    alkstore.heartbeat('__alkstore_outbox_mail', 4, 1, 500),
    alkstore.release('__alkstore_outbox_mail', 5, 1)]::text[]
  || pg_temp.lines($$ SELECT job_id, state, retry_error, last_error, claim_expires_at, released FROM alkstore.jobs ORDER BY job_id $$),
  '{true,true,true,true,true,2|pending|later|NULL|NULL|0,3|dead|NULL|never|1000000300|0,4|processing|NULL|NULL|1000000500|0,5|pending|NULL|NULL|NULL|1}',
  '[outbox] a claim is settled by the queue''s calls, with the queue that the claim returned');
SELECT is(
  pg_temp.lines($$ SELECT job_id, state, last_error FROM alkstore.outbox_get_job('mail', 3) $$)
  || pg_temp.lines($$ SELECT job_id FROM alkstore.outbox_get_job('post', 3) $$)
  || pg_temp.lines($$ SELECT job_id FROM alkstore.outbox_get_job('mail', 1) $$),
  '{3|dead|never}', '[outbox] a dead message can be read, by its own outbox only');

SELECT is(
  ARRAY[
    pg_temp.effect($$ alkstore.enqueue('__alkstore_outbox_mail', '1') $$),
    pg_temp.effect($$ alkstore.claim('__alkstore_outbox_mail', 'w') $$),
    pg_temp.effect($$ alkstore.cancel('__alkstore_outbox_mail', 2) $$),
    pg_temp.effect($$ alkstore.sweep_expired('__alkstore_outbox_mail') $$)],
  '{"AK001, untouched","AK001, untouched","AK001, untouched","AK001, untouched"}',
  '[outbox] the queue behind an outbox is refused by enqueue, claim, cancel and sweep_expired');

SELECT is(
  ARRAY[
    pg_temp.effect($$ alkstore.outbox_cancel('post', 2) $$),
    pg_temp.effect($$ alkstore.outbox_cancel('mail', 2) $$),
    pg_temp.effect($$ alkstore.outbox_cancel('mail', 2) $$),
    pg_temp.effect($$ alkstore.outbox_cancel('mail', 3) $$)],
  '{"false, untouched","true, changed","false, untouched","false, untouched"}',
  '[outbox] a live message can be cancelled, once, by its own outbox; a dead one stays');

SELECT pg_temp.fresh();
SELECT alkstore.outbox_enqueue('mail', '1', expires_s => 5); SELECT alkstore.outbox_enqueue('post', '2', expires_s => 5);
SELECT pg_temp.advance(6);
SELECT is(
  pg_temp.lines($$ SELECT * FROM alkstore.outbox_sweep_expired('mail') $$)
  || pg_temp.lines($$ SELECT job_id, state, last_error FROM alkstore.jobs ORDER BY job_id $$),
  '{1|0,1|dead|expired,2|pending|NULL}', '[outbox] a sweep buries what is past its expiry, of its own outbox');

SELECT pg_temp.fresh();
SELECT is(
  ARRAY[
    pg_temp.effect($$ alkstore.outbox_enqueue(repeat('x', 237), '1') $$),
    pg_temp.effect($$ alkstore.outbox_enqueue(repeat('x', 238), '1') $$),
    pg_temp.effect($$ alkstore.outbox_enqueue(repeat('é', 118) || 'x', '1') $$),
    pg_temp.effect($$ alkstore.outbox_enqueue(repeat('é', 119), '1') $$)],
  '{"1, changed","AK001, untouched","2, changed","AK001, untouched"}', '[name] an outbox has at most 237 bytes');
SELECT is(
  ARRAY[
    pg_temp.effect($$ alkstore.outbox_enqueue('', '1') $$), pg_temp.effect($$ alkstore.outbox_enqueue('__alkstore_x', '1') $$),
    pg_temp.effect($$ alkstore.outbox_claim('', 'w') $$), pg_temp.effect($$ alkstore.outbox_claim('__alkstore_x', 'w') $$),
    pg_temp.effect($$ alkstore.outbox_cancel('', 1) $$), pg_temp.effect($$ alkstore.outbox_cancel('__alkstore_x', 1) $$),
    pg_temp.effect($$ alkstore.outbox_sweep_expired('') $$), pg_temp.effect($$ alkstore.outbox_sweep_expired('__alkstore_x') $$)],
  array_fill('AK001, untouched'::text, '{8}'), '[name] every outbox call refuses an empty and a reserved outbox');
-- The plan that the server settles for after a few calls of a session.
SET LOCAL plan_cache_mode = force_generic_plan;
SELECT is(
  ARRAY[pg_temp.effect($$ alkstore.outbox_cancel('', 99) $$), pg_temp.effect($$ alkstore.outbox_cancel('mail', 99) $$)],
  '{"AK001, untouched","false, untouched"}', '[refusals] a wrong outbox is refused also where there is no such message');
RESET plan_cache_mode;
SELECT is(
  ARRAY[
    pg_temp.effect($$ alkstore.outbox_enqueue('mail', 'no json') $$),
    pg_temp.effect($$ alkstore.outbox_enqueue('mail', '1', delay_s => -1) $$),
    pg_temp.effect($$ alkstore.outbox_claim('mail', '') $$)],
  '{"AK002, untouched","AK003, untouched","AK001, untouched"}', '[refusals] outbox: a wrong payload, option and worker are told apart');
SELECT is(
  pg_temp.effect($$ (SELECT count(*) FROM alkstore.outbox_claim('empty', 'w')) $$), '0, untouched',
  '[idle] an outbox with nothing ready gives no rows and writes nothing');

SELECT * FROM finish();
ROLLBACK;
