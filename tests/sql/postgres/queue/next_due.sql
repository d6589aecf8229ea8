-- next_due
BEGIN;
SELECT plan(15);
\ir ../clock.sql
\ir ../_effects.sql

SELECT pg_temp.fresh();
SELECT is(pg_temp.lines($$ SELECT alkstore.next_due('q') $$), '{"NULL"}', '[next-due] NULL where there is no job');

SELECT alkstore.enqueue('q', '1', delay_s => 50); SELECT alkstore.enqueue('q', '2', delay_s => 30);
SELECT alkstore.enqueue('q', '3', delay_s => 40, priority => 9); SELECT alkstore.enqueue('p', '4', delay_s => 10);
SELECT is(pg_temp.lines($$ SELECT alkstore.next_due(queue => 'q'), alkstore.next_due('p') $$), '{1000000030|1000000010}',
  '[next-due] the earliest run_at of the queue''s delayed jobs');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', run_at => '2001-09-09 01:46:00+00');
SELECT alkstore.enqueue('q', '2', delay_s => 30);
SELECT alkstore.enqueue('p', '3', run_at => '0001-01-01 00:00:00+00');
SELECT is(pg_temp.lines($$ SELECT alkstore.next_due('q') <= alkstore._now(), alkstore.next_due('p') <= alkstore._now() $$),
  '{true|true}', '[next-due] not in the future when a job is ready');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', visibility_timeout_s => 60); SELECT alkstore.enqueue('q', '2', visibility_timeout_s => 40);
SELECT alkstore.claim('q', 'w', 2);
SELECT pg_temp.lines($$ SELECT alkstore.next_due('q') $$) AS due \gset
SELECT pg_temp.advance(40); SELECT pg_temp.lines($$ SELECT job_id FROM alkstore.claim('q', 'v') $$) AS early \gset
SELECT pg_temp.advance(1);
SELECT is(
  :'due'::text[] || :'early'::text[] || pg_temp.lines($$ SELECT job_id FROM alkstore.claim('q', 'v') $$),
  '{1000000041,2}', '[next-due] a claimed job is due one second past its claim_expires_at, when a claim takes it');
SELECT alkstore.heartbeat('q', 1, 1, 10);
SELECT is(pg_temp.lines($$ SELECT alkstore.next_due('q') $$), '{1000000052}', '[next-due] a heartbeat moves it');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', max_attempts => 1); SELECT alkstore.claim('q', 'w');
SELECT pg_temp.lines($$ SELECT alkstore.next_due('q') $$) AS due \gset
SELECT pg_temp.advance(301); SELECT count(*) FROM alkstore.claim('q', 'w');
SELECT is(:'due'::text[] || pg_temp.lines($$ SELECT state, alkstore.next_due('q') FROM alkstore.jobs $$),
  '{1000000301,dead|NULL}', '[next-due] a claimed job without attempts left counts too: a claim then buries it');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', delay_s => 30, expires_s => 29);
SELECT pg_temp.lines($$ SELECT alkstore.next_due('q') $$) AS expires_before \gset
SELECT alkstore.enqueue('q', '2', delay_s => 40, expires_s => 40);
SELECT is(:'expires_before'::text[] || pg_temp.lines($$ SELECT alkstore.next_due('q') $$), '{"NULL",1000000040}',
  '[next-due] a delayed job that expires before it is due does not count, one that expires then does');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', expires_s => 60, visibility_timeout_s => 60, priority => 1); SELECT alkstore.claim('q', 'w');
SELECT pg_temp.lines($$ SELECT alkstore.next_due('q') $$) AS expires_before \gset
SELECT alkstore.enqueue('q', '2', expires_s => 61, visibility_timeout_s => 60); SELECT alkstore.claim('q', 'w');
SELECT is(:'expires_before'::text[] || pg_temp.lines($$ SELECT alkstore.next_due('q') $$), '{"NULL",1000000061}',
  '[next-due] a claimed job that expires before it lapses does not count, one that expires then does');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1', expires_s => 10); SELECT alkstore.enqueue('q', '2', expires_s => 10, delay_s => 5);
