-- ack, ack_batch
BEGIN;
SELECT plan(31);
\ir ../clock.sql
\ir ../_effects.sql

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1'); SELECT alkstore.enqueue('q', '2'); SELECT alkstore.enqueue('p', '3');
SELECT alkstore.claim('q', 'w', 2);
SELECT is(pg_temp.effect($$ alkstore.ack(queue => 'q', job_id => 1, attempt => 1) $$), 'true, changed',
  '[ack] an accepted ack is true');
SELECT is(pg_temp.lines($$ SELECT job_id, state FROM alkstore.jobs ORDER BY job_id $$), '{2|processing,3|pending}',
  '[ack] an accepted ack deletes that job and no other');

-- [valid]
SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1');
SELECT is(pg_temp.effect($$ alkstore.ack('q', 1, 0) $$), 'false, untouched',
  '[valid] ack: a job never claimed is refused');
SELECT alkstore.claim('q', 'w');
SELECT is(pg_temp.effect($$ alkstore.ack('q', 1, 2) $$), 'false, untouched',
  '[valid] ack: another attempt number is refused');
SELECT is(pg_temp.effect($$ alkstore.ack('other', 1, 1) $$), 'false, untouched',
  '[valid] ack: another queue is refused');
SELECT is(pg_temp.effect($$ alkstore.ack('q', 2, 1) $$), 'false, untouched',
  '[valid] ack: an unknown job is refused');
SELECT is(pg_temp.effect($$ alkstore.ack('q', NULL, 1) $$), 'false, untouched',
  '[valid] ack: a NULL job_id is refused');
SELECT is(pg_temp.effect($$ alkstore.ack('q', 1, NULL) $$), 'false, untouched',
  '[valid] ack: a NULL attempt is refused');
SELECT alkstore.release('q', 1, 1);
SELECT is(pg_temp.effect($$ alkstore.ack('q', 1, 1) $$), 'false, untouched',
  '[valid] ack: a job given back is refused');
SELECT alkstore.claim('q', 'w');
SELECT pg_temp.advance(301);
SELECT is(pg_temp.effect($$ alkstore.ack('q', 1, 2) $$), 'false, untouched',
  '[valid] ack: a lapsed claim is refused though nobody took the job');
SELECT alkstore.claim('q', 'v');
SELECT is(pg_temp.effect($$ alkstore.ack('q', 1, 2) $$), 'false, untouched',
  '[valid] ack: a claim that another worker took over is refused');
SELECT pg_temp.advance(301);
SELECT alkstore.claim('q', 'v');
SELECT is(pg_temp.effect($$ alkstore.ack('q', 1, 3) $$), 'false, untouched',
  '[valid] ack: a claim that the same worker name took over is refused');
SELECT alkstore.fail('q', 1, 4);
SELECT is(pg_temp.effect($$ alkstore.ack('q', 1, 4) $$), 'false, untouched',
  '[valid] ack: a dead job is refused');
SELECT alkstore.enqueue('q', '2'); SELECT alkstore.claim('q', 'w'); SELECT alkstore.cancel('q', 2);
SELECT is(pg_temp.effect($$ alkstore.ack('q', 2, 1) $$), 'false, untouched',
  '[valid] ack: a cancelled job is refused');
SELECT alkstore.enqueue('q', '3'); SELECT alkstore.claim('q', 'w'); SELECT alkstore.ack('q', 3, 1);
SELECT is(pg_temp.effect($$ alkstore.ack('q', 3, 1) $$), 'false, untouched',
  '[valid] ack: a job acked before is refused');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1'); SELECT alkstore.claim('q', 'w'); SELECT pg_temp.advance(300);
SELECT is(pg_temp.effect($$ alkstore.ack('q', 1, 1) $$), 'true, changed',
  '[valid] ack: accepted at the very second of claim_expires_at');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', expires_s => 10); SELECT alkstore.claim('q', 'w'); SELECT pg_temp.advance(11);
SELECT is(pg_temp.effect($$ alkstore.ack('q', 1, 1) $$), 'true, changed',
  '[valid] ack: accepted past expires_at');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', visibility_timeout_s => 2);
SELECT alkstore.claim('q', 'w1'); SELECT pg_temp.advance(3); SELECT alkstore.claim('q', 'w2');
SELECT is(
  ARRAY[
    pg_temp.effect($$ alkstore.ack('q', 1, 1) $$),
    pg_temp.effect($$ alkstore.heartbeat('q', 1, 1) $$),
    pg_temp.effect($$ alkstore.retry('q', 1, 1, 'late') $$),
    pg_temp.effect($$ alkstore.fail('q', 1, 1) $$),
    pg_temp.effect($$ alkstore.release('q', 1, 1) $$),
    pg_temp.effect($$ alkstore.ack_batch('q', '{1}', '{1}') $$),
    pg_temp.effect($$ alkstore.ack('q', 1, 2) $$)],
  '{"false, untouched","false, untouched","false, untouched","false, untouched","false, untouched","0, untouched","true, changed"}',
  '[valid] after a reclaim the old holder changes nothing, and the new holder acks');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', visibility_timeout_s => 2);
