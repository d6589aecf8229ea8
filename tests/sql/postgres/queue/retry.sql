-- retry
BEGIN;
SELECT plan(41);
\ir ../clock.sql
\ir ../_effects.sql

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '{"a": 1}', priority => 7, expires_s => 1000, max_attempts => 5, visibility_timeout_s => 60,
  backoff_base_s => 9, dead_letter_retention_s => 77);
SELECT alkstore.enqueue('q', '2');
SELECT pg_temp.advance(10); SELECT alkstore.claim('q', 'w', 2); SELECT pg_temp.advance(10);
SELECT is(
  pg_temp.effect($$ alkstore.retry(queue => 'q', job_id => 1, attempt => 1, error => 'oops', delay_s => 30) $$)
    || pg_temp.lines($$ SELECT * FROM alkstore.jobs WHERE job_id = 1 $$)
    || pg_temp.lines($$ SELECT job_id, state FROM alkstore.jobs WHERE job_id = 2 $$),
  ARRAY['true, changed',
    '1|q|pending|{"a": 1}|7|1|5|60|9|77|NULL|1000000000|1000000050|1000001000|NULL|NULL|oops|NULL|NULL|0',
    '2|processing'],
  '[retry] the job is pending again after delay_s, its claim cleared, its attempt counted');
SELECT alkstore.cancel('q', 2);
SELECT pg_temp.advance(29);
SELECT is(pg_temp.lines($$ SELECT job_id FROM alkstore.claim('q', 'w') $$), '{}',
  '[retry] the job is not claimed before its delay has passed');
SELECT pg_temp.advance(1);
SELECT is(pg_temp.lines($$ SELECT job_id, attempt, run_at FROM alkstore.claim('q', 'w') $$), '{1|2|1000000050}',
  '[retry] the job is claimed when its delay has passed, as the next attempt');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1'); SELECT alkstore.claim('q', 'w'); SELECT alkstore.retry('q', 1, 1, NULL, 0);
SELECT is(pg_temp.lines($$ SELECT job_id, attempt, run_at FROM alkstore.claim('q', 'w') $$), '{1|2|1000000000}',
  '[retry] delay_s 0 makes the job ready at once');

SELECT alkstore.retry('q', 1, 2, NULL, 2147483647);
SELECT is(pg_temp.lines($$ SELECT state, run_at FROM alkstore.jobs $$), '{pending|3147483647}',
  '[retry] delay_s may be 2147483647');
SELECT is(pg_temp.lines($$ SELECT ready FROM alkstore._job $$), '{false}',
  '[plans] a job that waits for its retry is not in the index that claims read');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', max_attempts => 3);
SELECT is(
  pg_temp.lines($$ SELECT attempt FROM alkstore.claim('q', 'w') $$)
    || pg_temp.effect($$ alkstore.retry('q', 1, 1, NULL, 0) $$)
    || pg_temp.lines($$ SELECT attempt FROM alkstore.claim('q', 'w') $$)
    || pg_temp.effect($$ alkstore.retry('q', 1, 2, NULL, 0) $$)
    || pg_temp.lines($$ SELECT attempt FROM alkstore.claim('q', 'w') $$)
    || pg_temp.effect($$ alkstore.retry('q', 1, 3, NULL, 0) $$)
    || pg_temp.lines($$ SELECT attempt FROM alkstore.claim('q', 'w') $$)
    || pg_temp.lines($$ SELECT state, attempts, last_error FROM alkstore.jobs $$),
  '{1,"true, changed",2,"true, changed",3,"true, changed","dead|3|max attempts exceeded"}',
  '[retry] a job runs max_attempts times and is then dead');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', max_attempts => 1); SELECT alkstore.claim('q', 'w'); SELECT pg_temp.advance(10);
SELECT alkstore.retry('q', 1, 1, 'boom', 30);
SELECT is(
  pg_temp.lines($$ SELECT * FROM alkstore.jobs $$),
  '{1|q|dead|1|0|1|1|300|5|NULL|w|1000000000|1000000000|NULL|1000000000|1000000300|boom|boom|1000000010|0}',
  '[retry] without attempts left the job is dead, with the error given');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', max_attempts => 2); SELECT alkstore.claim('q', 'w');
SELECT alkstore.release('q', 1, 1); SELECT alkstore.claim('q', 'w'); SELECT alkstore.retry('q', 1, 2, NULL, 0);
SELECT alkstore.claim('q', 'w');
SELECT is(
  pg_temp.lines($$ SELECT state, attempts, released FROM alkstore.jobs $$)
    || pg_temp.effect($$ alkstore.retry('q', 1, 3, NULL, 0) $$)
    || pg_temp.lines($$ SELECT state, attempts, released FROM alkstore.jobs $$),
  '{processing|3|1,"true, changed",dead|3|1}',
  '[retry] released claims do not count towards max_attempts');

