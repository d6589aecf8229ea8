-- fail
BEGIN;
SELECT plan(27);
\ir ../clock.sql
\ir ../_effects.sql

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', max_attempts => 9); SELECT alkstore.enqueue('q', '2');
SELECT alkstore.claim('q', 'w', 2);
SELECT is(
  pg_temp.effect($$ alkstore.fail(queue => 'q', job_id => 1, attempt => 1, error => 'no such user') $$)
    || pg_temp.lines($$ SELECT job_id, state, last_error, retry_error FROM alkstore.jobs ORDER BY job_id $$),
  '{"true, changed","1|dead|no such user|NULL",2|processing|NULL|NULL}',
  '[fail] the job is dead at once, whatever attempts it has left, with the error given');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue_batch('q', '[1,2,3]'); SELECT alkstore.claim('q', 'w', 3);
SELECT alkstore.fail('q', 1, 1); SELECT alkstore.fail('q', 2, 1, NULL); SELECT alkstore.fail('q', 3, 1, '');
SELECT is(pg_temp.lines($$ SELECT job_id, last_error FROM alkstore.jobs ORDER BY job_id $$), '{1|failed,2|failed,3|}',
  '[fail] without an error last_error is failed, an empty error stays empty');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1'); SELECT alkstore.claim('q', 'w'); SELECT alkstore.retry('q', 1, 1, 'oops', 0);
SELECT alkstore.claim('q', 'w'); SELECT alkstore.fail('q', 1, 2, 'gone');
SELECT is(pg_temp.lines($$ SELECT retry_error, last_error FROM alkstore.jobs $$), '{oops|gone}',
  '[fail] retry_error stays what retry was given');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '{"b":1, "a":[1.0,1e2]}', delay_s => 5, priority => 7, expires_s => 1000, max_attempts => 5,
  visibility_timeout_s => 60, backoff_base_s => 9, dead_letter_retention_s => 77);
SELECT pg_temp.advance(10); SELECT alkstore.claim('q', 'w'); SELECT alkstore.release('q', 1, 1);
SELECT pg_temp.advance(10); SELECT alkstore.claim('q', 'w'); SELECT alkstore.retry('q', 1, 2, 'oops', 1);
SELECT pg_temp.advance(10); SELECT alkstore.claim('q', 'w');
SELECT pg_temp.advance(10); SELECT alkstore.fail('q', 1, 3, 'boom');
SELECT is(pg_temp.lines($$ SELECT * FROM alkstore.jobs $$), ARRAY[
    '1|q|dead|{"b":1, "a":[1.0,1e2]}|7|3|5|60|9|77|w|1000000000|1000000021|1000001000|1000000030|1000000090|oops|boom|1000000040|1'],
  '[dead-move] a dead job keeps its id, payload, stamps, attempts and instants');

-- Four ways to die: fail, retry, sweep and, by a claim, too many lapses.
SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1'); SELECT alkstore.enqueue('q', '2', max_attempts => 1);
SELECT alkstore.enqueue('q', '3', expires_s => 10); SELECT alkstore.enqueue('q', '4', max_attempts => 1);
SELECT alkstore.claim('q', 'w', 4);
SELECT alkstore.fail('q', 1, 1); SELECT alkstore.retry('q', 2, 1, NULL);
SELECT pg_temp.advance(301); SELECT alkstore.sweep_expired('q'); SELECT alkstore.claim('q', 'w', 4);
SELECT is(
  pg_temp.lines($$ SELECT count(*) FROM alkstore._job $$)
    || pg_temp.lines($$ SELECT job_id, state, last_error FROM alkstore.jobs ORDER BY job_id $$),
  '{0,1|dead|failed,"2|dead|max attempts exceeded",3|dead|expired,"4|dead|max attempts exceeded"}',
  '[dead-move] a dead job is in the dead storage alone, however it died');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', max_attempts => 1, expires_s => 10); SELECT alkstore.claim('q', 'w');
CREATE FUNCTION pg_temp.break() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'broken'; END $$;
CREATE TRIGGER break BEFORE DELETE ON alkstore._job FOR EACH ROW EXECUTE FUNCTION pg_temp.break();
SELECT ARRAY[
  pg_temp.effect($$ alkstore.fail('q', 1, 1) $$),
  pg_temp.effect($$ alkstore.retry('q', 1, 1, NULL) $$)] AS held \gset
SELECT pg_temp.advance(301);
SELECT is(
  :'held' || ARRAY[
    pg_temp.effect($$ alkstore.sweep_expired('q') $$),
    pg_temp.effect($$ alkstore.claim('q', 'w') $$)],
  '{"P0001, untouched","P0001, untouched","P0001, untouched","P0001, untouched"}',
  '[dead-move] a move that breaks off leaves the job where it was');
DROP TRIGGER break ON alkstore._job;

SELECT pg_temp.fresh();
SELECT alkstore.enqueue_batch('q', '[1,2]'); SELECT alkstore.claim('q', 'w', 2);
SELECT alkstore.fail('q', 1, 1); SELECT pg_temp.advance(301);
SELECT is(pg_temp.lines($$ SELECT job_id FROM alkstore.claim('q', 'w', 9) $$), '{2}',
  '[dead-move] a dead job is never claimed');

-- [valid]
SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1');
SELECT is(pg_temp.effect($$ alkstore.fail('q', 1, 0) $$), 'false, untouched',
  '[valid] fail: a job never claimed is refused');
SELECT alkstore.claim('q', 'w');
SELECT is(pg_temp.effect($$ alkstore.fail('q', 1, 2) $$), 'false, untouched',
  '[valid] fail: another attempt number is refused');