SELECT alkstore.claim('q', 'pod-1'); SELECT pg_temp.advance(3); SELECT alkstore.claim('q', 'pod-1');
SELECT is(
  ARRAY[
    pg_temp.effect($$ alkstore.ack('q', 1, 1) $$),
    pg_temp.effect($$ alkstore.heartbeat('q', 1, 1) $$),
    pg_temp.effect($$ alkstore.retry('q', 1, 1, 'late') $$),
    pg_temp.effect($$ alkstore.fail('q', 1, 1) $$),
    pg_temp.effect($$ alkstore.release('q', 1, 1) $$),
    pg_temp.effect($$ alkstore.ack_batch('q', '{1}', '{1}') $$),
    pg_temp.effect($$ alkstore.ack('q', 1, 2) $$)],
  '{"false, untouched","false, untouched","false, untouched","false, untouched","false, untouched","0, untouched","true, changed"}',
  '[valid] the same for two lives of one worker name');

-- [ack-batch]. Jobs 1 and 2 claimed, 3 lapsed, 4 of another queue, 5 given back.
SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1'); SELECT alkstore.enqueue('q', '2');
SELECT alkstore.enqueue('q', '3', visibility_timeout_s => 10);
SELECT alkstore.enqueue('p', '4'); SELECT alkstore.enqueue('q', '5');
SELECT alkstore.claim('q', 'w', 4); SELECT alkstore.claim('p', 'w');
SELECT alkstore.release('q', 5, 1); SELECT pg_temp.advance(11);
SELECT is(
  pg_temp.effect($$ alkstore.ack_batch('q', '{5,4,3,2,1}', '{1,1,1,2,1}') $$)
    || pg_temp.lines($$ SELECT job_id, state FROM alkstore.jobs ORDER BY job_id $$),
  '{"1, changed",2|processing,3|processing,4|processing,5|pending}',
  '[ack-batch] each claim is judged by itself and the accepted are counted');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1'); SELECT alkstore.enqueue('q', '2'); SELECT alkstore.claim('q', 'w', 2);
SELECT is(
  ARRAY[
    pg_temp.effect($$ alkstore.ack_batch('q', '{1,1}', '{1,1}') $$),
    pg_temp.effect($$ alkstore.ack_batch('q', '{2,2,2}', '{7,1,NULL}') $$)],
  '{"1, changed","1, changed"}', '[ack-batch] an id given twice counts once');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue_batch('q', '[1,2,3]'); SELECT alkstore.claim('q', 'w', 3); SELECT alkstore.cancel('q', 2);
SELECT is(
  ARRAY[
    pg_temp.effect($$ alkstore.ack_batch('q', '{}', '{}') $$),
    pg_temp.effect($$ alkstore.ack_batch('q', '{}') $$),
    pg_temp.effect($$ alkstore.ack_batch('q', '{1,2,3,99,1}', '{1,1,1,1,1}') $$)],
  '{"0, untouched","0, untouched","2, changed"}',
  '[ack-batch] cancelled, unknown and repeated ids do not count, and no ids give 0');

-- Job 1 is in its second claim, 2 lapsed, 3 delayed, 4 of another queue, 5 dead.
SELECT pg_temp.fresh();
SELECT alkstore.enqueue_batch('q', '[1,2]', visibility_timeout_s => 10);
SELECT alkstore.enqueue('q', '3', delay_s => 1000); SELECT alkstore.enqueue('p', '4'); SELECT alkstore.enqueue('q', '5');
SELECT alkstore.claim('q', 'w', 3); SELECT alkstore.claim('p', 'w'); SELECT alkstore.fail('q', 5, 1);
SELECT pg_temp.advance(11); SELECT alkstore.claim('q', 'v');
SELECT is(
  pg_temp.effect($$ alkstore.ack_batch('q', '{1,2,3,4,5,NULL}') $$)
    || pg_temp.lines($$ SELECT job_id, state FROM alkstore.jobs ORDER BY job_id $$),
  '{"1, changed",2|processing,3|pending,4|processing,5|dead}',
  '[ack-batch] without attempts all but the attempt is checked');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue_batch('q', '[1,2,3]'); SELECT alkstore.claim('q', 'w', 3);
SELECT is(
  pg_temp.effect($$ alkstore.ack_batch('q', '{1,2,3}', '{NULL,2,1}') $$)
    || pg_temp.lines($$ SELECT job_id FROM alkstore.jobs $$),
  '{"2, changed",2}', '[ack-batch] a NULL attempt goes unchecked, those beside it are checked');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1'); SELECT alkstore.claim('q', 'w');
