-- enqueue, enqueue_batch: all options are resolved here, once, onto the row.

-- The value as JSON, or AK002. The block costs a subtransaction without an id, since it writes nothing.
-- format() prints a value of any type; a cast could be the caller's own function, run with the rights of our owner.
CREATE FUNCTION alkstore._check_payload(payload anycompatible) RETURNS json
LANGUAGE plpgsql STABLE SET bytea_output = hex  -- in which no blob is JSON
AS $$
DECLARE
  detail text;
BEGIN
  IF payload IS NULL THEN
    RAISE EXCEPTION 'invalid_payload: the payload is NULL'
      USING ERRCODE = 'AK002', HINT = 'The JSON value null is written ''null''.';
  END IF;
  RETURN format('%s', payload)::json;
EXCEPTION
  WHEN invalid_text_representation OR statement_too_complex THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
    RAISE EXCEPTION 'invalid_payload: the payload is not JSON' USING ERRCODE = 'AK002', HINT = detail;
END $$;

CREATE FUNCTION alkstore._check_options(
  delay_s bigint, run_at timestamptz, priority bigint, expires_s bigint, max_attempts bigint,
  visibility_timeout_s bigint, backoff_base_s bigint, dead_letter_retention_s bigint) RETURNS void
LANGUAGE plpgsql STABLE
AS $$
BEGIN
  PERFORM alkstore._check_option(o.name, o.value, o.minimum)
  FROM (VALUES
    ('delay_s', delay_s, 0),
    ('priority', priority, -2147483648),
    ('expires_s', expires_s, 1),
    ('max_attempts', max_attempts, 1),
    ('visibility_timeout_s', visibility_timeout_s, 1),
    ('backoff_base_s', backoff_base_s, 0),
    ('dead_letter_retention_s', dead_letter_retention_s, 0)
  ) o (name, value, minimum)
  WHERE o.value IS NOT NULL;
  IF run_at < timestamptz '0001-01-01 00:00:00+00' OR run_at >= timestamptz '10000-01-01 00:00:00+00' THEN
    RAISE EXCEPTION 'invalid_option: run_at must lie in the years 1 to 9999'
      USING ERRCODE = 'AK003', HINT = format('It is %s.', run_at);
  END IF;
END $$;

CREATE FUNCTION alkstore._enqueue(
  queue text, payloads json[], delay_s bigint, run_at timestamptz, priority bigint, expires_s bigint,
  max_attempts bigint, visibility_timeout_s bigint, backoff_base_s bigint, dead_letter_retention_s bigint)
RETURNS SETOF bigint
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
  moment timestamptz := alkstore._now();
  due timestamptz;
BEGIN
  PERFORM alkstore._check_options(
    _enqueue.delay_s, _enqueue.run_at, _enqueue.priority, _enqueue.expires_s, _enqueue.max_attempts,
    _enqueue.visibility_timeout_s, _enqueue.backoff_base_s, _enqueue.dead_letter_retention_s);
  due := coalesce(
    moment + make_interval(secs => _enqueue.delay_s), date_trunc('second', _enqueue.run_at), moment);
  RETURN QUERY
  INSERT INTO alkstore._job AS j (
    queue, payload, priority, max_attempts, visibility_timeout_s, backoff_base_s, dead_letter_retention_s,
    created_at, run_at, expires_at, ready, due_at)
  SELECT
    _enqueue.queue, p.payload, coalesce(_enqueue.priority, 0), coalesce(_enqueue.max_attempts, 3),
    coalesce(_enqueue.visibility_timeout_s, 300), coalesce(_enqueue.backoff_base_s, 5),
    _enqueue.dead_letter_retention_s, moment, due, moment + make_interval(secs => _enqueue.expires_s),
    due <= moment, due
  FROM unnest(payloads) WITH ORDINALITY p (payload, position)
  ORDER BY p.position
  RETURNING j.id;
  IF FOUND THEN
    PERFORM alkstore._wake(_enqueue.queue);
  END IF;
END $$;

CREATE FUNCTION alkstore.enqueue(
  queue text, payload anycompatible,
  delay_s bigint DEFAULT NULL, run_at timestamptz DEFAULT NULL, priority bigint DEFAULT NULL,
  expires_s bigint DEFAULT NULL, max_attempts bigint DEFAULT NULL, visibility_timeout_s bigint DEFAULT NULL,
  backoff_base_s bigint DEFAULT NULL, dead_letter_retention_s bigint DEFAULT NULL)
RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  PERFORM alkstore._check_public_name('queue', enqueue.queue);
  RETURN (
    SELECT e.id
    FROM alkstore._enqueue(
      enqueue.queue, ARRAY[alkstore._check_payload(enqueue.payload)], enqueue.delay_s, enqueue.run_at,
      enqueue.priority, enqueue.expires_s, enqueue.max_attempts, enqueue.visibility_timeout_s,
      enqueue.backoff_base_s, enqueue.dead_letter_retention_s) e (id));
END $$;
COMMENT ON FUNCTION alkstore.enqueue(text, anycompatible, bigint, timestamptz, bigint, bigint, bigint, bigint, bigint, bigint) IS
'Adds one job to a queue and returns its id. Belongs to the caller''s transaction: nothing is claimable before commit.
payload: JSON text, json or jsonb, kept byte for byte. delay_s (seconds from now) wins over run_at; priority: higher first, default 0;
expires_s: seconds from now after which the job is never claimed; max_attempts 3, visibility_timeout_s 300, backoff_base_s 5,
dead_letter_retention_s NULL (keep dead jobs for ever) are stamped onto the job. NULL means the default.
Errors: AK001 invalid_name, AK002 invalid_payload, AK003 invalid_option.';

CREATE FUNCTION alkstore.enqueue_batch(
  queue text, payloads anycompatible,
  delay_s bigint DEFAULT NULL, run_at timestamptz DEFAULT NULL, priority bigint DEFAULT NULL,
  expires_s bigint DEFAULT NULL, max_attempts bigint DEFAULT NULL, visibility_timeout_s bigint DEFAULT NULL,
  backoff_base_s bigint DEFAULT NULL, dead_letter_retention_s bigint DEFAULT NULL)
RETURNS SETOF bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  batch json;
BEGIN
  PERFORM alkstore._check_public_name('queue', enqueue_batch.queue);
  batch := alkstore._check_payload(enqueue_batch.payloads);
  IF json_typeof(batch) <> 'array' THEN
    RAISE EXCEPTION 'invalid_payload: payloads must be one JSON array'
      USING ERRCODE = 'AK002', HINT = format('It is a JSON %s.', json_typeof(batch));
  END IF;
  RETURN QUERY
  SELECT e.id
  FROM alkstore._enqueue(
    enqueue_batch.queue, ARRAY(SELECT json_array_elements(batch)), enqueue_batch.delay_s, enqueue_batch.run_at,
    enqueue_batch.priority, enqueue_batch.expires_s, enqueue_batch.max_attempts, enqueue_batch.visibility_timeout_s,
    enqueue_batch.backoff_base_s, enqueue_batch.dead_letter_retention_s) e (id);
END $$;
COMMENT ON FUNCTION alkstore.enqueue_batch(text, anycompatible, bigint, timestamptz, bigint, bigint, bigint, bigint, bigint, bigint) IS
'Adds one job per element of a JSON array, all or none, and returns their ids in input order. The options are those of enqueue
and hold for every job. Errors: AK001 invalid_name, AK002 invalid_payload (not a JSON array), AK003 invalid_option.';
