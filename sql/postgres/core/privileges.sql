-- Roles: what a producer, a worker, a scheduler and an operator may call. None of them gets rights on tables.

CREATE FUNCTION alkstore._grant_calls(role text, calls text[]) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  schema_id oid := (SELECT c.relnamespace FROM pg_class c WHERE c.oid = 'alkstore._job'::regclass);
  call regprocedure;
BEGIN
  EXECUTE format('GRANT USAGE ON SCHEMA %s TO %I', schema_id::regnamespace, _grant_calls.role);
  FOR call IN
    SELECT p.oid FROM pg_proc p
    WHERE p.pronamespace = schema_id AND p.proname = ANY (_grant_calls.calls || '{version}')
  LOOP
    EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', call, _grant_calls.role);
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
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
  SELECT alkstore._grant_calls(
    grant_scheduler.role, '{schedule,unschedule,fire_schedules,lead_schedules,resign_schedules}')
$$;
COMMENT ON FUNCTION alkstore.grant_scheduler(text) IS
'Lets a role schedule and fire: schedule, unschedule, fire_schedules, lead_schedules, resign_schedules, version. Only the owner of the
schema can grant.';

CREATE FUNCTION alkstore.grant_operator(role text) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  ops_view regclass;
BEGIN
  PERFORM alkstore.grant_producer(grant_operator.role);
  PERFORM alkstore.grant_worker(grant_operator.role);
  PERFORM alkstore.grant_scheduler(grant_operator.role);
  -- The views read the clock as the role that looks.
  PERFORM alkstore._grant_calls(grant_operator.role, '{cancel,outbox_cancel,_now}');
  FOR ops_view IN
    SELECT v.oid FROM pg_class v
    WHERE v.relkind = 'v'
      AND v.relnamespace = (SELECT c.relnamespace FROM pg_class c WHERE c.oid = 'alkstore._job'::regclass)
  LOOP
    EXECUTE format('GRANT SELECT ON %s TO %I', ops_view, grant_operator.role);
  END LOOP;
END $$;
COMMENT ON FUNCTION alkstore.grant_operator(text) IS
'Lets a role do everything that producers, workers and schedulers do, cancel, and read the views. Only the owner of the schema can grant.';

CREATE FUNCTION alkstore.revoke_all(role text) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  schema_name regnamespace := (SELECT c.relnamespace FROM pg_class c WHERE c.oid = 'alkstore._job'::regclass);
BEGIN
  EXECUTE format('REVOKE ALL ON ALL FUNCTIONS IN SCHEMA %s FROM %I', schema_name, revoke_all.role);
  EXECUTE format('REVOKE ALL ON ALL TABLES IN SCHEMA %s FROM %I', schema_name, revoke_all.role);
  EXECUTE format('REVOKE ALL ON SCHEMA %s FROM %I', schema_name, revoke_all.role);
END $$;
COMMENT ON FUNCTION alkstore.revoke_all(text) IS
'Takes back from a role all that the grant functions gave it. Only the owner of the schema can revoke.';

-- PostgreSQL lets everybody execute a new function; here nobody may until granted.
REVOKE ALL ON SCHEMA alkstore FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA alkstore FROM PUBLIC;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA alkstore FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA alkstore FROM PUBLIC;
