-- heartbeat
BEGIN;
SELECT plan(27);
\ir ../clock.sql
\ir ../_effects.sql

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '{"a": 1}', priority => 7, expires_s => 1000, max_attempts => 5, visibility_timeout_s => 60,
  backoff_base_s => 9, dead_letter_retention_s => 77);
SELECT alkstore.enqueue('q', '2');
SELECT pg_temp.advance(10); SELECT alkstore.claim('q', 'w', 2); SELECT pg_temp.advance(10);
SELECT is(
  pg_temp.effect($$ alkstore.heartbeat(queue => 'q', job_id => 1, attempt => 1, extend_s => 100) $$)
    || pg_temp.lines($$ SELECT * FROM alkstore.jobs WHERE job_id = 1 $$)
    || pg_temp.lines($$ SELECT job_id, claim_expires_at FROM alkstore.jobs WHERE job_id = 2 $$),
  ARRAY['true, changed',
    '1|q|processing|{"a": 1}|7|1|5|60|9|77|w|1000000000|1000000000|1000001000|1000000010|1000000120|NULL|NULL|NULL|0',
    '2|1000000310'],
  '[heartbeat] the deadline is extend_s from now, not added, and nothing else changes');
SELECT alkstore.heartbeat('q', 1, 1);
SELECT is(pg_temp.lines($$ SELECT claim_expires_at FROM alkstore.jobs WHERE job_id = 1 $$), '{1000000080}',
  '[heartbeat] without extend_s the deadline is the job''s visibility timeout from now');
SELECT alkstore.heartbeat('q', 1, 1, 1);
SELECT is(pg_temp.lines($$ SELECT claim_expires_at FROM alkstore.jobs WHERE job_id = 1 $$), '{1000000021}',
  '[heartbeat] the deadline may come nearer');
SELECT alkstore.heartbeat('q', 1, 1, 2147483647);
SELECT is(pg_temp.lines($$ SELECT claim_expires_at FROM alkstore.jobs WHERE job_id = 1 $$), '{3147483667}',
  '[heartbeat] extend_s may be 2147483647');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', visibility_timeout_s => 10); SELECT alkstore.claim('q', 'w');
SELECT pg_temp.advance(10); SELECT alkstore.heartbeat('q', 1, 1);
SELECT pg_temp.advance(10);
SELECT is(pg_temp.lines($$ SELECT job_id FROM alkstore.claim('q', 'v') $$), '{}',
  '[heartbeat] nobody claims the job until the new deadline has passed');
SELECT pg_temp.advance(1);
SELECT is(pg_temp.lines($$ SELECT job_id, attempt FROM alkstore.claim('q', 'v') $$), '{1|2}',
  '[heartbeat] past the new deadline the job is claimed again');

SELECT pg_temp.fresh();
SELECT count(alkstore.enqueue('q', '1', visibility_timeout_s => 10)) FROM generate_series(1, 102);
SELECT count(*) FROM alkstore.claim('q', 'w', 102);
-- The clock runs on past all deadlines, a claim of one job looks at them, and the clock steps back.
SELECT pg_temp.advance(11); SELECT alkstore.claim('q', 'v');
SELECT pg_temp.advance(-1); SELECT alkstore.heartbeat('q', 102, 1);
SELECT is(pg_temp.lines($$ SELECT ready, count(*), max(id) FROM alkstore._job GROUP BY 1 ORDER BY 1 $$), '{false|2|102,true|100|101}',
  '[plans] a job that is held on to leaves the index that claims read');
SELECT pg_temp.advance(1);
SELECT is(pg_temp.lines($$ SELECT count(*), max(job_id) FROM alkstore.claim('q', 'v', 102) $$), '{100|101}',
  '[heartbeat] a job that had become claimable before the clock stepped back is not any more');

-- [valid]
SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1');
SELECT is(pg_temp.effect($$ alkstore.heartbeat('q', 1, 0) $$), 'false, untouched',
  '[valid] heartbeat: a job never claimed is refused');
SELECT alkstore.claim('q', 'w');
SELECT is(pg_temp.effect($$ alkstore.heartbeat('q', 1, 2) $$), 'false, untouched',
  '[valid] heartbeat: another attempt number is refused');
SELECT is(pg_temp.effect($$ alkstore.heartbeat('other', 1, 1) $$), 'false, untouched',
  '[valid] heartbeat: another queue is refused');
SELECT is(pg_temp.effect($$ alkstore.heartbeat('q', 2, 1) $$), 'false, untouched',
  '[valid] heartbeat: an unknown job is refused');
SELECT is(pg_temp.effect($$ alkstore.heartbeat('q', NULL, 1) $$), 'false, untouched',
  '[valid] heartbeat: a NULL job_id is refused');