-- [valid]
SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1');
SELECT is(pg_temp.effect($$ alkstore.retry('q', 1, 0, 'oops') $$), 'false, untouched',
  '[valid] retry: a job never claimed is refused');
SELECT alkstore.claim('q', 'w');
SELECT is(pg_temp.effect($$ alkstore.retry('q', 1, 2, 'oops') $$), 'false, untouched',
  '[valid] retry: another attempt number is refused');
SELECT is(pg_temp.effect($$ alkstore.retry('other', 1, 1, 'oops') $$), 'false, untouched',
  '[valid] retry: another queue is refused');
SELECT is(pg_temp.effect($$ alkstore.retry('q', 2, 1, 'oops') $$), 'false, untouched',
  '[valid] retry: an unknown job is refused');
SELECT is(pg_temp.effect($$ alkstore.retry('q', NULL, 1, 'oops') $$), 'false, untouched',
  '[valid] retry: a NULL job_id is refused');
SELECT is(pg_temp.effect($$ alkstore.retry('q', 1, NULL, 'oops') $$), 'false, untouched',
  '[valid] retry: a NULL attempt is refused');
SELECT alkstore.release('q', 1, 1);
SELECT is(pg_temp.effect($$ alkstore.retry('q', 1, 1, 'oops') $$), 'false, untouched',
  '[valid] retry: a job given back is refused');
SELECT alkstore.claim('q', 'w');
SELECT pg_temp.advance(301);
SELECT is(pg_temp.effect($$ alkstore.retry('q', 1, 2, 'oops') $$), 'false, untouched',
  '[valid] retry: a lapsed claim is refused though nobody took the job');
SELECT alkstore.claim('q', 'v');
SELECT is(pg_temp.effect($$ alkstore.retry('q', 1, 2, 'oops') $$), 'false, untouched',
  '[valid] retry: a claim that another worker took over is refused');
SELECT pg_temp.advance(301);
SELECT alkstore.claim('q', 'v');
SELECT is(pg_temp.effect($$ alkstore.retry('q', 1, 3, 'oops') $$), 'false, untouched',
  '[valid] retry: a claim that the same worker name took over is refused');
SELECT alkstore.fail('q', 1, 4);
SELECT is(pg_temp.effect($$ alkstore.retry('q', 1, 4, 'oops') $$), 'false, untouched',
  '[valid] retry: a dead job is refused');
SELECT alkstore.enqueue('q', '2'); SELECT alkstore.claim('q', 'w'); SELECT alkstore.cancel('q', 2);
SELECT is(pg_temp.effect($$ alkstore.retry('q', 2, 1, 'oops') $$), 'false, untouched',
  '[valid] retry: a cancelled job is refused');
SELECT alkstore.enqueue('q', '3'); SELECT alkstore.claim('q', 'w'); SELECT alkstore.ack('q', 3, 1);
SELECT is(pg_temp.effect($$ alkstore.retry('q', 3, 1, 'oops') $$), 'false, untouched',
  '[valid] retry: a job acked before is refused');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1'); SELECT alkstore.claim('q', 'w'); SELECT pg_temp.advance(300);
SELECT is(pg_temp.effect($$ alkstore.retry('q', 1, 1, 'oops') $$), 'true, changed',
  '[valid] retry: accepted at the very second of claim_expires_at');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', expires_s => 10); SELECT alkstore.claim('q', 'w'); SELECT pg_temp.advance(11);
SELECT is(pg_temp.effect($$ alkstore.retry('q', 1, 1, 'oops') $$), 'true, changed',
  '[valid] retry: accepted past expires_at');

-- [error-text]
SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', max_attempts => 9);
SELECT alkstore.claim('q', 'w'); SELECT alkstore.retry('q', 1, 1, 'first', 0);
SELECT alkstore.claim('q', 'w'); SELECT alkstore.retry('q', 1, 2, NULL, 0);
SELECT alkstore.claim('q', 'w');
SELECT is(pg_temp.lines($$ SELECT state, retry_error FROM alkstore.jobs $$), '{processing|first}',
  '[error-text] retry without an error keeps the one before');
SELECT alkstore.retry('q', 1, 3, 'second', 0);
SELECT is(pg_temp.lines($$ SELECT state, retry_error FROM alkstore.jobs $$), '{pending|second}',
  '[error-text] retry_error is the last one given');
SELECT alkstore.claim('q', 'w'); SELECT alkstore.retry('q', 1, 4, '', 0);
SELECT is(pg_temp.lines($$ SELECT state, retry_error, retry_error IS NULL FROM alkstore.jobs $$), '{pending||false}',
  '[error-text] an empty error given to retry counts');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', max_attempts => 2);