SELECT is(pg_temp.effect($$ alkstore.fail('other', 1, 1) $$), 'false, untouched',
  '[valid] fail: another queue is refused');
SELECT is(pg_temp.effect($$ alkstore.fail('q', 2, 1) $$), 'false, untouched',
  '[valid] fail: an unknown job is refused');
SELECT is(pg_temp.effect($$ alkstore.fail('q', NULL, 1) $$), 'false, untouched',
  '[valid] fail: a NULL job_id is refused');
SELECT is(pg_temp.effect($$ alkstore.fail('q', 1, NULL) $$), 'false, untouched',
  '[valid] fail: a NULL attempt is refused');
SELECT alkstore.release('q', 1, 1);
SELECT is(pg_temp.effect($$ alkstore.fail('q', 1, 1) $$), 'false, untouched',
  '[valid] fail: a job given back is refused');
SELECT alkstore.claim('q', 'w');
SELECT pg_temp.advance(301);
SELECT is(pg_temp.effect($$ alkstore.fail('q', 1, 2) $$), 'false, untouched',
  '[valid] fail: a lapsed claim is refused though nobody took the job');
SELECT alkstore.claim('q', 'v');
SELECT is(pg_temp.effect($$ alkstore.fail('q', 1, 2) $$), 'false, untouched',
  '[valid] fail: a claim that another worker took over is refused');
SELECT pg_temp.advance(301);
SELECT alkstore.claim('q', 'v');
SELECT is(pg_temp.effect($$ alkstore.fail('q', 1, 3) $$), 'false, untouched',
  '[valid] fail: a claim that the same worker name took over is refused');
SELECT alkstore.fail('q', 1, 4);
SELECT is(pg_temp.effect($$ alkstore.fail('q', 1, 4) $$), 'false, untouched',
  '[valid] fail: a dead job is refused');
SELECT alkstore.enqueue('q', '2'); SELECT alkstore.claim('q', 'w'); SELECT alkstore.cancel('q', 2);
SELECT is(pg_temp.effect($$ alkstore.fail('q', 2, 1) $$), 'false, untouched',
  '[valid] fail: a cancelled job is refused');
SELECT alkstore.enqueue('q', '3'); SELECT alkstore.claim('q', 'w'); SELECT alkstore.ack('q', 3, 1);
SELECT is(pg_temp.effect($$ alkstore.fail('q', 3, 1) $$), 'false, untouched',
  '[valid] fail: a job acked before is refused');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1'); SELECT alkstore.claim('q', 'w'); SELECT pg_temp.advance(300);
SELECT is(pg_temp.effect($$ alkstore.fail('q', 1, 1) $$), 'true, changed',
  '[valid] fail: accepted at the very second of claim_expires_at');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', expires_s => 10); SELECT alkstore.claim('q', 'w'); SELECT pg_temp.advance(11);
SELECT is(pg_temp.effect($$ alkstore.fail('q', 1, 1) $$), 'true, changed',
  '[valid] fail: accepted past expires_at');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue_batch('q', '[1,2,3]'); SELECT alkstore.claim('q', 'w', 3);
SELECT is(
  ARRAY[
    pg_temp.effect($$ alkstore.fail('q', 1, 1, repeat('😀', 65536)) $$),
    pg_temp.effect($$ alkstore.fail('q', 2, 1, repeat('😀', 65537)) $$),
    pg_temp.effect($$ alkstore.fail('q', 3, 1, repeat('x', 10485760)) $$)]
  || pg_temp.lines($$
    SELECT job_id, last_error = repeat('😀', 65536), last_error = repeat('x', 65536) FROM alkstore.jobs ORDER BY job_id $$),
  '{"true, changed","true, changed","true, changed",1|true|false,2|true|false,3|false|true}',
  '[error-text] an error given to fail is cut at 65536 characters');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1'); SELECT alkstore.claim('q', 'w');
-- PostgreSQL itself has no text with a NUL: there is nothing to cut, and the call does not begin.
SELECT is(pg_temp.effect($$ alkstore.fail('q', 1, 1, 'a' || chr(0) || 'b') $$), '54000, untouched',
  '[error-text] an error given to fail cannot bring in a NUL');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1'); SELECT alkstore.claim('q', 'w'); UPDATE alkstore._job SET queue = '__alkstore_q';
SELECT is(
  ARRAY[
    pg_temp.effect($$ alkstore.fail('__alkstore_none', 1, 1) $$),
    pg_temp.effect($$ alkstore.fail('__alkstore_q', 1, 1) $$)],
  '{"false, untouched","true, changed"}', '[name] fail: a reserved queue is accepted');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1'); SELECT alkstore.claim('q', 'w');
SELECT is(
  ARRAY[
    pg_temp.effect($$ alkstore.fail(NULL, 1, 1) $$),
    pg_temp.effect($$ alkstore.fail('', 1, 1) $$),
    pg_temp.effect($$ alkstore.fail(repeat('é', 128), 1, 1) $$),
    pg_temp.effect($$ alkstore.fail(repeat('é', 127) || 'e', 1, 1) $$)],
  '{"AK001, untouched","AK001, untouched","AK001, untouched","false, untouched"}',
  '[refusals] fail: a queue name that cannot exist is AK001');
SELECT is(pg_temp.effect($$ alkstore.fail('q', 1, 9) $$), 'false, untouched',
  '[idle] a refused fail writes nothing');

SELECT * FROM finish();
ROLLBACK;
