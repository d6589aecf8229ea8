-- privileges: what each role may do, and that nobody else may do anything
BEGIN;
SELECT plan(30);

-- Every right of a grantee on anything in the schema; with no grantee, of everybody but the owner. PUBLIC is 0.
CREATE FUNCTION pg_temp.rights(grantee oid DEFAULT NULL) RETURNS SETOF text
LANGUAGE sql
AS $$
  SELECT concat_ws(' ', CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE pg_get_userbyid(a.grantee) END, a.privilege_type, o.what, o.name)
    COLLATE "C"
  FROM (
    SELECT 'schema', n.nspname::text, coalesce(n.nspacl, acldefault('n', n.nspowner)), n.nspowner
    FROM pg_namespace n WHERE n.nspname = 'alkstore'
    UNION ALL
    SELECT 'function', p.proname, coalesce(p.proacl, acldefault('f', p.proowner)), p.proowner
    FROM pg_proc p WHERE p.pronamespace = 'alkstore'::regnamespace
    UNION ALL
    SELECT 'relation', c.relname, coalesce(c.relacl, acldefault(CASE c.relkind WHEN 'S' THEN 's'::"char" ELSE 'r' END, c.relowner)), c.relowner
    FROM pg_class c WHERE c.relnamespace = 'alkstore'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'S')
    UNION ALL
    SELECT 'column', c.relname || '.' || k.attname, k.attacl, c.relowner
    FROM pg_attribute k JOIN pg_class c ON c.oid = k.attrelid WHERE c.relnamespace = 'alkstore'::regnamespace
    UNION ALL
    -- A table's or a view's row type, and an array type, cannot be closed: no dump would carry it.
    SELECT 'type', t.typname, coalesce(t.typacl, acldefault('T', t.typowner)), t.typowner
    FROM pg_type t LEFT JOIN pg_class c ON c.oid = t.typrelid
    WHERE t.typnamespace = 'alkstore'::regnamespace AND t.typcategory <> 'A' AND (c.oid IS NULL OR c.relkind = 'c')
  ) o (what, name, acl, owner)
  CROSS JOIN LATERAL aclexplode(o.acl) a
  WHERE a.grantee <> o.owner AND (rights.grantee IS NULL OR a.grantee = rights.grantee)
  ORDER BY 1
$$;

-- The functions that a role may really execute, by whatever way.
CREATE FUNCTION pg_temp.calls(role name) RETURNS text[]
LANGUAGE sql
AS $$
  SELECT array_agg(p.proname::text ORDER BY p.proname) FROM pg_proc p
  WHERE p.pronamespace = 'alkstore'::regnamespace AND has_function_privilege(calls.role, p.oid, 'EXECUTE')
$$;

SELECT is(ARRAY(SELECT pg_temp.rights()), '{}', '[privileges] after the installation nobody but the owner has any right');

-- First, since later grants make new versions of the functions, which the profiler would take for others.
SELECT throws_ok(
  format('SELECT alkstore.revoke_all(%L)', current_user), '0LP01',
  format('alkstore runs with the rights of its owner %I, who cannot do without them', current_user),
  '[privileges] the owner''s own rights are not revoked');

CREATE ROLE producer;
CREATE ROLE worker;
CREATE ROLE scheduler;
CREATE ROLE operator;
SELECT alkstore.grant_producer('producer'), alkstore.grant_worker('worker'), alkstore.grant_scheduler('scheduler'),
  alkstore.grant_operator('operator');

SELECT is(pg_temp.calls('producer'), '{enqueue,enqueue_batch,outbox_enqueue,version}',
  '[privileges] a producer can enqueue, and nothing else');
SELECT is(
  pg_temp.calls('worker'),
  '{ack,ack_batch,acquire_lock,claim,fail,get_job,heartbeat,next_due,outbox_claim,outbox_get_job,outbox_sweep_expired,release,
    release_lock,renew_lock,retry,sweep_expired,version,wake_channel}',
  '[privileges] a worker can claim, settle, look at a job, sweep and lock, and nothing else');
