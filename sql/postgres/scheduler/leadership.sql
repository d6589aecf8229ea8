-- lead_schedules, resign_schedules: one runner of many does the firing.

CREATE FUNCTION alkstore.lead_schedules(owner text, ttl_s bigint) RETURNS boolean
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$ SELECT alkstore._acquire_lock('__alkstore_scheduler', lead_schedules.owner, lead_schedules.ttl_s) $$;
COMMENT ON FUNCTION alkstore.lead_schedules(text, bigint) IS
'True when owner now leads the schedule runners for ttl_s seconds: nobody did, the leader lapsed, or it is the owner already.
Leadership saves work; it is not needed for correctness. Errors: AK001 invalid_name, AK003 invalid_option.';

CREATE FUNCTION alkstore.resign_schedules(owner text) RETURNS boolean
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$ SELECT alkstore._release_lock('__alkstore_scheduler', resign_schedules.owner) $$;
COMMENT ON FUNCTION alkstore.resign_schedules(text) IS
'Gives leadership back, so that another runner need not wait for it to lapse. False unless owner leads. Errors: AK001 invalid_name.';