SELECT alkstore.enqueue('q', '3', expires_s => 10, visibility_timeout_s => 5, priority => 1); SELECT alkstore.claim('q', 'w');
SELECT pg_temp.advance(11);
SELECT is(pg_temp.lines($$ SELECT alkstore.next_due('q') $$), '{"NULL"}', '[next-due] an expired job does not count');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue_batch('q', '[1,2,3]'); SELECT alkstore.claim('q', 'w', 2);
SELECT alkstore.fail('q', 1, 1); SELECT alkstore.ack('q', 2, 1); SELECT alkstore.cancel('q', 3);
SELECT is(pg_temp.lines($$ SELECT alkstore.next_due('q') $$), '{"NULL"}', '[next-due] dead, acked and cancelled jobs do not count');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1'); SELECT alkstore.claim('q', 'w'); SELECT alkstore.retry('q', 1, 1, NULL, 20);
SELECT pg_temp.lines($$ SELECT alkstore.next_due('q') $$) AS retried \gset
SELECT pg_temp.advance(20); SELECT alkstore.claim('q', 'w'); SELECT alkstore.release('q', 1, 2);
SELECT is(:'retried'::text[] || pg_temp.lines($$ SELECT alkstore.next_due('q') $$), '{1000000020,1000000020}',
  '[next-due] a retried job is due after its delay, a released one at its old run_at');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1'); SELECT alkstore.enqueue('q', '2', delay_s => 5); SELECT pg_temp.advance(-10);
SELECT is(pg_temp.lines($$ SELECT alkstore.next_due('q'), (SELECT count(*) FROM alkstore.claim('q', 'w')) $$), '{1000000000|0}',
  '[next-due] after the clock stepped back: when the clock is there again');

-- Jobs of all kinds, against the definition, as time goes on and claims are made.
SELECT pg_temp.fresh();
CREATE TEMPORARY VIEW expected AS
SELECT min(d.due) AS due
FROM (
  SELECT CASE state WHEN 'pending' THEN run_at ELSE claim_expires_at + interval '1 s' END AS due, expires_at
  FROM alkstore.jobs WHERE state <> 'dead') d, (SELECT alkstore._now() AS now) c
WHERE d.expires_at IS NULL OR d.expires_at >= greatest(d.due, c.now);
CREATE FUNCTION pg_temp.agrees() RETURNS text LANGUAGE sql AS $$
  SELECT CASE WHEN greatest(alkstore.next_due('q'), alkstore._now()) = greatest(e.due, alkstore._now())
    AND (alkstore.next_due('q') IS NULL) = (e.due IS NULL) THEN 'agree' ELSE format('%s not %s', alkstore.next_due('q'), e.due) END
  FROM expected e $$;
SELECT count(alkstore.enqueue('q', i::text, delay_s => i * 37 % 100, visibility_timeout_s => i * 7 % 40 + 1,
  expires_s => CASE WHEN i % 3 > 0 THEN i * 53 % 120 + 1 END, max_attempts => i % 2 + 1)) FROM generate_series(1, 200) i;
SELECT pg_temp.agrees() AS a0 \gset
SELECT pg_temp.advance(20); SELECT count(*) FROM alkstore.claim('q', 'w', 30); SELECT pg_temp.agrees() AS a20 \gset
SELECT pg_temp.advance(1); SELECT count(*) FROM alkstore.claim('q', 'w', 200); SELECT pg_temp.agrees() AS a21 \gset
SELECT pg_temp.advance(9); SELECT count(*) FROM alkstore.claim('q', 'w', 200); SELECT pg_temp.agrees() AS a30 \gset
SELECT pg_temp.advance(50); SELECT count(*) FROM alkstore.claim('q', 'w', 200); SELECT pg_temp.agrees() AS a80 \gset
SELECT pg_temp.advance(30); SELECT pg_temp.agrees() AS a110 \gset
SELECT count(*) FROM alkstore.claim('q', 'w', 200); SELECT pg_temp.agrees() AS a110_claimed \gset
SELECT pg_temp.advance(100); SELECT count(*) FROM alkstore.claim('q', 'w', 200);
SELECT is(ARRAY[:'a0', :'a20', :'a21', :'a30', :'a80', :'a110', :'a110_claimed', pg_temp.agrees()],
  '{agree,agree,agree,agree,agree,agree,agree,agree}', '[next-due] two hundred jobs of all kinds, against the definition');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1');
SELECT is(
  pg_temp.lines($$
    SELECT alkstore.next_due(NULL), alkstore.next_due(''), alkstore.next_due(repeat('x', 256)), alkstore.next_due('__alkstore_q') $$),
  '{NULL|NULL|NULL|NULL}', '[next-due] a name that cannot exist has none, and is not refused');
SELECT is(pg_temp.effect($$ alkstore.next_due('q') IS NOT NULL $$), 'true, untouched', '[next-due] a read writes nothing');

SELECT * FROM finish();
ROLLBACK;
