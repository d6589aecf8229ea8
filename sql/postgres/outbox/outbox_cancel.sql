-- outbox_cancel: a message that shall not go out after all.

CREATE FUNCTION alkstore.outbox_cancel(outbox text, job_id bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $$
DECLARE
  -- Here and not in the WHERE, where a name is judged only once a row of that id is found.
  target text := alkstore._outbox_queue(outbox_cancel.outbox);
BEGIN
  DELETE FROM alkstore._job j
  WHERE j.id = outbox_cancel.job_id AND j.queue = target;
  RETURN FOUND;
END $$;
COMMENT ON FUNCTION alkstore.outbox_cancel(text, bigint) IS
'Deletes a message that is waiting or in delivery. False when there is none (a dead one stays). Errors: AK001 invalid_name.';
