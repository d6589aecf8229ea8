BEGIN;
SELECT plan(2);
\ir ../clock.sql
\ir ../_effects.sql

CREATE TEMP TABLE sent(id bigint GENERATED ALWAYS AS IDENTITY, payload text);
INSERT INTO sent(payload) VALUES
  ('"' || repeat('0', 1998) || '"'), ('"' || repeat('0', 1999) || '"'), ('"' || repeat('{é\u0000', 50000) || '"');
CREATE TEMP TABLE came(step text, id bigint, payload text);

SELECT alkstore.enqueue('q', payload) FROM sent ORDER BY id;
INSERT INTO came SELECT 'enqueued', job_id, payload FROM alkstore.jobs;
INSERT INTO came SELECT 'claimed', job_id, payload FROM alkstore.claim('q', 'w', 3);
SELECT alkstore.retry('q', job_id, 1, NULL, 0) FROM alkstore.jobs;
INSERT INTO came SELECT 'claimed again', job_id, payload FROM alkstore.claim('q', 'w', 3);
SELECT alkstore.fail('q', job_id, 2) FROM alkstore.jobs;
INSERT INTO came SELECT 'dead', job_id, payload FROM alkstore.dead_jobs;
SELECT is(
  pg_temp.lines($$
    SELECT c.step, string_agg((c.payload = s.payload)::text, ' ' ORDER BY s.id) FROM came c JOIN sent s USING (id)
    GROUP BY c.step ORDER BY c.step $$),
  '{claimed|true true true,claimed again|true true true,dead|true true true,enqueued|true true true}',
  '[payload] a long one comes back as it went in, whatever becomes of its job');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '"' || repeat('0', 10000) || '"', dead_letter_retention_s => 10) FROM generate_series(1, 5);
SELECT alkstore.claim('q', 'w', 3);
SELECT alkstore.ack('q', 1, 1); SELECT alkstore.ack_batch('q', '{2}'); SELECT alkstore.fail('q', 3, 1);
SELECT alkstore.cancel('q', 4);
SELECT pg_temp.advance(11);
SELECT alkstore.sweep_expired('q');
SELECT is(
  pg_temp.lines($$ SELECT job_id, length(payload::text) FROM alkstore.jobs $$), '{5|10002}',
  '[payload] nothing is left of a long one when its job is acked, cancelled or pruned');

SELECT * FROM finish();
ROLLBACK;