SELECT alkstore.claim('q', 'w'); SELECT alkstore.retry('q', 1, 1, 'first', 0);
SELECT alkstore.claim('q', 'w'); SELECT alkstore.retry('q', 1, 2, NULL);
SELECT is(pg_temp.lines($$ SELECT retry_error, last_error FROM alkstore.jobs $$), '{"first|max attempts exceeded"}',
  '[error-text] a retry that dies without an error keeps the retry_error before');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', max_attempts => 2);
SELECT alkstore.claim('q', 'w'); SELECT alkstore.retry('q', 1, 1, 'first', 0);
SELECT alkstore.claim('q', 'w'); SELECT alkstore.retry('q', 1, 2, 'second');
SELECT is(pg_temp.lines($$ SELECT retry_error, last_error FROM alkstore.jobs $$), '{second|second}',
  '[error-text] a retry that dies with an error sets both errors');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', max_attempts => 1); SELECT alkstore.claim('q', 'w'); SELECT alkstore.retry('q', 1, 1, '');
SELECT is(pg_temp.lines($$ SELECT retry_error, last_error FROM alkstore.jobs $$), '{|}',
  '[error-text] a retry that dies with an empty error sets both errors');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue_batch('q', '[1,2,3]', max_attempts => 2);
SELECT alkstore.enqueue('q', '4', max_attempts => 1);
SELECT alkstore.claim('q', 'w', 4);
SELECT is(
  ARRAY[
    pg_temp.effect($$ alkstore.retry('q', 1, 1, repeat('😀', 65536)) $$),
    pg_temp.effect($$ alkstore.retry('q', 2, 1, repeat('😀', 65537)) $$),
    pg_temp.effect($$ alkstore.retry('q', 3, 1, repeat('x', 10485760)) $$),
    pg_temp.effect($$ alkstore.retry('q', 4, 1, repeat('😀', 65537)) $$)]
  || pg_temp.lines($$
    SELECT job_id, retry_error = repeat('😀', 65536), retry_error = repeat('x', 65536), last_error = repeat('😀', 65536)
    FROM alkstore.jobs ORDER BY job_id $$),
  '{"true, changed","true, changed","true, changed","true, changed",
    1|true|false|NULL,2|true|false|NULL,3|false|true|NULL,4|true|false|true}',
  '[error-text] an error given to retry is cut at 65536 characters');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1'); SELECT alkstore.claim('q', 'w');
-- PostgreSQL itself has no text with a NUL: there is nothing to cut, and the call does not begin.
SELECT is(pg_temp.effect($$ alkstore.retry('q', 1, 1, 'a' || chr(0) || 'b') $$), '54000, untouched',
  '[error-text] an error given to retry cannot bring in a NUL');

-- [backoff]. The payload of each job is the number of the attempt that it is in.
SELECT pg_temp.fresh();
SELECT count(alkstore.enqueue('q', a.attempt::text, backoff_base_s => b.base))
FROM (SELECT generate_series(1, 40) UNION ALL VALUES (62), (63), (64), (1000), (2147483647)) a (attempt),
  (VALUES (1), (5), (2147483647)) b (base), generate_series(1, 20);
SELECT count(*) FROM alkstore.claim('q', 'w', 5000);
UPDATE alkstore._job SET attempts = payload::text::bigint, max_attempts = 2147483648;
SELECT is(
  pg_temp.lines($$
    SELECT count(*) FROM alkstore.jobs j WHERE j.attempts > 0 AND alkstore.retry('q', j.job_id, j.attempts, NULL) $$)
  || pg_temp.lines($$
    SELECT j.backoff_base_s, j.attempts, extract(epoch FROM j.run_at)::bigint - 1000000000
    FROM alkstore.jobs j LEFT JOIN (VALUES
      (1, 1, 1, 1), (1, 2, 1, 2), (1, 3, 2, 4), (1, 4, 4, 8), (1, 5, 8, 16), (1, 6, 16, 32), (1, 7, 32, 64),
      (1, 8, 64, 128), (1, 9, 128, 256), (1, 10, 256, 512), (1, 11, 512, 1024), (1, 12, 1024, 2048),
      (5, 1, 3, 5), (5, 2, 5, 10), (5, 3, 10, 20), (5, 4, 20, 40), (5, 5, 40, 80), (5, 6, 80, 160), (5, 7, 160, 320),
      (5, 8, 320, 640), (5, 9, 640, 1280), (5, 10, 1280, 2560)
    ) f (base, attempt, low, high) ON f.base = j.backoff_base_s AND f.attempt = j.attempts
    WHERE j.state <> 'pending' OR extract(epoch FROM j.run_at)::bigint - 1000000000
      NOT BETWEEN coalesce(f.low, 1800) AND coalesce(f.high, 3600) $$),
  '{2700}', '[backoff] the delay is half to all of min(3600, base * 2^(attempt - 1)), whatever attempt and base');