SELECT is(pg_temp.effect($$ alkstore.heartbeat('q', 1, NULL) $$), 'false, untouched',
  '[valid] heartbeat: a NULL attempt is refused');
SELECT alkstore.release('q', 1, 1);
SELECT is(pg_temp.effect($$ alkstore.heartbeat('q', 1, 1) $$), 'false, untouched',
  '[valid] heartbeat: a job given back is refused');
SELECT alkstore.claim('q', 'w');
SELECT pg_temp.advance(301);
SELECT is(pg_temp.effect($$ alkstore.heartbeat('q', 1, 2) $$), 'false, untouched',
  '[valid] heartbeat: a lapsed claim is refused though nobody took the job');
SELECT alkstore.claim('q', 'v');
SELECT is(pg_temp.effect($$ alkstore.heartbeat('q', 1, 2) $$), 'false, untouched',
  '[valid] heartbeat: a claim that another worker took over is refused');
SELECT pg_temp.advance(301);
SELECT alkstore.claim('q', 'v');
SELECT is(pg_temp.effect($$ alkstore.heartbeat('q', 1, 3) $$), 'false, untouched',
  '[valid] heartbeat: a claim that the same worker name took over is refused');
SELECT alkstore.fail('q', 1, 4);
SELECT is(pg_temp.effect($$ alkstore.heartbeat('q', 1, 4) $$), 'false, untouched',
  '[valid] heartbeat: a dead job is refused');
SELECT alkstore.enqueue('q', '2'); SELECT alkstore.claim('q', 'w'); SELECT alkstore.cancel('q', 2);
SELECT is(pg_temp.effect($$ alkstore.heartbeat('q', 2, 1) $$), 'false, untouched',
  '[valid] heartbeat: a cancelled job is refused');
SELECT alkstore.enqueue('q', '3'); SELECT alkstore.claim('q', 'w'); SELECT alkstore.ack('q', 3, 1);
SELECT is(pg_temp.effect($$ alkstore.heartbeat('q', 3, 1) $$), 'false, untouched',
  '[valid] heartbeat: a job acked before is refused');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1'); SELECT alkstore.claim('q', 'w'); SELECT pg_temp.advance(300);
SELECT is(pg_temp.effect($$ alkstore.heartbeat('q', 1, 1) $$), 'true, changed',
  '[valid] heartbeat: accepted at the very second of claim_expires_at');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', expires_s => 10); SELECT alkstore.claim('q', 'w'); SELECT pg_temp.advance(11);
SELECT is(pg_temp.effect($$ alkstore.heartbeat('q', 1, 1) $$), 'true, changed',
  '[valid] heartbeat: accepted past expires_at');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1'); SELECT alkstore.claim('q', 'w'); UPDATE alkstore._job SET queue = '__alkstore_q';
SELECT is(
  ARRAY[
    pg_temp.effect($$ alkstore.heartbeat('__alkstore_none', 1, 1) $$),
    pg_temp.effect($$ alkstore.heartbeat('__alkstore_q', 1, 1) $$)],
  '{"false, untouched","true, changed"}', '[name] heartbeat: a reserved queue is accepted');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1'); SELECT alkstore.claim('q', 'w');
SELECT is(
  ARRAY[
    pg_temp.effect($$ alkstore.heartbeat(NULL, 1, 1) $$),
    pg_temp.effect($$ alkstore.heartbeat('', 1, 1) $$),
    pg_temp.effect($$ alkstore.heartbeat(repeat('é', 128), 1, 1) $$),
    pg_temp.effect($$ alkstore.heartbeat(repeat('é', 127) || 'e', 1, 1) $$)],
  '{"AK001, untouched","AK001, untouched","AK001, untouched","false, untouched"}',
  '[refusals] heartbeat: a queue name that cannot exist is AK001');
SELECT is(
  ARRAY[
    pg_temp.effect($$ alkstore.heartbeat('q', 1, 1, 0) $$),
    pg_temp.effect($$ alkstore.heartbeat('q', 1, 1, -1) $$),
    pg_temp.effect($$ alkstore.heartbeat('q', 1, 1, 2147483648) $$),
    pg_temp.effect($$ alkstore.heartbeat('q', 1, 1, 9223372036854775807) $$),
    pg_temp.effect($$ alkstore.heartbeat('q', 1, 9, 0) $$)],
  '{"AK003, untouched","AK003, untouched","AK003, untouched","AK003, untouched","AK003, untouched"}',
  '[refusals] heartbeat: extend_s below 1 or beyond 32 bits is AK003, also when the claim is stale');
SELECT is(pg_temp.effect($$ alkstore.heartbeat('q', 1, 9) $$), 'false, untouched',
  '[idle] a refused heartbeat writes nothing');

SELECT * FROM finish();
ROLLBACK;
