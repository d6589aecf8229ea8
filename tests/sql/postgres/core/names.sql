-- names and scope
BEGIN;
SELECT plan(15);
\ir ../clock.sql
\ir ../_effects.sql
\ir ../_answers.sql

SELECT pg_temp.fresh();
SELECT is(
  pg_temp.answers('alkstore.enqueue(%L, ''1'')', '', 'x', repeat('x', 255), repeat('x', 256), NULL),
  ARRAY['AK001 invalid_name: queue', '1', '2', 'AK001 invalid_name: queue', 'AK001 invalid_name: queue'],
  '[name] a queue''s name has 1 to 255 bytes');

SELECT pg_temp.fresh();
SELECT is(
  pg_temp.answers('alkstore.enqueue(%L, ''1'')',
    repeat('é', 127) || 'x', repeat('é', 128), repeat('€', 85), repeat('€', 85) || 'x', repeat('😀', 63) || 'xyz', repeat('😀', 64)),
  ARRAY['1', 'AK001 invalid_name: queue', '2', 'AK001 invalid_name: queue', '3', 'AK001 invalid_name: queue'],
  '[name] the limit counts bytes, not characters');

SELECT pg_temp.fresh();
SELECT count(alkstore.enqueue('q', '1')) FROM generate_series(1, 5);
SELECT is(
  pg_temp.answers('worker_id FROM alkstore.claim(''q'', %L)',
    '', NULL, repeat('x', 256), repeat('é', 128), 'x', repeat('é', 127) || 'x', '__alkstore_w'),
  ARRAY['AK001 invalid_name: worker_id', 'AK001 invalid_name: worker_id', 'AK001 invalid_name: worker_id',
    'AK001 invalid_name: worker_id', 'x', repeat('é', 127) || 'x', '__alkstore_w'],
  '[name] a worker''s name has 1 to 255 bytes, and may start with anything');

-- Queues that a careless comparison, quoting or cut would mix up.
CREATE TEMPORARY TABLE names AS
SELECT name FROM unnest(ARRAY[
  'A', 'a', 'a ', ' a', 'a/b', 'ÜX-日本-😀', E'\u00e9', E'e\u0301', 'q"''%I$$;--', '%', '_', '\', ' ', E'\t', E'\n', E'\r\n',
  E'\u0001', 'NULL', '1', '01', '1.0', '__alkstore', '__ALKSTORE_x', 'x__alkstore_', '__alkstorex_',
  repeat('n', 62), repeat('n', 63), repeat('n', 64), repeat('n', 63) || 'm', repeat('n', 254), repeat('n', 255), repeat('n', 254) || 'm'
]) name;

SELECT pg_temp.fresh();
SELECT is(
  pg_temp.lines('SELECT count(alkstore.enqueue(name, to_json(name))) FROM names')
  || pg_temp.lines($$
    SELECT count(*), bool_and(c.queue = name), bool_and(c.payload::text = to_json(name)::text)
    FROM names, alkstore.claim(name, name, 2) c$$)
  || pg_temp.lines('SELECT count(DISTINCT queue), bool_and(worker_id = queue) FROM alkstore.jobs'),
  ARRAY['32', '32|true|true', '32|true'],
  '[name] names that differ in a byte are different queues');