SELECT is(pg_temp.calls('scheduler'), '{_now,fire_schedules,lead_schedules,resign_schedules,schedule,unschedule,version}',
  '[privileges] a scheduler can schedule, fire, lead and resign, and nothing else; the clock is for the views');
SELECT is(
  pg_temp.calls('operator'),
  ARRAY(
    SELECT unnest(pg_temp.calls('producer')) UNION SELECT unnest(pg_temp.calls('worker'))
    UNION SELECT unnest(pg_temp.calls('scheduler')) UNION SELECT unnest('{cancel,outbox_cancel}'::text[])
    ORDER BY 1),
  '[privileges] an operator can do all of that and cancel');
SELECT is(
  ARRAY(
    SELECT p.proname::text FROM pg_proc p
    WHERE p.pronamespace = 'alkstore'::regnamespace AND left(p.proname, 1) <> '_'
      AND NOT p.proname::text = ANY (pg_temp.calls('operator'))
    ORDER BY 1),
  '{grant_operator,grant_producer,grant_scheduler,grant_worker,revoke_all}',
  '[privileges] only granting and revoking is left to the owner');

SELECT is(
  ARRAY(SELECT r FROM pg_temp.rights() r WHERE r NOT LIKE '% EXECUTE function %'),
  ARRAY(
    SELECT 'operator SELECT relation ' || v FROM unnest('{dead_jobs,jobs,locks,queue_stats,schedules}'::text[]) v
    UNION ALL
    SELECT 'scheduler SELECT relation ' || v FROM unnest('{locks,schedules}'::text[]) v
    UNION ALL
    SELECT r || ' USAGE schema alkstore' FROM unnest('{operator,producer,scheduler,worker}'::text[]) r
    ORDER BY 1),
  '[privileges] beside calls there is the use of the schema, and the views for the operator, two of them for the scheduler');
SELECT is(ARRAY(SELECT pg_temp.rights(0)), '{}', '[privileges] no grant gives PUBLIC anything');

-- The same, tried.
CREATE FUNCTION pg_temp.tried(role name, statement text) RETURNS text
LANGUAGE plpgsql
AS $$
BEGIN
  EXECUTE format('SET LOCAL ROLE %I', tried.role);
  EXECUTE tried.statement;
  RESET ROLE;
  RETURN 'done';
EXCEPTION WHEN OTHERS THEN
  RETURN SQLSTATE;  -- and the role is as it was, like all that the block changed
END $$;

SELECT is(
  ARRAY(
    SELECT concat_ws(' ', r, c.relname, s) FROM
      unnest('{producer,worker,scheduler,operator}'::text[]) r,
      pg_class c,
      unnest(ARRAY[
        'SELECT * FROM %s', 'INSERT INTO %s DEFAULT VALUES', 'DELETE FROM %s', 'TRUNCATE %s', 'DROP TABLE %s', 'SELECT setval(%2$L, 1)',
        'SELECT nextval(%2$L)', 'ALTER TABLE %s OWNER TO CURRENT_USER']) s
    WHERE c.relnamespace = 'alkstore'::regnamespace AND c.relkind IN ('r', 'S')
      AND pg_temp.tried(r, format(s, c.oid::regclass, c.oid::regclass)) NOT IN ('42501', '42809')),
  '{}', '[privileges] no role reads, writes or owns a table or a sequence');
SELECT is(
  ARRAY(
    SELECT DISTINCT pg_temp.tried(r, s) FROM
      unnest('{producer,worker,scheduler,operator}'::text[]) r,
      unnest(ARRAY[
        'CREATE TABLE alkstore.t (a int)', 'CREATE FUNCTION alkstore.f() RETURNS int LANGUAGE sql AS ''SELECT 1''',
        'CREATE OR REPLACE FUNCTION alkstore._now() RETURNS timestamptz LANGUAGE sql AS ''SELECT NULL::timestamptz''',
        'CREATE VIEW alkstore.v AS SELECT 1', 'CREATE TYPE alkstore.t AS (a int)', 'DROP SCHEMA alkstore CASCADE']) s),
  '{42501}', '[privileges] no role makes or replaces anything in the schema');
