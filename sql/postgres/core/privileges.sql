-- Roles: what a producer, a worker, a scheduler and an operator may call. None of them gets rights on tables.
-- These functions run with the rights of who calls them: they grant what the caller could grant by hand, and no more.

CREATE FUNCTION alkstore._grant_calls(role text, calls text[]) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  -- GRANT takes even a quoted "public" for everybody; no role has that name.
  grantee regrole := format('%I', role)::regrole;
  schema_id regnamespace := (
    SELECT c.relnamespace::regnamespace FROM pg_catalog.pg_class c WHERE c.oid = 'alkstore._job'::regclass);
  call regprocedure;
BEGIN
  EXECUTE format('GRANT USAGE ON SCHEMA %s TO %s', schema_id, grantee);
  FOR call IN
    SELECT p.oid::regprocedure FROM pg_catalog.pg_proc p
    WHERE p.pronamespace = schema_id AND p.proname = ANY (calls || '{version}')
  LOOP
    EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s', call, grantee);
  END LOOP;
END $$;

-- The views of these names, without names all; and the clock, which views read with the rights of the role that looks.
CREATE FUNCTION alkstore._grant_views(role text, views text[] DEFAULT NULL) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  grantee regrole := format('%I', role)::regrole;
  ops_view regclass;
BEGIN
  PERFORM alkstore._grant_calls(role, '{_now}');
  FOR ops_view IN
    SELECT v.oid::regclass FROM pg_catalog.pg_class v
    WHERE v.relkind = 'v' AND (views IS NULL OR v.relname = ANY (views))
      AND v.relnamespace = (SELECT c.relnamespace FROM pg_catalog.pg_class c WHERE c.oid = 'alkstore._job'::regclass)
  LOOP
    EXECUTE format('GRANT SELECT ON %s TO %s', ops_view, grantee);
  END LOOP;
END $$;

CREATE FUNCTION alkstore.grant_producer(role text) RETURNS void
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$ SELECT alkstore._grant_calls(grant_producer.role, '{enqueue,enqueue_batch,outbox_enqueue}') $$;
COMMENT ON FUNCTION alkstore.grant_producer(text) IS
'Lets a role enqueue: enqueue, enqueue_batch, outbox_enqueue, version. Only the owner of the schema can grant.';

CREATE FUNCTION alkstore.grant_worker(role text) RETURNS void
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
  SELECT alkstore._grant_calls(
    grant_worker.role,
    '{claim,ack,ack_batch,retry,release,fail,heartbeat,get_job,next_due,wake_channel,sweep_expired,
      outbox_claim,outbox_get_job,outbox_sweep_expired,acquire_lock,renew_lock,release_lock}')
$$;
COMMENT ON FUNCTION alkstore.grant_worker(text) IS
'Lets a role work on jobs: claim and what settles a claim, get_job, next_due, wake_channel, the sweeps, outbox_claim and
outbox_get_job, the locks, version. Only the owner of the schema can grant.';

CREATE FUNCTION alkstore.grant_scheduler(role text) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  PERFORM alkstore._grant_calls(role, '{schedule,unschedule,fire_schedules,lead_schedules,resign_schedules}');
  -- A runner sleeps until the next boundary, or until the leader's lock lapses.
  PERFORM alkstore._grant_views(role, '{schedules,locks}');
END $$;
COMMENT ON FUNCTION alkstore.grant_scheduler(text) IS
'Lets a role schedule and fire: schedule, unschedule, fire_schedules, lead_schedules, resign_schedules, version, and the views
schedules and locks. Only the owner of the schema can grant.';

CREATE FUNCTION alkstore.grant_operator(role text) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  PERFORM alkstore.grant_producer(role);
  PERFORM alkstore.grant_worker(role);
  PERFORM alkstore.grant_scheduler(role);
  PERFORM alkstore._grant_calls(role, '{cancel,outbox_cancel}');
  PERFORM alkstore._grant_views(role);
END $$;
COMMENT ON FUNCTION alkstore.grant_operator(text) IS
'Lets a role do everything that producers, workers and schedulers do, cancel, and read the views. Only the owner of the schema can grant.';

CREATE FUNCTION alkstore.revoke_all(role text) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  grantee regrole := format('%I', role)::regrole;
  schema_id regnamespace;
  owner regrole;
BEGIN
  SELECT c.relnamespace::regnamespace, c.relowner::regrole INTO schema_id, owner
  FROM pg_catalog.pg_class c WHERE c.oid = 'alkstore._job'::regclass;
  IF grantee = owner THEN
    RAISE EXCEPTION 'alkstore runs with the rights of its owner %, who cannot do without them', owner
      USING ERRCODE = 'invalid_grant_operation';
  END IF;
  EXECUTE format('REVOKE ALL ON ALL FUNCTIONS IN SCHEMA %s FROM %s', schema_id, grantee);
  EXECUTE format('REVOKE ALL ON ALL TABLES IN SCHEMA %s FROM %s', schema_id, grantee);
  EXECUTE format('REVOKE ALL ON SCHEMA %s FROM %s', schema_id, grantee);
END $$;
COMMENT ON FUNCTION alkstore.revoke_all(text) IS
'Takes back from a role all that the grant functions gave it; what it has by membership in other roles stays.
Only the owner of the schema can revoke.';

-- PostgreSQL lets everybody execute a new function and use a new type; here nobody may until granted.
REVOKE ALL ON ALL TABLES IN SCHEMA alkstore FROM PUBLIC;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA alkstore FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA alkstore FROM PUBLIC;
REVOKE ALL ON TYPE alkstore.claimed_job, alkstore.fired_schedule FROM PUBLIC;
