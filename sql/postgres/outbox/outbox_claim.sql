-- outbox_claim: messages to deliver. Settle them by ack, retry, release, fail and heartbeat with the queue that this returns.

CREATE FUNCTION alkstore.outbox_claim(outbox text, worker_id text, n bigint DEFAULT 1) RETURNS SETOF alkstore.claimed_job
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
-- Plans outlive the statistics that they were made on: the ordered index, whatever the server believes.
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off
AS $$
BEGIN
  RETURN QUERY
  SELECT * FROM alkstore._claim(alkstore._outbox_queue(outbox_claim.outbox), outbox_claim.worker_id, outbox_claim.n);
END $$;
COMMENT ON FUNCTION alkstore.outbox_claim(text, text, bigint) IS
'Hands out up to n messages of an outbox, as claim does jobs. Call ack, retry, release, fail and heartbeat with the queue that the
row names. Delivery is at least once: job_id is the receiver''s key for dropping repeats. Errors: AK001 invalid_name.';
