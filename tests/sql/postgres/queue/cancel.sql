-- cancel
BEGIN;
SELECT plan(8);
\ir ../clock.sql
\ir ../_effects.sql

SELECT pg_temp.fresh();
SELECT alkstore.enqueue_batch('q', '[1,2,3]'); SELECT alkstore.claim('q', 'w');
SELECT is(
  ARRAY[
    pg_temp.effect($$ alkstore.cancel(queue => 'q', job_id => 2) $$),
    pg_temp.effect($$ alkstore.cancel('q', 1) $$)]
  || pg_temp.lines($$ SELECT job_id, state FROM alkstore.jobs $$),
  '{"true, changed","true, changed",3|pending}', '[cancel] a pending and a processing job are deleted, and no other');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', delay_s => 100); SELECT alkstore.enqueue('q', '2', expires_s => 10);
SELECT alkstore.enqueue('q', '3', priority => 1);
SELECT alkstore.claim('q', 'w'); SELECT pg_temp.advance(301);
SELECT is(
  ARRAY[
    pg_temp.effect($$ alkstore.cancel('q', 1) $$),
    pg_temp.effect($$ alkstore.cancel('q', 2) $$),
    pg_temp.effect($$ alkstore.cancel('q', 3) $$)],
  '{"true, changed","true, changed","true, changed"}', '[cancel] so are a delayed, an expired and a lapsed job');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1'); SELECT alkstore.claim('q', 'w'); SELECT alkstore.fail('q', 1, 1);
SELECT is(pg_temp.effect($$ alkstore.cancel('q', 1) $$), 'false, untouched', '[cancel] a dead job stays');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1'); SELECT alkstore.enqueue('q', '2'); SELECT alkstore.cancel('q', 2);
SELECT is(
  ARRAY[
    pg_temp.effect($$ alkstore.cancel('other', 1) $$),
    pg_temp.effect($$ alkstore.cancel('q', 2) $$),
    pg_temp.effect($$ alkstore.cancel('q', 99) $$),
    pg_temp.effect($$ alkstore.cancel('q', NULL) $$)],
  '{"false, untouched","false, untouched","false, untouched","false, untouched"}',
  '[cancel] another queue''s, a cancelled, an unknown and a NULL job_id are refused');
SELECT is(pg_temp.lines($$ SELECT alkstore.enqueue('q', '3') $$), '{3}', '[cancel] the id of a cancelled job is not used again');

SELECT is(pg_temp.effect($$ alkstore.cancel('__alkstore_q', 1) $$), 'AK001, untouched', '[name] cancel: a reserved queue is refused');
SELECT is(
  ARRAY[
    pg_temp.effect($$ alkstore.cancel(NULL, 1) $$),
    pg_temp.effect($$ alkstore.cancel('', 1) $$),
    pg_temp.effect($$ alkstore.cancel(repeat('é', 128), 1) $$),
    pg_temp.effect($$ alkstore.cancel(repeat('é', 127) || 'e', 1) $$)],
  '{"AK001, untouched","AK001, untouched","AK001, untouched","false, untouched"}',
  '[refusals] cancel: a queue name that cannot exist is AK001');
SELECT is(pg_temp.effect($$ alkstore.cancel('q', 99) $$), 'false, untouched', '[idle] a refused cancel writes nothing');

SELECT * FROM finish();
ROLLBACK;
