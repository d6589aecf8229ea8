-- release
BEGIN;
SELECT plan(26);
\ir ../clock.sql
\ir ../_effects.sql

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '{"a": 1}', priority => 7, expires_s => 1000, max_attempts => 5, visibility_timeout_s => 60,
  backoff_base_s => 9, dead_letter_retention_s => 77);
SELECT alkstore.enqueue('q', '2');
SELECT pg_temp.advance(10); SELECT alkstore.claim('q', 'w', 2); SELECT pg_temp.advance(10);
SELECT is(
  pg_temp.effect($$ alkstore.release(queue => 'q', job_id => 1, attempt => 1) $$)
    || pg_temp.lines($$ SELECT * FROM alkstore.jobs WHERE job_id = 1 $$)
    || pg_temp.lines($$ SELECT job_id, state, released FROM alkstore.jobs WHERE job_id = 2 $$),
  ARRAY['true, changed',
    '1|q|pending|{"a": 1}|7|1|5|60|9|77|NULL|1000000000|1000000000|1000001000|NULL|NULL|NULL|NULL|NULL|1',
    '2|processing|0'],
  '[release] the job is pending again with its old run_at, its claim cleared, the claim counted in attempts and in released');
SELECT is(pg_temp.lines($$ SELECT job_id, attempt, run_at FROM alkstore.claim('q', 'v') $$), '{1|2|1000000000}',
  '[release] the job can be claimed at once, as the next attempt');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', max_attempts => 1);
SELECT alkstore.claim('q', 'w'); SELECT alkstore.release('q', 1, 1);
SELECT alkstore.claim('q', 'w'); SELECT alkstore.release('q', 1, 2);
SELECT alkstore.claim('q', 'w');
SELECT is(pg_temp.lines($$ SELECT state, attempts, released FROM alkstore.jobs $$), '{processing|3|2}',
  '[release] released claims are not counted, however many');
SELECT pg_temp.advance(301);
SELECT is(
  pg_temp.lines($$ SELECT job_id FROM alkstore.claim('q', 'w') $$)
    || pg_temp.lines($$ SELECT state, attempts, released, last_error FROM alkstore.jobs $$),
  '{"dead|3|2|max attempts exceeded"}', '[release] a claim that lapses is counted as ever');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', max_attempts => 2);
SELECT alkstore.claim('q', 'w'); SELECT alkstore.release('q', 1, 1);
SELECT alkstore.claim('q', 'w'); SELECT pg_temp.advance(301);
SELECT is(pg_temp.lines($$ SELECT job_id, attempt FROM alkstore.claim('q', 'w') $$), '{1|3}',
  '[release] a job with a released and a lapsed claim has the attempt left that the released one did not use');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1'); SELECT alkstore.claim('q', 'w'); SELECT alkstore.retry('q', 1, 1, 'oops', 0);
SELECT alkstore.claim('q', 'w'); SELECT alkstore.release('q', 1, 2);
SELECT is(pg_temp.lines($$ SELECT state, retry_error FROM alkstore.jobs $$), '{pending|oops}',
  '[release] retry_error stays');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1'); SELECT alkstore.claim('q', 'w');
SELECT pg_temp.advance(-10); SELECT alkstore.release('q', 1, 1);
SELECT is(pg_temp.lines($$ SELECT ready FROM alkstore._job $$), '{false}',
  '[plans] a released job that is not due is not in the index that claims read');
SELECT pg_temp.lines($$ SELECT job_id FROM alkstore.claim('q', 'w') $$) AS early \gset
SELECT pg_temp.advance(10);
SELECT is(:'early' || pg_temp.lines($$ SELECT job_id, run_at FROM alkstore.claim('q', 'w') $$), '{1|1000000000}',
  '[release] after the clock stepped back the job waits for its run_at');

-- [valid]
SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1');
SELECT is(pg_temp.effect($$ alkstore.release('q', 1, 0) $$), 'false, untouched',
  '[valid] release: a job never claimed is refused');
SELECT alkstore.claim('q', 'w');
SELECT is(pg_temp.effect($$ alkstore.release('q', 1, 2) $$), 'false, untouched',
  '[valid] release: another attempt number is refused');
