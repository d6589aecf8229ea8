-- The schema that holds everything: a new one, or an empty one that is the installer's alone. Who could create in it could
-- put functions in front of ours, which run with the rights of their owner.
DO $$
DECLARE
  fault text;
BEGIN
  IF current_setting('server_version_num')::int < 140000 THEN
    RAISE EXCEPTION 'alkstore needs PostgreSQL 14 or later; this server is %', current_setting('server_version')
      USING ERRCODE = 'feature_not_supported';
  END IF;
  -- Names are measured and payloads kept in UTF-8.
  IF current_setting('server_encoding') <> 'UTF8' THEN
    RAISE EXCEPTION 'alkstore needs a database in UTF8; this one is in %', current_setting('server_encoding')
      USING ERRCODE = 'feature_not_supported';
  END IF;
  IF to_regnamespace('alkstore') IS NULL THEN
    CREATE SCHEMA alkstore;
    REVOKE ALL ON SCHEMA alkstore FROM PUBLIC;
    COMMENT ON SCHEMA alkstore IS 'alkstore: a durable job queue. Start with the views jobs, dead_jobs and queue_stats.';
    RETURN;
  END IF;
  SELECT
    CASE
      WHEN n.nspowner <> r.oid THEN format('belongs to %s', n.nspowner::regrole)
      WHEN EXISTS (
        SELECT FROM pg_catalog.pg_depend d
        WHERE d.refclassid = 'pg_namespace'::regclass AND d.refobjid = n.oid AND d.deptype = 'n'
          AND d.classid <> 'pg_extension'::regclass) THEN 'is not empty'
      WHEN EXISTS (
        SELECT FROM aclexplode(n.nspacl) a
        WHERE a.grantee <> n.nspowner AND (a.grantee = 0 OR a.privilege_type = 'CREATE')) THEN 'is open to others'
    END
  INTO fault
  FROM pg_catalog.pg_namespace n, pg_catalog.pg_roles r
  WHERE n.oid = to_regnamespace('alkstore') AND r.rolname = current_user;
  IF fault IS NOT NULL THEN
    RAISE EXCEPTION 'schema % %', to_regnamespace('alkstore'), fault
      USING ERRCODE = 'object_not_in_prerequisite_state',
            HINT = format('alkstore needs a schema of its own: a new one, or an empty one of %I, in which nobody else may create.', current_user);
  END IF;
END $$;
