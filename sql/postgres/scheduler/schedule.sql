-- schedule: enqueue a job at every boundary of an interval, from now on.

-- Seconds of '@every <n><unit>', or AK004. Ten digits of days still fit a bigint of seconds.
CREATE FUNCTION alkstore._interval_s(spec text) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
  part text[] := regexp_match(spec, '^@every ([1-9][0-9]{0,9})([smhd])$');
  seconds bigint := part[1]::bigint * CASE part[2] WHEN 's' THEN 1 WHEN 'm' THEN 60 WHEN 'h' THEN 3600 ELSE 86400 END;
BEGIN
  IF seconds <= 2147483647 THEN
    RETURN seconds;
  END IF;
  RAISE EXCEPTION 'invalid_spec: % is not a schedule', coalesce(quote_literal(spec), 'NULL')
    USING ERRCODE = 'AK004', HINT = 'Write @every, one space, a number from 1, and s, m, h or d: @every 90m. At most 2147483647 seconds.';
END $$;

CREATE FUNCTION alkstore.schedule(
  name text, spec text, queue text, payload anycompatible,
  priority bigint DEFAULT NULL, max_attempts bigint DEFAULT NULL, expires_s bigint DEFAULT NULL)
RETURNS timestamptz
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  moment timestamptz := alkstore._now();
  seconds bigint;
  content json;
  boundary timestamptz;
BEGIN
  PERFORM alkstore._check_public_name('name', schedule.name);
  PERFORM alkstore._check_public_name('queue', schedule.queue);
  seconds := alkstore._interval_s(schedule.spec);
  content := alkstore._check_payload(schedule.payload);
  PERFORM alkstore._check_options(
    NULL, NULL, schedule.priority, schedule.expires_s, schedule.max_attempts, NULL, NULL, NULL);
  INSERT INTO alkstore._schedule AS s (
    name, spec, interval_s, queue, payload, priority, max_attempts, expires_s, next_run_at, created_at)
  VALUES (
    schedule.name, schedule.spec, seconds, schedule.queue, content,
    coalesce(schedule.priority, 0), coalesce(schedule.max_attempts, 3), schedule.expires_s,
    moment + make_interval(secs => seconds), moment)
  -- The same spec keeps its next boundary: an application that registers at every start must still fire.
  ON CONFLICT ON CONSTRAINT _schedule_pkey DO UPDATE SET
    spec = excluded.spec,
    interval_s = excluded.interval_s,
    queue = excluded.queue,
    payload = excluded.payload,
    priority = excluded.priority,
    max_attempts = excluded.max_attempts,
    expires_s = excluded.expires_s,
    next_run_at = CASE WHEN s.spec = excluded.spec THEN s.next_run_at ELSE excluded.next_run_at END
  WHERE (s.spec, s.queue, s.payload::text, s.priority, s.max_attempts, s.expires_s) IS DISTINCT FROM (
    excluded.spec, excluded.queue, excluded.payload::text, excluded.priority, excluded.max_attempts, excluded.expires_s)
  RETURNING s.next_run_at INTO boundary;
  IF NOT FOUND THEN
    boundary := (SELECT s.next_run_at FROM alkstore._schedule s WHERE s.name = schedule.name);
  END IF;
  RETURN boundary;
END $$;
COMMENT ON FUNCTION alkstore.schedule(text, text, text, anycompatible, bigint, bigint, bigint) IS
'Sets the schedule of that name and returns its next boundary. spec: ''@every 30s'', 90m, 36h, 7d. The first boundary is one interval
from now; registering again with the same spec keeps the next boundary, a changed spec starts anew; queue, payload and
options are replaced. Nothing fires by itself: call fire_schedules. Errors: AK001 invalid_name, AK002 invalid_payload,
AK003 invalid_option, AK004 invalid_spec.';
