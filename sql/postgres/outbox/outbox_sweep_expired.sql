-- outbox_sweep_expired: sweep_expired for an outbox.

CREATE FUNCTION alkstore.outbox_sweep_expired(outbox text, OUT expired bigint, OUT pruned bigint)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $$
BEGIN
  SELECT s.expired, s.pruned INTO expired, pruned
  FROM alkstore._sweep_expired(alkstore._outbox_queue(outbox_sweep_expired.outbox)) s;
END $$;
COMMENT ON FUNCTION alkstore.outbox_sweep_expired(text) IS
'Moves the messages of an outbox that are past their expires_at to the dead ones. Returns counts as sweep_expired does.
Errors: AK001 invalid_name.';