SELECT is(
  ARRAY(
    SELECT DISTINCT pg_temp.tried(r, s) FROM
      unnest('{producer,worker,scheduler,operator}'::text[]) r,
      unnest(ARRAY[
        'SELECT alkstore.grant_operator(current_user)', 'SELECT alkstore.grant_producer(''worker'')', 'SELECT alkstore.revoke_all(''worker'')',
        'SELECT alkstore._grant_calls(current_user, ''{cancel}'')']) s),
  '{42501}', '[privileges] no role gives or takes rights');
SELECT is(
  ARRAY(
    SELECT concat_ws(' ', r, v) FROM
      unnest('{producer,worker,scheduler,operator}'::text[]) r, unnest('{dead_jobs,jobs,locks,queue_stats,schedules}'::text[]) v
    WHERE pg_temp.tried(r, 'SELECT * FROM alkstore.' || v) = 'done' ORDER BY 1),
  '{operator dead_jobs,operator jobs,operator locks,operator queue_stats,operator schedules,scheduler locks,scheduler schedules}',
  '[privileges] the views answer the operator, two of them the scheduler, and nobody else');
SELECT is(
  pg_temp.tried('operator', 'INSERT INTO alkstore.locks VALUES (''l'', ''o'', now(), now())'), '42501',
  '[privileges] the views take no writes');

-- Definer and invoker.
SELECT is(
  ARRAY(
    SELECT p.proname::text FROM pg_proc p
    WHERE p.pronamespace = 'alkstore'::regnamespace AND left(p.proname, 1) <> '_' AND NOT p.prosecdef
    ORDER BY 1),
  '{grant_operator,grant_producer,grant_scheduler,grant_worker,revoke_all}',
  '[privileges] what users call runs with the rights of the owner, granting with those of the caller');
SELECT is(
  ARRAY(
    SELECT p.proname::text FROM pg_proc p
    WHERE p.pronamespace = 'alkstore'::regnamespace AND (p.prosrc ~* '\mexecute\M' OR p.prosrc ~* '\m(dblink|query_to_xml|xpath_table)')
    ORDER BY 1),
  '{_grant_calls,_grant_views,revoke_all}',
  '[privileges] only granting and revoking makes SQL at run time');

-- Twice, and back.
CREATE TEMPORARY TABLE before AS SELECT r COLLATE "C" AS r FROM pg_temp.rights() r;
SELECT alkstore.grant_producer('producer'), alkstore.grant_worker('worker'), alkstore.grant_scheduler('scheduler'),
  alkstore.grant_operator('operator');
SELECT is(ARRAY(SELECT pg_temp.rights()), ARRAY(SELECT r FROM before ORDER BY r), '[privileges] granting again changes nothing');

SELECT alkstore.grant_producer('worker');
SELECT is(
  pg_temp.calls('worker'),
  ARRAY(
    SELECT DISTINCT substring(r FROM '^(?:producer|worker) EXECUTE function (.*)') AS call FROM before
    WHERE r ~ '^(producer|worker) EXECUTE' ORDER BY 1),
  '[privileges] one role can be several things');

SELECT alkstore.revoke_all('worker');
SELECT is(ARRAY(SELECT pg_temp.rights('worker'::regrole)), '{}', '[privileges] revoke_all takes back all that was granted');
SELECT is(
  ARRAY(SELECT pg_temp.rights()), ARRAY(SELECT r FROM before WHERE r NOT LIKE 'worker %' ORDER BY r),
  '[privileges] revoke_all leaves other roles alone');
