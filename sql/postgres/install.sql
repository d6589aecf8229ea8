-- alkstore for PostgreSQL (14 or later).      psql -f sql/postgres/install.sql
--
-- A durable job queue that is the database: every operation is one function call, from any client.
--
--   enqueue ──▶ pending ──claim──▶ processing ──ack──▶ (gone)
--                  ▲                   │
--                  ├──retry, release───┤   retry: after a backoff; release: at once, not counted
--                  ├──claim expires────┤   nobody acts: the next claim may take the job
--                  │                   │
--                cancel ──▶ (gone)     └──fail, retry or lapse without attempts left──▶ dead ──retention──▶ (gone)
--                expired ──sweep_expired──▶ dead
--
--   alkstore.enqueue('emails', '{"to": 7}')            → job id, in the caller's transaction
--   alkstore.claim('emails', 'worker-1')               → the job, this worker's for its visibility timeout
--   alkstore.heartbeat('emails', job_id, attempt)      → the claim runs on
--   alkstore.ack / retry / release / fail(…)           → true, or false when the claim is no longer that worker's
--   alkstore.sweep_expired('emails')                   → bury what expired, prune old dead jobs
--   alkstore.schedule('digest', '@every 1h', 'emails', '{}'), fire_schedules()     → a job at each boundary
--   alkstore.acquire_lock('nightly', 'host-1', 60)     → true for one owner at a time
--
-- A claim is named by (job_id, attempt). An attempt number is handed out once, so a worker that was slow
-- and lost its claim can do no harm: its ack, heartbeat, retry, release and fail are false.
--
-- Refusals: AK001 invalid_name, AK002 invalid_payload, AK003 invalid_option, AK004 invalid_spec.
-- The engine does nothing by itself: no daemon, no timer. To look: the views jobs, dead_jobs, queue_stats,
-- schedules, locks.
--
-- Installing twice is a no-op; any number may install at once. For another schema name use the one-file
-- installer that `make build` writes.

\set ON_ERROR_STOP on
BEGIN;
SET LOCAL search_path = pg_catalog, pg_temp;
SELECT pg_catalog.pg_advisory_xact_lock(7021796452613521) AS locked \gset
-- Read and not called: a function of that name could be anybody's.
SELECT EXISTS (
  SELECT FROM pg_catalog.pg_proc p
  WHERE p.oid = to_regprocedure('alkstore.version()') AND p.prosrc LIKE ' SELECT ''%'' ') AS installed \gset
\if :installed
DO $$
DECLARE
  found text := (
    SELECT substring(p.prosrc FROM '''(.*)''') FROM pg_catalog.pg_proc p WHERE p.oid = to_regprocedure('alkstore.version()'));
BEGIN
  IF found <> '0.1.0' THEN
    RAISE EXCEPTION 'alkstore % is installed in schema alkstore; this installer brings 0.1.0', found
      USING ERRCODE = 'object_not_in_prerequisite_state';
  END IF;
  RAISE NOTICE 'alkstore % is installed already', found;
END $$;
\else

-- the ground: schema, clock, argument checks, wakes
\ir core/schema.sql
\ir core/clock.sql
\ir core/names.sql
\ir core/options.sql
\ir core/wake.sql
\ir core/version.sql

-- the life of a job
\ir queue/tables.sql
\ir queue/enqueue.sql
\ir queue/claim.sql
\ir queue/ack.sql
\ir queue/retry.sql
\ir queue/release.sql
\ir queue/fail.sql
\ir queue/heartbeat.sql
\ir queue/cancel.sql
\ir queue/sweep_expired.sql
\ir queue/next_due.sql

-- locks, schedules
\ir locks/tables.sql
\ir locks/acquire_lock.sql
\ir locks/renew_lock.sql
\ir locks/release_lock.sql
\ir scheduler/tables.sql
\ir scheduler/schedule.sql
\ir scheduler/unschedule.sql
\ir scheduler/fire_schedules.sql
\ir scheduler/leadership.sql

-- to look
\ir ops/jobs.sql
\ir ops/dead_jobs.sql
\ir ops/queue_stats.sql
\ir ops/schedules.sql
\ir ops/locks.sql
\ir queue/get_job.sql

-- the outbox
\ir outbox/names.sql
\ir outbox/outbox_enqueue.sql
\ir outbox/outbox_claim.sql
\ir outbox/outbox_get_job.sql
\ir outbox/outbox_cancel.sql
\ir outbox/outbox_sweep_expired.sql

-- last, since it speaks of everything above
\ir core/privileges.sql

\endif
COMMIT;
