-- outbox_get_job: one message, waiting, in delivery or dead.

CREATE FUNCTION alkstore.outbox_get_job(outbox text, job_id bigint) RETURNS SETOF alkstore.jobs
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $$
  SELECT * FROM alkstore.jobs j
  WHERE j.job_id = outbox_get_job.job_id AND j.queue = '__alkstore_outbox_' || outbox_get_job.outbox
$$;
COMMENT ON FUNCTION alkstore.outbox_get_job(text, bigint) IS
'One message, with the columns of the view jobs. No row: it never was, was delivered or cancelled, or is another outbox''s.';