SELECT alkstore.revoke_all(r) FROM unnest('{producer,worker,scheduler,operator}'::text[]) r;
SELECT is(ARRAY(SELECT pg_temp.rights()), '{}', '[privileges] revoke_all leaves nothing behind');
SELECT lives_ok($$SELECT alkstore.revoke_all('worker')$$, '[privileges] revoking again is harmless');

SELECT lives_ok(format('SELECT alkstore.grant_operator(%L)', current_user), '[privileges] a grant to the owner is harmless');

-- Names of roles.
CREATE TEMPORARY TABLE names AS
SELECT name FROM unnest(ARRAY[
  'Worker', 'My Role', 'q"''%I$$;--', '1', 'user', 'select', 'current_role', 'Public', 'ÜX-日本-😀', '-', repeat('n', 63)]) name;
DO $$
DECLARE
  name text;
BEGIN
  FOR name IN SELECT n.name FROM names n LOOP
    EXECUTE format('CREATE ROLE %I', name);
  END LOOP;
END $$;
SELECT alkstore.grant_producer(name) FROM names;
SELECT is(
  ARRAY(SELECT name FROM names WHERE pg_temp.calls(name) = '{enqueue,enqueue_batch,outbox_enqueue,version}'),
  ARRAY(SELECT name FROM names), '[privileges] a role''s name may need quotes');
SELECT alkstore.grant_operator(name) FROM names;
SELECT alkstore.revoke_all(name) FROM names;
SELECT is(
  ARRAY(SELECT pg_temp.rights()), '{}', '[privileges] what was granted to a name with quotes is taken back by it');

SELECT is(
  ARRAY(
    SELECT DISTINCT concat_ws(' ', name, pg_temp.tried(current_user, format('SELECT alkstore.%s(%L)', f, name))) COLLATE "C" FROM
      unnest('{nobody here,worker2,public,PUBLIC,current_user,"\"worker\"",worker;DROP ROLE worker}'::text[]) name,
      unnest('{grant_producer,grant_worker,grant_scheduler,grant_operator,revoke_all}'::text[]) f
    ORDER BY 1),
  ARRAY(
    SELECT concat_ws(' ', name, '42704') COLLATE "C" FROM
      unnest('{nobody here,worker2,public,PUBLIC,current_user,"\"worker\"",worker;DROP ROLE worker}'::text[]) name
    ORDER BY 1),
  '[privileges] a role that does not exist is PostgreSQL''s own error, and so is PUBLIC');
SELECT throws_ok(
  $$SELECT alkstore.grant_worker('nobody here')$$, '42704', 'role "nobody here" does not exist',
  '[privileges] the error names the role');
SELECT is(
  ARRAY(
    SELECT DISTINCT pg_temp.tried(current_user, format('SELECT alkstore.%s(%L)', f, name)) FROM
      unnest(ARRAY['', NULL]) name, unnest('{grant_producer,grant_worker,grant_scheduler,grant_operator,revoke_all}'::text[]) f
    ORDER BY 1),
  '{22004,42704}', '[privileges] a name is needed');
SELECT is(ARRAY(SELECT pg_temp.rights()), '{}', '[privileges] a refused grant grants nothing');

-- The functions add nothing to what their caller may do.
CREATE ROLE stranger;
SELECT alkstore.grant_operator('stranger');
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA alkstore TO stranger;
SELECT alkstore.grant_producer('producer');
SET LOCAL client_min_messages = error;
SELECT pg_temp.tried('stranger', s) FROM unnest(ARRAY[
  'SELECT alkstore.grant_operator(''producer'')', 'SELECT alkstore.revoke_all(''producer'')']) s;
SELECT is(
  pg_temp.calls('producer'), '{enqueue,enqueue_batch,outbox_enqueue,version}',
  '[privileges] a caller who does not own the schema changes nothing by granting and revoking');

SELECT * FROM finish();
ROLLBACK;
