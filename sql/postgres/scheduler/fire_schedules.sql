-- fire_schedules: enqueue what is due, and move each schedule past now, in one step.

CREATE TYPE alkstore.fired_schedule AS (
  name     text,
  queue    text,
  job_id   bigint,
  boundary timestamptz
);
COMMENT ON TYPE alkstore.fired_schedule IS 'One job that a schedule enqueued: what alkstore.fire_schedules returns.';

CREATE FUNCTION alkstore.fire_schedules(name text DEFAULT NULL) RETURNS SETOF alkstore.fired_schedule
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  moment timestamptz := alkstore._now();
  due alkstore._schedule%ROWTYPE;
  missed bigint;
  job_ids bigint[];
BEGIN
  -- Rows that another caller is firing are passed over: the lock is what keeps a boundary from firing twice.
  FOR due IN
    SELECT * FROM alkstore._schedule s
    WHERE s.next_run_at <= moment AND (fire_schedules.name IS NULL OR s.name = fire_schedules.name)
    ORDER BY s.next_run_at, s.name
    FOR UPDATE SKIP LOCKED
  LOOP
    missed := floor(extract(epoch FROM moment - due.next_run_at) / due.interval_s)::bigint + 1;
    BEGIN
      job_ids := ARRAY(
        SELECT e.id
        FROM (
          SELECT due.next_run_at + make_interval(secs => due.interval_s * step) AS boundary
          FROM generate_series(0, least(missed, 64) - 1) step) b
        CROSS JOIN LATERAL alkstore._enqueue(
          due.queue, ARRAY[due.payload], NULL, b.boundary, due.priority, due.expires_s, due.max_attempts, NULL, NULL, NULL) e (id)
        ORDER BY b.boundary);
      UPDATE alkstore._schedule s SET
        next_run_at = due.next_run_at + make_interval(secs => due.interval_s * missed),
        last_error = NULL
      WHERE s.name = due.name;
      -- Only now is it sure that these jobs stay.
      RETURN QUERY
      SELECT due.name, due.queue, f.job_id, due.next_run_at + make_interval(secs => due.interval_s * (f.position - 1))
      FROM unnest(job_ids) WITH ORDINALITY f (job_id, position);
    EXCEPTION
      WHEN serialization_failure OR deadlock_detected THEN
        RAISE;
      WHEN OTHERS THEN
        -- One bad schedule must not stop the others; it is tried again at the next call.
        UPDATE alkstore._schedule s SET last_error = alkstore._cut(SQLERRM)
        WHERE s.name = due.name AND s.last_error IS DISTINCT FROM alkstore._cut(SQLERRM);
    END;
  END LOOP;
END $$;
COMMENT ON FUNCTION alkstore.fire_schedules(text) IS
'Fires each due schedule, or only the one of that name: one job per missed boundary with run_at = the boundary, oldest first, at
most 64 (the rest is skipped), and advances it past now. Returns what it enqueued. Any number may call it at once, as often as they
like: no boundary fires twice. A schedule whose enqueue fails is left as it was, with the error in schedules.last_error.';