SELECT pg_temp.fresh();
SELECT is(
  pg_temp.lines($$SELECT count(alkstore.enqueue(name, '1', max_attempts => 1)) FROM names$$)
  || pg_temp.lines($$SELECT count(*) FROM names, alkstore.claim(name, 'w')$$)
  || pg_temp.lines('SELECT bool_and(alkstore.heartbeat(queue, job_id, 1)) FROM alkstore.jobs')
  || pg_temp.lines('SELECT bool_and(alkstore.release(queue, job_id, 1)) FROM alkstore.jobs')
  || pg_temp.lines($$SELECT count(*) FROM names, alkstore.claim(name, 'w')$$)
  || pg_temp.lines('SELECT bool_and(alkstore.retry(queue, job_id, 2, ''e'')) FROM alkstore.jobs')
  || pg_temp.lines($$SELECT count(b) FROM names, alkstore.enqueue_batch(name, '[2, 3]') b$$)
  || pg_temp.lines($$SELECT count(*) FROM names, alkstore.claim(name, 'w', 2)$$)
  || pg_temp.lines($$SELECT bool_and(alkstore.ack(queue, job_id, 1)) FROM alkstore.jobs WHERE payload::text = '2'$$)
  || pg_temp.lines($$SELECT bool_and(alkstore.fail(queue, job_id, 1)) FROM alkstore.jobs WHERE payload::text = '3'$$)
  || pg_temp.lines($$SELECT count(alkstore.enqueue(name, '4')) FROM names$$)
  || pg_temp.lines('SELECT count(alkstore.next_due(name)) FROM names')
  || pg_temp.lines($$SELECT bool_and(alkstore.cancel(queue, job_id)) FROM alkstore.jobs WHERE payload::text = '4'$$)
  || pg_temp.lines($$SELECT count(alkstore.enqueue(name, '5')) FROM names$$)
  || pg_temp.lines($$SELECT count(*) FROM names, alkstore.claim(name, 'w')$$)
  || pg_temp.lines($$SELECT sum(alkstore.ack_batch(queue, ARRAY[job_id], ARRAY[1])) FROM alkstore.jobs WHERE payload::text = '5'$$)
  || pg_temp.lines('SELECT count(*) FROM names, alkstore.sweep_expired(name)')
  || pg_temp.lines($$
    SELECT g.last_error, count(*) FROM alkstore.jobs j, alkstore.get_job(j.queue, j.job_id) g GROUP BY g.last_error ORDER BY 1$$),
  ARRAY['32', '32', 'true', 'true', '32', 'true', '64', '64', 'true', 'true', '32', '32', 'true', '32', '32', '32', '32',
    'e|32', 'failed|32'],
  '[name] every call takes any name');

SELECT pg_temp.fresh();
SELECT is(
  pg_temp.answers('alkstore.%s',
    $$enqueue('__alkstore_x', '1')$$, $$enqueue_batch('__alkstore_x', '[1]')$$, $$claim('__alkstore_x', 'w')$$,
    $$cancel('__alkstore_x', 1)$$, $$sweep_expired('__alkstore_x')$$, $$enqueue('__alkstore_', '1')$$),
  array_fill('AK001 invalid_name: queue'::text, ARRAY[6]),
  '[name] queues of the reserved prefix are refused by the calls of users');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', to_json(a)) FROM unnest('{ack,ack_batch,retry,release,fail,heartbeat}'::text[]) a;
SELECT count(*) FROM alkstore.claim('q', 'w', 6);
UPDATE alkstore._job SET queue = '__alkstore_x';
SELECT is(
  pg_temp.answers('alkstore.%s',
    $$ack('__alkstore_x', 1, 1)$$, $$ack_batch('__alkstore_x', '{2}', '{1}')$$, $$retry('__alkstore_x', 3, 1, 'e')$$,
    $$release('__alkstore_x', 4, 1)$$, $$fail('__alkstore_x', 5, 1)$$, $$heartbeat('__alkstore_x', 6, 1)$$),
  ARRAY['true', '1', 'true', 'true', 'true', 'true'],
  '[name] the calls on a claim take a reserved queue');

SELECT pg_temp.fresh();
SELECT is(
  pg_temp.answers('(alkstore.%s)',
    $$get_job('', 1)$$, $$get_job(NULL, 1)$$, $$get_job('__alkstore_x', 1)$$, $$get_job(repeat('x', 256), 1)$$,
    $$next_due('')$$, $$next_due(NULL)$$, $$next_due('__alkstore_x')$$, $$next_due(repeat('x', 256))$$),
  array_fill(NULL::text, ARRAY[8]),
  '[name] reads never refuse');

SELECT pg_temp.fresh();
SELECT is(
  (SELECT array_agg(answer ORDER BY call, name) FROM unnest(ARRAY[
      'claim(%L, ''w'')', 'enqueue_batch(%L, ''[1]'')', 'cancel(%L, 1)', 'sweep_expired(%L)', 'ack(%L, 1, 1)', 'ack_batch(%L, ''{1}'')',
      'retry(%L, 1, 1, ''e'')', 'release(%L, 1, 1)', 'fail(%L, 1, 1)', 'heartbeat(%L, 1, 1)']) call,
    unnest(ARRAY['', repeat('x', 256), NULL]) name,
    unnest(pg_temp.answers('alkstore.' || call, name)) answer),
  array_fill('AK001 invalid_name: queue'::text, ARRAY[30]),
  '[name] every other call refuses a queue that cannot exist');