SELECT is(pg_temp.effect($$ alkstore.release('other', 1, 1) $$), 'false, untouched',
  '[valid] release: another queue is refused');
SELECT is(pg_temp.effect($$ alkstore.release('q', 2, 1) $$), 'false, untouched',
  '[valid] release: an unknown job is refused');
SELECT is(pg_temp.effect($$ alkstore.release('q', NULL, 1) $$), 'false, untouched',
  '[valid] release: a NULL job_id is refused');
SELECT is(pg_temp.effect($$ alkstore.release('q', 1, NULL) $$), 'false, untouched',
  '[valid] release: a NULL attempt is refused');
SELECT alkstore.release('q', 1, 1);
SELECT is(pg_temp.effect($$ alkstore.release('q', 1, 1) $$), 'false, untouched',
  '[valid] release: a job given back is refused');
SELECT alkstore.claim('q', 'w');
SELECT pg_temp.advance(301);
SELECT is(pg_temp.effect($$ alkstore.release('q', 1, 2) $$), 'false, untouched',
  '[valid] release: a lapsed claim is refused though nobody took the job');
SELECT alkstore.claim('q', 'v');
SELECT is(pg_temp.effect($$ alkstore.release('q', 1, 2) $$), 'false, untouched',
  '[valid] release: a claim that another worker took over is refused');
SELECT pg_temp.advance(301);
SELECT alkstore.claim('q', 'v');
SELECT is(pg_temp.effect($$ alkstore.release('q', 1, 3) $$), 'false, untouched',
  '[valid] release: a claim that the same worker name took over is refused');
SELECT alkstore.fail('q', 1, 4);
SELECT is(pg_temp.effect($$ alkstore.release('q', 1, 4) $$), 'false, untouched',
  '[valid] release: a dead job is refused');
SELECT alkstore.enqueue('q', '2'); SELECT alkstore.claim('q', 'w'); SELECT alkstore.cancel('q', 2);
SELECT is(pg_temp.effect($$ alkstore.release('q', 2, 1) $$), 'false, untouched',
  '[valid] release: a cancelled job is refused');
SELECT alkstore.enqueue('q', '3'); SELECT alkstore.claim('q', 'w'); SELECT alkstore.ack('q', 3, 1);
SELECT is(pg_temp.effect($$ alkstore.release('q', 3, 1) $$), 'false, untouched',
  '[valid] release: a job acked before is refused');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1'); SELECT alkstore.claim('q', 'w'); SELECT pg_temp.advance(300);
SELECT is(pg_temp.effect($$ alkstore.release('q', 1, 1) $$), 'true, changed',
  '[valid] release: accepted at the very second of claim_expires_at');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', expires_s => 10); SELECT alkstore.claim('q', 'w'); SELECT pg_temp.advance(11);
SELECT is(pg_temp.effect($$ alkstore.release('q', 1, 1) $$), 'true, changed',
  '[valid] release: accepted past expires_at');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1'); SELECT alkstore.claim('q', 'w'); UPDATE alkstore._job SET queue = '__alkstore_q';
SELECT is(
  ARRAY[
    pg_temp.effect($$ alkstore.release('__alkstore_none', 1, 1) $$),
    pg_temp.effect($$ alkstore.release('__alkstore_q', 1, 1) $$)],
  '{"false, untouched","true, changed"}', '[name] release: a reserved queue is accepted');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1'); SELECT alkstore.claim('q', 'w');
SELECT is(
  ARRAY[
    pg_temp.effect($$ alkstore.release(NULL, 1, 1) $$),
    pg_temp.effect($$ alkstore.release('', 1, 1) $$),
    pg_temp.effect($$ alkstore.release(repeat('é', 128), 1, 1) $$),
    pg_temp.effect($$ alkstore.release(repeat('é', 127) || 'e', 1, 1) $$)],
  '{"AK001, untouched","AK001, untouched","AK001, untouched","false, untouched"}',
  '[refusals] release: a queue name that cannot exist is AK001');
SELECT is(pg_temp.effect($$ alkstore.release('q', 1, 9) $$), 'false, untouched',
  '[idle] a refused release writes nothing');

SELECT * FROM finish();
ROLLBACK;
