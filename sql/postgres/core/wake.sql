-- Waking consumers: NOTIFY on commit, coalesced by PostgreSQL, empty payload.
CREATE FUNCTION alkstore.wake_channel(queue text) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
  SELECT CASE
    WHEN octet_length(wake_channel.queue) <= 63 THEN wake_channel.queue
    -- NOTIFY refuses longer channels and LISTEN cuts them silently.
    ELSE 'alkstore_' || left(encode(sha256(convert_to(wake_channel.queue, 'UTF8')), 'hex'), 48)
  END
$$;
COMMENT ON FUNCTION alkstore.wake_channel(text) IS
'The channel to LISTEN on for wakes of a queue: its name, or a prefix and a hash when the name has more than 63 bytes.
A wake is a hint that a claim may find something; keep polling at a long interval as well.';

CREATE FUNCTION alkstore._wake(queue text) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
  IF lower(coalesce(current_setting('alkstore.notify', true), '')) NOT IN ('off', 'false', 'no', '0') THEN
    PERFORM pg_notify(alkstore.wake_channel(_wake.queue), '');
  END IF;
END $$;
