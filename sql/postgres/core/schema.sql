-- The schema that holds everything. Refused on servers that lack what the functions use.
DO $$
BEGIN
  IF current_setting('server_version_num')::int < 140000 THEN
    RAISE EXCEPTION 'alkstore needs PostgreSQL 14 or later; this server is %', current_setting('server_version')
      USING ERRCODE = 'feature_not_supported';
  END IF;
END $$;

CREATE SCHEMA alkstore;
COMMENT ON SCHEMA alkstore IS 'alkstore: a durable job queue. Start with the views jobs, dead_jobs and queue_stats.';