-- In each queue: job 1 live, job 2 dead; then every call with the other queue's name.
SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1'), alkstore.enqueue('q', '2');
SELECT count(*) FROM alkstore.claim('q', 'w', 2);
SELECT alkstore.fail('q', 2, 1);
SELECT is(
  ARRAY(SELECT pg_temp.effect('alkstore.' || call) FROM unnest(ARRAY[
    $$ack('Q', 1, 1)$$, $$ack_batch('Q', '{1,2}', '{1,1}')$$, $$ack_batch('Q', '{1,2}')$$, $$retry('Q', 1, 1, 'e')$$,
    $$release('Q', 1, 1)$$, $$fail('Q', 1, 1)$$, $$heartbeat('Q', 1, 1)$$, $$cancel('Q', 1)$$,
    $$get_job('Q', 1)$$, $$get_job('Q', 2)$$]) call),
  ARRAY['false, untouched', '0, untouched', '0, untouched', 'false, untouched', 'false, untouched', 'false, untouched',
    'false, untouched', 'false, untouched', 'NULL, untouched', 'NULL, untouched'],
  '[scope] a job of another queue is not found');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1'), alkstore.enqueue('r', '2'), alkstore.enqueue('q', '3');
SELECT is(
  pg_temp.lines($$SELECT queue, payload FROM alkstore.claim('r', 'w', 9)$$),
  ARRAY['r|2'],
  '[scope] a claim hands out its own queue''s jobs only');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', max_attempts => 1), alkstore.enqueue('r', '2', max_attempts => 1);
SELECT count(*) FROM alkstore.claim('q', 'w') a, alkstore.claim('r', 'w') b;
SELECT pg_temp.advance(301);
SELECT is(
  pg_temp.lines($$SELECT count(*) FROM alkstore.claim('r', 'w')$$)
  || pg_temp.lines('SELECT queue, state FROM alkstore.jobs ORDER BY queue'),
  ARRAY['0', 'q|processing', 'r|dead'],
  '[scope] a claim buries its own queue''s jobs only');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', expires_s => 1), alkstore.enqueue('r', '2', expires_s => 1);
SELECT alkstore.enqueue('q', '3', dead_letter_retention_s => 0), alkstore.enqueue('r', '4', dead_letter_retention_s => 0);
SELECT count(*) FROM alkstore.claim('q', 'w', 2) a, alkstore.claim('r', 'w', 2) b;
SELECT alkstore.fail('q', 3, 1), alkstore.fail('r', 4, 1);
SELECT pg_temp.advance(2);
SELECT is(
  pg_temp.lines($$SELECT expired, pruned FROM alkstore.sweep_expired('r')$$)
  || pg_temp.lines('SELECT queue, job_id, state FROM alkstore.jobs ORDER BY job_id'),
  ARRAY['1|1', 'q|1|processing', 'r|2|dead', 'q|3|dead'],
  '[scope] a sweep takes its own queue''s jobs only');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1'), alkstore.enqueue('q', '2'), alkstore.enqueue('q', '3');
SELECT count(*) FROM alkstore.claim('q', 'w', 2);
SELECT alkstore.ack('q', 1, 1), alkstore.fail('q', 2, 1), alkstore.cancel('q', 3);
SELECT is(
  alkstore.enqueue('q', '4'), 4::bigint,
  '[scope] an id is never used again');

SELECT pg_temp.fresh();
SELECT setval(pg_get_serial_sequence('alkstore._job', 'id'), 3000000000);
SELECT is(
  pg_temp.lines($$SELECT alkstore.enqueue_batch('q', '[1, 2, 3, 4, 5, 6, 7]', dead_letter_retention_s => 0)$$)
  || pg_temp.lines($$SELECT job_id FROM alkstore.claim('q', 'w', 7)$$)
  || pg_temp.lines($$SELECT alkstore.ack('q', 3000000001, 1), alkstore.retry('q', 3000000002, 1, 'e'),
       alkstore.release('q', 3000000003, 1), alkstore.fail('q', 3000000004, 1), alkstore.heartbeat('q', 3000000005, 1),
       alkstore.cancel('q', 3000000006), alkstore.ack_batch('q', '{3000000005,3000000007}', '{1,1}')$$)
  || pg_temp.lines($$SELECT job_id, state FROM alkstore.jobs ORDER BY job_id$$)
  || pg_temp.lines($$SELECT job_id, last_error FROM alkstore.get_job('q', 3000000004)$$),
  ARRAY['3000000001', '3000000002', '3000000003', '3000000004', '3000000005', '3000000006', '3000000007',
    '3000000001', '3000000002', '3000000003', '3000000004', '3000000005', '3000000006', '3000000007',
    'true|true|true|true|true|true|2',
    '3000000002|pending', '3000000003|pending', '3000000004|dead', '3000000004|failed'],
  '[scope] every call takes ids past 2^31');

SELECT * FROM finish();
ROLLBACK;