SELECT is(
  ARRAY[
    pg_temp.effect($$ alkstore.ack_batch('q', '{NULL}') $$),
    pg_temp.effect($$ alkstore.ack_batch('q', '{NULL,NULL}', '{1,NULL}') $$),
    pg_temp.effect($$ alkstore.ack_batch('q', '{NULL,1}', '{1,1}') $$)],
  '{"0, untouched","0, untouched","1, changed"}', '[ack-batch] a NULL id does not count');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', visibility_timeout_s => 2); SELECT alkstore.enqueue('q', '2', visibility_timeout_s => 60);
SELECT alkstore.claim('q', 'w', 2); SELECT pg_temp.advance(3);
SELECT is(
  pg_temp.effect($$ alkstore.ack_batch(queue => 'q', job_ids => '{1,2}', attempts => '{1,1}') $$)
    || pg_temp.lines($$ SELECT job_id, attempt, worker_id FROM alkstore.claim('q', 'v', 2) $$),
  '{"1, changed",1|2|v}', '[ack-batch] in one batch each claim goes by its own deadline');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1'); SELECT alkstore.claim('q', 'w');
SELECT is(
  ARRAY[
    pg_temp.effect($$ alkstore.ack_batch('q', NULL) $$),
    pg_temp.effect($$ alkstore.ack_batch('q', NULL, '{1}') $$),
    pg_temp.effect($$ alkstore.ack_batch('q', '{1}', '{}') $$),
    pg_temp.effect($$ alkstore.ack_batch('q', '{1}', '{1,1}') $$),
    pg_temp.effect($$ alkstore.ack_batch('q', '{}', '{1}') $$)],
  '{"AK003, untouched","AK003, untouched","AK003, untouched","AK003, untouched","AK003, untouched"}',
  '[ack-batch] PostgreSQL: NULL for the ids and arrays of two lengths are AK003');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue_batch('q', '[1,2]'); SELECT alkstore.claim('q', 'w', 2);
UPDATE alkstore._job SET queue = '__alkstore_q';
SELECT is(
  ARRAY[
    pg_temp.effect($$ alkstore.ack('__alkstore_none', 1, 1) $$),
    pg_temp.effect($$ alkstore.ack('__alkstore_q', 1, 1) $$),
    pg_temp.effect($$ alkstore.ack_batch('__alkstore_q', '{2}', '{1}') $$)],
  '{"false, untouched","true, changed","1, changed"}', '[name] ack, ack_batch: a reserved queue is accepted');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1'); SELECT alkstore.claim('q', 'w');
SELECT is(
  ARRAY[
    pg_temp.effect($$ alkstore.ack(NULL, 1, 1) $$),
    pg_temp.effect($$ alkstore.ack('', 1, 1) $$),
    pg_temp.effect($$ alkstore.ack(repeat('é', 128), 1, 1) $$),
    pg_temp.effect($$ alkstore.ack(repeat('é', 127) || 'e', 1, 1) $$),
    pg_temp.effect($$ alkstore.ack_batch(NULL, '{1}') $$),
    pg_temp.effect($$ alkstore.ack_batch('', '{1}') $$),
    pg_temp.effect($$ alkstore.ack_batch(repeat('é', 128), '{1}') $$),
    pg_temp.effect($$ alkstore.ack_batch(repeat('é', 127) || 'e', '{1}') $$)],
  ARRAY['AK001, untouched', 'AK001, untouched', 'AK001, untouched', 'false, untouched',
        'AK001, untouched', 'AK001, untouched', 'AK001, untouched', '0, untouched'],
  '[refusals] ack, ack_batch: a queue name that cannot exist is AK001');

SELECT is(
  ARRAY[
    pg_temp.effect($$ alkstore.ack('q', 1, 2) $$),
    pg_temp.effect($$ alkstore.ack_batch('q', '{1,2}', '{2,1}') $$)],
  '{"false, untouched","0, untouched"}', '[idle] a refused ack or ack_batch writes nothing');

SELECT pg_temp.fresh();
-- A bitmap of their rows does not fit into so little memory.
SET LOCAL work_mem = '64kB';
INSERT INTO alkstore._job (
  queue, payload, priority, max_attempts, visibility_timeout_s, backoff_base_s, created_at, run_at, ready, due_at,
  attempts, worker_id, claimed_at, claim_expires_at)
SELECT 'q', '1', 0, 3, 300, 5, c.now, c.now, false, c.now + '301 s', 1, 'w', c.now, c.now + '300 s'
FROM (SELECT alkstore._now() AS now) c, generate_series(1, 100000);
SET LOCAL statement_timeout = '15 s';
SELECT is(
  ARRAY[alkstore.ack_batch('q', ARRAY(SELECT generate_series(1, 100000)), array_fill(1::bigint, '{100000}'))]
  || pg_temp.lines($$ SELECT * FROM alkstore.jobs $$)::bigint[],
  '{100000}', '[ack-batch] a great many are acked at once');
RESET statement_timeout;
RESET work_mem;

SELECT * FROM finish();
ROLLBACK;
