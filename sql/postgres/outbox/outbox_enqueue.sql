-- outbox_enqueue: a message to the outside, in the transaction of what it reports.

CREATE FUNCTION alkstore.outbox_enqueue(
  outbox text, payload anycompatible,
  delay_s bigint DEFAULT NULL, run_at timestamptz DEFAULT NULL, priority bigint DEFAULT NULL,
  expires_s bigint DEFAULT NULL, max_attempts bigint DEFAULT NULL)
RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  RETURN (
    SELECT e.id
    FROM alkstore._enqueue(
      alkstore._outbox_queue(outbox_enqueue.outbox), ARRAY[alkstore._check_payload(outbox_enqueue.payload)],
      outbox_enqueue.delay_s, outbox_enqueue.run_at, outbox_enqueue.priority, outbox_enqueue.expires_s,
      outbox_enqueue.max_attempts, NULL, NULL, NULL) e (id));
END $$;
COMMENT ON FUNCTION alkstore.outbox_enqueue(text, anycompatible, bigint, timestamptz, bigint, bigint, bigint) IS
'Adds one message to an outbox and returns its id; options as for enqueue. Belongs to the caller''s transaction: the message goes out
if and only if the business change commits. Errors: AK001 invalid_name, AK002 invalid_payload, AK003 invalid_option.';
