-- sweep_expired
BEGIN;
SELECT plan(13);
\ir ../clock.sql
\ir ../_effects.sql

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', expires_s => 100); SELECT alkstore.enqueue('q', '2', expires_s => 100);
SELECT alkstore.enqueue('q', '3', expires_s => 101); SELECT alkstore.enqueue('q', '4');
SELECT alkstore.claim('q', 'w'); SELECT pg_temp.advance(100);
SELECT is(pg_temp.effect($$ alkstore.sweep_expired('q') $$), '(0,0), untouched',
  '[sweep] at its very expires_at a job is not swept');
SELECT pg_temp.advance(1);
SELECT is(
  pg_temp.lines($$ SELECT * FROM alkstore.sweep_expired(queue => 'q') $$)
    || pg_temp.lines($$ SELECT * FROM alkstore.jobs ORDER BY job_id $$),
  ARRAY['2|0',
    '1|q|dead|1|0|1|3|300|5|NULL|w|1000000000|1000000000|1000000100|1000000000|1000000300|NULL|expired|1000000101|0',
    '2|q|dead|2|0|0|3|300|5|NULL|NULL|1000000000|1000000000|1000000100|NULL|NULL|NULL|expired|1000000101|0',
    '3|q|pending|3|0|0|3|300|5|NULL|NULL|1000000000|1000000000|1000000101|NULL|NULL|NULL|NULL|NULL|0',
    '4|q|pending|4|0|0|3|300|5|NULL|NULL|1000000000|1000000000|NULL|NULL|NULL|NULL|NULL|NULL|0'],
  '[sweep] every job past expires_at, pending and processing, is dead');
SELECT is(
  ARRAY[
    pg_temp.effect($$ alkstore.ack('q', 1, 1) $$),
    pg_temp.effect($$ alkstore.heartbeat('q', 1, 1) $$)],
  '{"false, untouched","false, untouched"}', '[sweep] a holder loses a job that is swept');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', delay_s => 1000, expires_s => 10); SELECT alkstore.enqueue('q', '2', expires_s => 10, max_attempts => 1);
SELECT alkstore.enqueue('q', '3', max_attempts => 1);
SELECT alkstore.claim('q', 'w', 2); SELECT pg_temp.advance(301);
SELECT is(
  pg_temp.effect($$ alkstore.sweep_expired('q') $$)
    || pg_temp.lines($$ SELECT job_id, state, last_error FROM alkstore.jobs ORDER BY job_id $$),
  '{"(2,0), changed",1|dead|expired,2|dead|expired,3|processing|NULL}',
  '[sweep] so are a delayed and a lapsed job past expires_at; a lapsed one without expires_at stays');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', expires_s => 10); SELECT alkstore.claim('q', 'w'); SELECT alkstore.retry('q', 1, 1, 'oops', 5);
SELECT pg_temp.advance(11); SELECT alkstore.sweep_expired('q');
SELECT is(pg_temp.lines($$ SELECT retry_error, last_error FROM alkstore.jobs $$), '{oops|expired}',
  '[sweep] retry_error stays beside expired');

-- Dead at 1000000000: kept for ever, 0, 10 and 2147483647 seconds.
SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1'); SELECT alkstore.enqueue('q', '2', dead_letter_retention_s => 0);
SELECT alkstore.enqueue('q', '3', dead_letter_retention_s => 10);
SELECT alkstore.enqueue('q', '4', dead_letter_retention_s => 2147483647);
SELECT alkstore.claim('q', 'w', 4);
SELECT count(alkstore.fail('q', j.job_id, 1)) FROM alkstore.jobs j;
SELECT pg_temp.effect($$ alkstore.sweep_expired('q') $$) AS at_once \gset
SELECT pg_temp.advance(1); SELECT pg_temp.effect($$ alkstore.sweep_expired('q') $$) AS after_1 \gset
SELECT pg_temp.advance(9); SELECT pg_temp.effect($$ alkstore.sweep_expired('q') $$) AS after_10 \gset
SELECT pg_temp.advance(1); SELECT pg_temp.effect($$ alkstore.sweep_expired('q') $$) AS after_11 \gset
SELECT pg_temp.advance(1000000000);
SELECT is(
  ARRAY[:'at_once', :'after_1', :'after_10', :'after_11', pg_temp.effect($$ alkstore.sweep_expired('q') $$)]
    || pg_temp.lines($$ SELECT job_id FROM alkstore.jobs ORDER BY job_id $$),
  '{"(0,0), untouched","(0,1), changed","(0,0), untouched","(0,1), changed","(0,0), untouched",1,4}',
  '[sweep] dead jobs are deleted when their retention has passed, never without one');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue_batch('q', '[1,2]', dead_letter_retention_s => 10); SELECT alkstore.claim('q', 'w', 2);
