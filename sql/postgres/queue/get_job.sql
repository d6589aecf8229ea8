-- get_job: one job, live or dead, as the view jobs shows it.

CREATE FUNCTION alkstore.get_job(queue text, job_id bigint) RETURNS SETOF alkstore.jobs
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $$
  SELECT * FROM alkstore.jobs j WHERE j.job_id = get_job.job_id AND j.queue = get_job.queue
$$;
COMMENT ON FUNCTION alkstore.get_job(text, bigint) IS
'One job, live or dead, with the columns of the view jobs. No row: it never was, was acked or cancelled, or is another queue''s.';
