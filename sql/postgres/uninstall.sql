-- Removes alkstore from a PostgreSQL database, with its schema. Run it with any client.
--
--   SET alkstore.schema = 'jobs';            the schema, when it is another than alkstore
--   SET alkstore.uninstall = 'with jobs';    needed when it holds jobs, live or dead, or schedules
--
-- All or nothing. What others built on it, such as a view on alkstore.jobs, stops it; nothing but alkstore is removed.
DO $$
DECLARE
  caller_path text := pg_catalog.current_setting('search_path');
  target text;
  kept boolean;
  functions text;
BEGIN
  SET LOCAL search_path = pg_catalog, pg_temp;
  PERFORM pg_advisory_xact_lock(7021796452613521);
  target := coalesce(nullif(current_setting('alkstore.schema', true), ''), 'alkstore');
  IF NOT EXISTS (SELECT FROM pg_catalog.pg_class c WHERE c.oid = to_regclass(format('%I._job', target)) AND c.relkind = 'r') THEN
    RAISE EXCEPTION 'alkstore is not installed in schema %', target USING ERRCODE = 'undefined_object';
  END IF;

  -- Locked, so that what is counted is what goes.
  EXECUTE format('LOCK TABLE %1$I._job, %1$I._dead_job, %1$I._schedule IN ACCESS EXCLUSIVE MODE', target);
  EXECUTE format(
    'SELECT EXISTS (SELECT FROM %1$I._job) OR EXISTS (SELECT FROM %1$I._dead_job) OR EXISTS (SELECT FROM %1$I._schedule)', target)
  INTO kept;
  IF kept AND current_setting('alkstore.uninstall', true) IS DISTINCT FROM 'with jobs' THEN
    RAISE EXCEPTION 'schema % holds jobs or schedules', target
      USING ERRCODE = 'object_not_in_prerequisite_state',
            HINT = 'To lose them: SET alkstore.uninstall = ''with jobs''; in this session, and again.';
  END IF;

  IF EXISTS (
    SELECT FROM pg_catalog.pg_depend d
    WHERE d.classid = 'pg_class'::regclass AND d.objid = format('%I._job', target)::regclass AND d.deptype = 'e')
  THEN
    DROP EXTENSION alkstore;
  ELSE
    -- Never CASCADE. The functions but the clock, which the views use; the views, whose rows functions return; the rest.
    functions := (
      SELECT string_agg(p.oid::regprocedure::text, ', ') FROM pg_catalog.pg_proc p
      WHERE p.pronamespace = quote_ident(target)::regnamespace AND p.proname <> '_now');
    EXECUTE 'DROP FUNCTION ' || functions;
    EXECUTE format('DROP VIEW %1$I.jobs, %1$I.dead_jobs, %1$I.queue_stats, %1$I.schedules, %1$I.locks', target);
    EXECUTE format('DROP FUNCTION %I._now()', target);
    EXECUTE format('DROP TABLE %1$I._job, %1$I._dead_job, %1$I._schedule, %1$I._lock', target);
    EXECUTE format('DROP TYPE %1$I.claimed_job, %1$I.fired_schedule', target);
  END IF;
  -- Gone with the extension, when that made it.
  EXECUTE format('DROP SCHEMA IF EXISTS %I', target);
  PERFORM set_config('search_path', caller_path, true);
END $$;
