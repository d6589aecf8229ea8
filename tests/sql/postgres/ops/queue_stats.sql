-- queue_stats
BEGIN;
SELECT plan(6);
\ir ../clock.sql
\ir ../_effects.sql

SELECT is(
  pg_temp.lines($$
    SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
    WHERE attrelid = 'alkstore.queue_stats'::regclass AND attnum > 0 ORDER BY attnum $$),
  '{queue|text,ready|bigint,delayed|bigint,processing|bigint,lapsed|bigint,expired|bigint,dead|bigint,
    "oldest_ready_at|timestamp with time zone"}',
  '[queue-stats] the columns of queue_stats, in order');

SELECT pg_temp.fresh();
SELECT is(pg_temp.lines($$ SELECT * FROM alkstore.queue_stats $$), '{}', '[queue-stats] no row where there is no job');

-- Jobs of each kind, and of each kind past their expiry, in numbers that tell them apart.
SELECT pg_temp.fresh();
SELECT alkstore.enqueue_batch('q', '[1,2]', visibility_timeout_s => 100, priority => 9);
SELECT alkstore.enqueue_batch('q', '[1,2,3]', visibility_timeout_s => 99, priority => 9);
SELECT alkstore.enqueue('q', '1', visibility_timeout_s => 100, priority => 9, expires_s => 99);
SELECT alkstore.enqueue('q', '1', visibility_timeout_s => 99, priority => 9, expires_s => 99);
SELECT alkstore.enqueue_batch('q', '[1,2,3,4,5,6]', priority => 9);
SELECT count(*) FROM alkstore.claim('q', 'w', 13);
SELECT count(alkstore.fail('q', i, 1)) FROM generate_series(8, 13) i;
SELECT alkstore.enqueue_batch('q', '[1,2,3,4]', run_at => '2001-09-09 01:46:45+00');
SELECT alkstore.enqueue('q', '1', delay_s => 100, expires_s => 100);
SELECT alkstore.enqueue('q', '1', run_at => '2001-09-09 01:46:39+00', expires_s => 99);
SELECT alkstore.enqueue_batch('q', '[1,2,3,4,5,6,7]', delay_s => 101, expires_s => 200);
SELECT alkstore.enqueue('q', '1', delay_s => 101, expires_s => 99);
SELECT alkstore.enqueue('p', '1', delay_s => 101); SELECT alkstore.enqueue('P', '1');
SELECT alkstore.claim('P', 'w'); SELECT alkstore.fail('P', 29, 1);
SELECT pg_temp.advance(100);
SELECT is(
  pg_temp.lines($$ SELECT * FROM alkstore.queue_stats ORDER BY queue COLLATE "C" $$),
  '{P|0|0|0|0|0|1|NULL,p|0|1|0|0|0|0|NULL,q|5|7|2|3|4|6|1000000005}',
  '[queue-stats] each job counts once, and the oldest ready one is told');
SELECT is(
  pg_temp.lines($$ SELECT ready + delayed + processing + lapsed + expired FROM alkstore.queue_stats WHERE queue = 'q' $$)
    || pg_temp.lines($$ SELECT count(*) FROM alkstore.jobs WHERE queue = 'q' AND state <> 'dead' $$),
  '{21,21}', '[queue-stats] the live jobs add up');

SELECT pg_temp.fresh();
SELECT count(alkstore.enqueue('q', '1', visibility_timeout_s => 10)) FROM generate_series(1, 102);
SELECT count(*) FROM alkstore.claim('q', 'w', 102); SELECT pg_temp.advance(11); SELECT alkstore.claim('q', 'v');
SELECT is(pg_temp.lines($$ SELECT ready, processing, lapsed FROM alkstore.queue_stats $$), '{0|1|101}',
  '[queue-stats] a lapsed job is lapsed until a claim takes it');
SELECT is(pg_temp.effect($$ count(*) FROM alkstore.queue_stats $$), '1, untouched', '[queue-stats] to look writes nothing');

SELECT * FROM finish();
ROLLBACK;
