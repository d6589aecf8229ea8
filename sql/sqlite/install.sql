-- alkstore for SQLite (3.38 or later).      sqlite3 app.db < sql/sqlite/install.sql      (from the checkout's root)
--
-- A durable job queue that is the database: every operation is one INSERT into a call object, from any client.
--
--   enqueue ──▶ pending ──claim──▶ processing ──ack──▶ (gone)
--                  ▲                   │
--                  ├──retry, release───┤   retry: after a backoff; release: at once, not counted
--                  ├──claim expires────┤   nobody acts: the next claim may take the job
--                  │                   │
--                cancel ──▶ (gone)     └──fail, retry or lapse without attempts left──▶ dead ──retention──▶ (gone)
--                expired ──sweep_expired──▶ dead
--
--   INSERT INTO alkstore_enqueue(queue, payload) VALUES ('emails', '{"to": 7}') RETURNING job_id;
--   INSERT INTO alkstore_claim(queue, worker_id) VALUES ('emails', 'worker-1') RETURNING (SELECT jobs FROM alkstore_claimed_json);
--   INSERT INTO alkstore_heartbeat(queue, job_id, attempt) VALUES ('emails', 1, 1) RETURNING job_id;
--   INSERT INTO alkstore_ack / alkstore_retry / alkstore_release / alkstore_fail …     a row back: accepted
--   INSERT INTO alkstore_sweep_expired(queue) VALUES ('emails');
--   INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('digest', '@every 1h', 'emails', '{}');
--   INSERT INTO alkstore_fire_schedules DEFAULT VALUES;                                a job at each boundary
--   INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES ('nightly', 'host-1', 60) RETURNING name;
--
-- A claim is named by (job_id, attempt). An attempt number is handed out once, so a worker that was slow
-- and lost its claim can do no harm: its ack, heartbeat, retry, release and fail give no row.
--
-- Refusals: AK001 invalid_name, AK002 invalid_payload, AK003 invalid_option, AK004 invalid_spec. They undo their own
-- statement only.
-- The engine does nothing by itself: no daemon, no timer. To look: alkstore_jobs, alkstore_dead_jobs, alkstore_queue_stats,
-- alkstore_schedules, alkstore_locks.
--
-- Installing twice is a no-op; any number may install at once. The journal mode is left alone.

.bail on
.timeout 10000
BEGIN IMMEDIATE;

-- the ground: version, clock, argument checks
.read sql/sqlite/core/version.sql
.read sql/sqlite/core/clock.sql
.read sql/sqlite/core/names.sql

-- the life of a job, and of a message in an outbox
.read sql/sqlite/outbox/names.sql
.read sql/sqlite/queue/tables.sql
.read sql/sqlite/queue/enqueue.sql
.read sql/sqlite/queue/claim.sql
.read sql/sqlite/queue/ack.sql
.read sql/sqlite/queue/retry.sql
.read sql/sqlite/queue/release.sql
.read sql/sqlite/queue/fail.sql
.read sql/sqlite/queue/heartbeat.sql
.read sql/sqlite/queue/cancel.sql
.read sql/sqlite/queue/sweep_expired.sql
.read sql/sqlite/queue/next_due.sql

-- locks, schedules
.read sql/sqlite/locks/tables.sql
.read sql/sqlite/locks/acquire_lock.sql
.read sql/sqlite/locks/renew_lock.sql
.read sql/sqlite/locks/release_lock.sql
.read sql/sqlite/scheduler/tables.sql
.read sql/sqlite/scheduler/schedule.sql
.read sql/sqlite/scheduler/unschedule.sql
.read sql/sqlite/scheduler/fire_schedules.sql
.read sql/sqlite/scheduler/leadership.sql

-- to look
.read sql/sqlite/ops/jobs.sql
.read sql/sqlite/ops/dead_jobs.sql
.read sql/sqlite/ops/queue_stats.sql
.read sql/sqlite/ops/schedules.sql
.read sql/sqlite/ops/locks.sql

COMMIT;
