-- Schedules: what to enqueue, and the next boundary at which to do it.
CREATE TABLE alkstore._schedule (
  name         text COLLATE "C" PRIMARY KEY,
  spec         text COLLATE "C" NOT NULL,
  interval_s   bigint NOT NULL,
  queue        text COLLATE "C" NOT NULL,
  payload      json NOT NULL,
  priority     bigint NOT NULL,
  max_attempts bigint NOT NULL,
  expires_s    bigint,
  next_run_at  timestamptz NOT NULL,
  last_error   text COLLATE "C",
  created_at   timestamptz NOT NULL
);