SELECT pg_temp.fresh();
SELECT count(alkstore.enqueue('q', '3')) FROM generate_series(1, 400);
SELECT count(*) FROM alkstore.claim('q', 'w', 400);
UPDATE alkstore._job SET attempts = 3, max_attempts = 4;
SELECT count(alkstore.retry('q', j.job_id, 3, NULL)) FROM alkstore.jobs j;
SELECT is(
  pg_temp.lines($$ SELECT DISTINCT extract(epoch FROM run_at)::bigint - 1000000000 FROM alkstore.jobs ORDER BY 1 $$),
  '{10,11,12,13,14,15,16,17,18,19,20}', '[backoff] every whole second of the range is drawn, both ends included');

SELECT pg_temp.fresh();
SELECT count(alkstore.enqueue('q', '1', backoff_base_s => 2147483647)) FROM generate_series(1, 2000);
SELECT count(*) FROM alkstore.claim('q', 'w', 2000);
SELECT count(alkstore.retry('q', j.job_id, 1, NULL)) FROM alkstore.jobs j;
SELECT is(
  pg_temp.lines($$
    SELECT min(delay) BETWEEN 1800 AND 1850, max(delay) BETWEEN 3550 AND 3600, avg(delay) BETWEEN 2600 AND 2800
    FROM (SELECT extract(epoch FROM run_at)::bigint - 1000000000 AS delay FROM alkstore.jobs) d $$),
  '{true|true|true}', '[backoff] an hour at most, spread evenly over its second half');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', backoff_base_s => 0); SELECT alkstore.claim('q', 'w'); SELECT alkstore.retry('q', 1, 1, NULL);
SELECT is(pg_temp.lines($$ SELECT attempt, run_at FROM alkstore.claim('q', 'w') $$), '{2|1000000000}',
  '[backoff] with base 0 there is no delay');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1');
SELECT alkstore.claim('q', 'w'); SELECT alkstore.release('q', 1, 1);
SELECT alkstore.claim('q', 'w'); SELECT alkstore.release('q', 1, 2);
SELECT alkstore.claim('q', 'w'); SELECT alkstore.retry('q', 1, 3, NULL);
SELECT is(
  pg_temp.lines($$ SELECT attempts, extract(epoch FROM run_at)::bigint - 1000000000 BETWEEN 3 AND 5 FROM alkstore.jobs $$),
  '{3|true}', '[backoff] released claims do not count');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1'); SELECT alkstore.claim('q', 'w'); UPDATE alkstore._job SET queue = '__alkstore_q';
SELECT is(
  ARRAY[
    pg_temp.effect($$ alkstore.retry('__alkstore_none', 1, 1, NULL) $$),
    pg_temp.effect($$ alkstore.retry('__alkstore_q', 1, 1, NULL) $$)],
  '{"false, untouched","true, changed"}', '[name] retry: a reserved queue is accepted');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1'); SELECT alkstore.claim('q', 'w');
SELECT is(
  ARRAY[
    pg_temp.effect($$ alkstore.retry(NULL, 1, 1, NULL) $$),
    pg_temp.effect($$ alkstore.retry('', 1, 1, NULL) $$),
    pg_temp.effect($$ alkstore.retry(repeat('é', 128), 1, 1, NULL) $$),
    pg_temp.effect($$ alkstore.retry(repeat('é', 127) || 'e', 1, 1, NULL) $$)],
  '{"AK001, untouched","AK001, untouched","AK001, untouched","false, untouched"}',
  '[refusals] retry: a queue name that cannot exist is AK001');
SELECT is(
  ARRAY[
    pg_temp.effect($$ alkstore.retry('q', 1, 1, NULL, -1) $$),
    pg_temp.effect($$ alkstore.retry('q', 1, 1, NULL, 2147483648) $$),
    pg_temp.effect($$ alkstore.retry('q', 1, 1, NULL, 9223372036854775807) $$),
    pg_temp.effect($$ alkstore.retry('q', 1, 9, NULL, -1) $$)],
  '{"AK003, untouched","AK003, untouched","AK003, untouched","AK003, untouched"}',
  '[refusals] retry: delay_s below 0 or beyond 32 bits is AK003, also when the claim is stale');
SELECT is(pg_temp.effect($$ alkstore.retry('q', 1, 9, 'oops', 60) $$), 'false, untouched',
  '[idle] a refused retry writes nothing');

SELECT * FROM finish();
ROLLBACK;
