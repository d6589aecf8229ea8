-- cancel: a live job is no longer wanted; whoever holds it loses it.

CREATE FUNCTION alkstore.cancel(queue text, job_id bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $$
BEGIN
  PERFORM alkstore._check_public_name('queue', cancel.queue);
  DELETE FROM alkstore._job j WHERE j.id = cancel.job_id AND j.queue = cancel.queue;
  RETURN FOUND;
END $$;
COMMENT ON FUNCTION alkstore.cancel(text, bigint) IS
'Deletes a live job, pending or processing. False when there is none (a dead job stays). Errors: AK001 invalid_name.';