SELECT alkstore.fail('q', 1, 1); SELECT alkstore.fail('q', 2, 1);
SELECT alkstore.enqueue_batch('q', '[3,4,5]', expires_s => 10, dead_letter_retention_s => 0);
SELECT pg_temp.advance(11);
SELECT is(
  pg_temp.effect($$ alkstore.sweep_expired('q') $$)
    || pg_temp.lines($$ SELECT job_id, state FROM alkstore.jobs ORDER BY job_id $$),
  '{"(3,2), changed",3|dead,4|dead,5|dead}',
  '[sweep] the counts are of both kinds, and what a sweep buries it does not delete');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('p', '1', expires_s => 10); SELECT alkstore.enqueue('p', '2', dead_letter_retention_s => 0, priority => 1);
SELECT alkstore.claim('p', 'w'); SELECT alkstore.fail('p', 2, 1); SELECT pg_temp.advance(11);
SELECT is(
  ARRAY[
    pg_temp.effect($$ alkstore.sweep_expired('q') $$),
    pg_temp.effect($$ alkstore.sweep_expired('p') $$)],
  '{"(0,0), untouched","(1,1), changed"}', '[sweep] only the queue given is swept');

-- One job of each kind: pending, delayed, in work, lapsed, lapsed for good; with and past an expiry.
SELECT pg_temp.fresh();
SELECT count(alkstore.enqueue('q', e::text, expires_s => e, priority => p.priority, delay_s => p.delay_s, max_attempts => p.max_attempts,
  visibility_timeout_s => p.visibility_timeout_s))
FROM (VALUES (0, 0, 3, 300), (0, 1000, 3, 300), (9, 0, 3, 1000), (9, 0, 3, 10), (9, 0, 1, 10))
    p (priority, delay_s, max_attempts, visibility_timeout_s),
  (VALUES (50), (100), (1000)) e (e);
SELECT count(*) FROM alkstore.claim('q', 'w', 9); SELECT pg_temp.advance(100);
SELECT alkstore.sweep_expired('q');
SELECT is(
  pg_temp.lines($$ SELECT expires_at, state, count(*) FROM alkstore.jobs GROUP BY 1, 2 ORDER BY 1, 2 $$)
    || pg_temp.lines($$ SELECT count(*), count(DISTINCT job_id) FROM alkstore.jobs $$),
  '{1000000050|dead|5,1000000100|pending|2,1000000100|processing|3,1000001000|pending|2,1000001000|processing|3,15|15}',
  '[no-stranded] a job with expires_at is, once swept, in exactly one of pending, processing and dead');

-- Expired, lapsed for good, and dead past its retention: no other call touches them.
SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', dead_letter_retention_s => 0); SELECT alkstore.claim('q', 'w'); SELECT alkstore.fail('q', 1, 1);
SELECT alkstore.enqueue('q', '2', max_attempts => 1); SELECT alkstore.claim('q', 'w');
SELECT alkstore.enqueue('q', '3', expires_s => 10); SELECT alkstore.enqueue('q', '4', visibility_timeout_s => 1000, priority => 1);
SELECT alkstore.claim('q', 'w');
SELECT pg_temp.advance(301);
SELECT alkstore.enqueue('q', '5'); SELECT alkstore.next_due('q'); SELECT alkstore.get_job('q', 1); SELECT alkstore.claim('p', 'w');
SELECT alkstore.sweep_expired('p'); SELECT alkstore.heartbeat('q', 4, 1); SELECT alkstore.retry('q', 4, 1, NULL, 0);
SELECT count(*) FROM alkstore.queue_stats; SELECT alkstore.cancel('q', 5);
SELECT is(
  pg_temp.lines($$ SELECT job_id, state FROM alkstore.jobs ORDER BY job_id $$)
    || pg_temp.lines($$ SELECT count(*) FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
         WHERE c.relnamespace = 'alkstore'::regnamespace $$),
  '{1|dead,2|processing,3|pending,4|pending,0}',
  '[no-ambient] nothing is buried or deleted until a sweep or a claim of its queue asks');

SELECT pg_temp.fresh();
SELECT is(pg_temp.effect($$ alkstore.sweep_expired('__alkstore_q') $$), 'AK001, untouched',
  '[name] sweep_expired: a reserved queue is refused');
SELECT is(
  ARRAY[
    pg_temp.effect($$ alkstore.sweep_expired(NULL) $$),
    pg_temp.effect($$ alkstore.sweep_expired('') $$),
    pg_temp.effect($$ alkstore.sweep_expired(repeat('é', 128)) $$),
    pg_temp.effect($$ alkstore.sweep_expired(repeat('é', 127) || 'e') $$)],
  '{"AK001, untouched","AK001, untouched","AK001, untouched","(0,0), untouched"}',
  '[refusals] sweep_expired: a queue name that cannot exist is AK001');

SELECT alkstore.enqueue('q', '1', expires_s => 10); SELECT pg_temp.advance(11);
SELECT is(
  ARRAY[
    pg_temp.effect($$ alkstore.sweep_expired('q') $$),
    pg_temp.effect($$ alkstore.sweep_expired('q') $$),
    pg_temp.effect($$ alkstore.sweep_expired('q') $$)],
  '{"(1,0), changed","(0,0), untouched","(0,0), untouched"}', '[idle] a sweep with nothing to do writes nothing');

SELECT * FROM finish();
ROLLBACK;
