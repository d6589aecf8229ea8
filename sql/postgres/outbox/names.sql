-- An outbox is a queue with a reserved name, reached only through the outbox calls.
CREATE FUNCTION alkstore._outbox_queue(outbox text) RETURNS text
LANGUAGE plpgsql STABLE
AS $$
BEGIN
  PERFORM alkstore._check_public_name('outbox', outbox);
  IF octet_length(outbox) > 237 THEN
    RAISE EXCEPTION 'invalid_name: outbox must be text of 1 to 237 bytes'
      USING ERRCODE = 'AK001', HINT = format('It has %s bytes.', octet_length(outbox));
  END IF;
  RETURN '__alkstore_outbox_' || outbox;
END $$;
