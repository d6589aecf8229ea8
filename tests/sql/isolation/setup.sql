-- What the isolation specs stand on: a clock that all sessions share, a fresh start, and a way to
-- stop a call in its middle. Loaded once, after alkstore; see tests/harness/isolation.py.

-- A sequence, since any session can move it at once, whatever snapshot or transaction the others are in.
CREATE SEQUENCE public.clock;
GRANT SELECT ON SEQUENCE public.clock TO PUBLIC;

CREATE OR REPLACE FUNCTION alkstore._now() RETURNS timestamptz
LANGUAGE sql VOLATILE
AS $$ SELECT to_timestamp(pg_sequence_last_value('public.clock')) $$;

-- Empty storage, ids from 1, the clock at 1000000000.
CREATE PROCEDURE public.reset()
LANGUAGE sql
AS $$
  TRUNCATE alkstore._job, alkstore._dead_job, alkstore._schedule, alkstore._lock RESTART IDENTITY;
  SELECT setval('public.clock', 1000000000);
$$;

-- Moves the clock for everybody.
CREATE PROCEDURE public.advance(seconds bigint)
LANGUAGE plpgsql
AS $$
BEGIN
  PERFORM setval('public.clock', pg_sequence_last_value('public.clock') + seconds);
END $$;

-- A call of a session with test.pause = n stops at the nth job that it reads from then on, before it locks it, while
-- another session holds the advisory lock 1. The means is a row security policy, so alkstore itself stays as it is.
CREATE FUNCTION public.pass() RETURNS boolean
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  n int := coalesce(nullif(current_setting('test.pause', true), ''), '0');
BEGIN
  IF n > 0 THEN
    PERFORM set_config('test.pause', (n - 1)::text, false);
  END IF;
  IF n = 1 THEN
    PERFORM pg_advisory_lock_shared(1), pg_advisory_unlock_shared(1);
  END IF;
  RETURN true;
END $$;
CREATE POLICY pause ON alkstore._job USING (public.pass());
ALTER TABLE alkstore._job ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
