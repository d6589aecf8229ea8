-- jobs
BEGIN;
SELECT plan(5);
\ir ../clock.sql
\ir ../_effects.sql

SELECT is(
  pg_temp.lines($$
    SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
    WHERE attrelid = 'alkstore.jobs'::regclass AND attnum > 0 ORDER BY attnum $$),
  '{job_id|bigint,queue|text,state|text,payload|json,priority|bigint,attempts|bigint,max_attempts|bigint,
    visibility_timeout_s|bigint,backoff_base_s|bigint,dead_letter_retention_s|bigint,worker_id|text,
    "created_at|timestamp with time zone","run_at|timestamp with time zone","expires_at|timestamp with time zone",
    "claimed_at|timestamp with time zone","claim_expires_at|timestamp with time zone",retry_error|text,last_error|text,
    "died_at|timestamp with time zone",released|bigint}',
  '[get-job] the columns of jobs, in order');
SELECT is(
  pg_temp.lines($$ SELECT prorettype::regtype, proretset FROM pg_proc WHERE oid = 'alkstore.get_job(text, bigint)'::regprocedure $$),
  '{alkstore.jobs|true}', '[get-job] one job has the columns of jobs');

SELECT pg_temp.fresh();
SELECT alkstore.enqueue('q', '1'); SELECT alkstore.enqueue('p', '2'); SELECT alkstore.enqueue('q', '3', delay_s => 60);
SELECT alkstore.enqueue('q', '4'); SELECT alkstore.enqueue('q', '5'); SELECT alkstore.enqueue('q', '6', expires_s => 10);
SELECT alkstore.enqueue('q', '7', max_attempts => 1); SELECT alkstore.enqueue('q', '8');
SELECT alkstore.claim('q', 'w', 3); SELECT alkstore.fail('q', 1, 1); SELECT alkstore.ack('q', 4, 1);
SELECT alkstore.claim('q', 'w', 2); SELECT alkstore.cancel('q', 8);
SELECT pg_temp.advance(11);
SELECT is(
  pg_temp.lines($$ SELECT job_id, queue, state FROM alkstore.jobs ORDER BY job_id $$),
  '{1|q|dead,2|p|pending,3|q|pending,5|q|processing,6|q|processing,7|q|processing}',
  '[get-job] jobs shows every job of every queue, live and dead, once');
SELECT pg_temp.advance(301);
SELECT is(
  pg_temp.lines($$ SELECT state, worker_id, last_error FROM alkstore.jobs WHERE job_id = 7 $$), '{processing|w|NULL}',
  '[get-job] jobs shows a lapsed claim without attempts left as it is until a claim buries it');
SELECT is(pg_temp.effect($$ count(*) FROM alkstore.jobs $$), '6, untouched', '[get-job] to look at jobs writes nothing');

SELECT * FROM finish();
ROLLBACK;
