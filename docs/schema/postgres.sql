-- What sql/postgres/install.sql makes, written by `make schema-dump`. Not for installing.

CREATE SCHEMA alkstore;

COMMENT ON SCHEMA alkstore IS 'alkstore: a durable job queue. Start with the views jobs, dead_jobs and queue_stats.';

CREATE TYPE alkstore.claimed_job AS (
	job_id bigint,
	queue text,
	payload json,
	attempt bigint,
	claim_expires_at timestamp with time zone,
	priority bigint,
	max_attempts bigint,
	worker_id text,
	claimed_at timestamp with time zone,
	run_at timestamp with time zone,
	expires_at timestamp with time zone,
	created_at timestamp with time zone
);

COMMENT ON TYPE alkstore.claimed_job IS 'One claim: what alkstore.claim returns. (job_id, attempt) names it for ever.';

CREATE TYPE alkstore.fired_schedule AS (
	name text,
	queue text,
	job_id bigint,
	boundary timestamp with time zone
);

COMMENT ON TYPE alkstore.fired_schedule IS 'One job that a schedule enqueued: what alkstore.fire_schedules returns.';

CREATE FUNCTION alkstore._acquire_lock(name text, owner text, ttl_s bigint) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
DECLARE
  moment timestamptz := alkstore._now();
BEGIN
  PERFORM alkstore._check_name('owner', _acquire_lock.owner);
  PERFORM alkstore._check_ttl(_acquire_lock.ttl_s);
  -- Looked at first: the upsert locks even a row that it then leaves alone, and would make the holder's renewal wait.
  IF EXISTS (
    SELECT 1 FROM alkstore._lock l
    WHERE l.name = _acquire_lock.name AND l.owner <> _acquire_lock.owner AND l.expires_at >= moment)
  THEN
    RETURN false;
  END IF;
  INSERT INTO alkstore._lock AS l (name, owner, acquired_at, expires_at)
  VALUES (_acquire_lock.name, _acquire_lock.owner, moment, moment + make_interval(secs => _acquire_lock.ttl_s))
  ON CONFLICT ON CONSTRAINT _lock_pkey DO UPDATE SET
    owner = excluded.owner,
    acquired_at = CASE WHEN l.expires_at < moment THEN moment ELSE l.acquired_at END,
    expires_at = excluded.expires_at
  WHERE l.owner = excluded.owner OR l.expires_at < moment;
  RETURN FOUND;
END $$;

CREATE FUNCTION alkstore._backoff_s(base bigint, attempt bigint) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
DECLARE
  cap bigint := least(3600, base * (1::bigint << least(attempt - 1, 12)::int));
  low bigint := (cap + 1) / 2;
BEGIN
  RETURN low + floor(random() * (cap - low + 1))::bigint;
END $$;

CREATE FUNCTION alkstore._bury(ids bigint[], last_error text, moment timestamp with time zone, error text DEFAULT NULL::text) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
DECLARE
  buried bigint;
BEGIN
  IF cardinality(ids) = 0 THEN
    RETURN 0::bigint;
  END IF;
  WITH gone AS (
    DELETE FROM alkstore._job j WHERE j.id = ANY (ids) RETURNING j.*
  )
  INSERT INTO alkstore._dead_job (
    id, queue, payload, priority, attempts, released, max_attempts, visibility_timeout_s, backoff_base_s,
    dead_letter_retention_s, created_at, run_at, expires_at, worker_id, claimed_at, claim_expires_at,
    retry_error, last_error, died_at, prune_at)
  SELECT
    g.id, g.queue, g.payload, g.priority, g.attempts, g.released, g.max_attempts, g.visibility_timeout_s,
    g.backoff_base_s, g.dead_letter_retention_s, g.created_at, g.run_at, g.expires_at, g.worker_id, g.claimed_at,
    g.claim_expires_at, coalesce(_bury.error, g.retry_error), _bury.last_error, moment,
    moment + make_interval(secs => g.dead_letter_retention_s)
  FROM gone g;
  GET DIAGNOSTICS buried = ROW_COUNT;
  RETURN buried;
END $$;

CREATE FUNCTION alkstore._bury_spent(spent bigint[], moment timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
  PERFORM alkstore._bury(
    ARRAY(
      SELECT j.id FROM alkstore._job j
      WHERE j.id = ANY (spent) AND j.claim_expires_at < moment AND j.attempts - j.released >= j.max_attempts
      ORDER BY j.id
      FOR UPDATE SKIP LOCKED),
    'max attempts exceeded', moment);
END $$;

CREATE FUNCTION alkstore._check_name(what text, name text) RETURNS void
    LANGUAGE plpgsql STABLE
    AS $$
BEGIN
  IF name IS NULL OR name = '' OR octet_length(name) > 255 THEN
    RAISE EXCEPTION 'invalid_name: % must be text of 1 to 255 bytes', what
      USING ERRCODE = 'AK001',
            HINT = CASE WHEN name IS NULL THEN 'It is NULL.' ELSE format('It has %s bytes.', octet_length(name)) END;
  END IF;
END $$;

CREATE FUNCTION alkstore._check_option(name text, value bigint, minimum bigint) RETURNS void
    LANGUAGE plpgsql STABLE
    AS $$
BEGIN
  IF value NOT BETWEEN minimum AND 2147483647 THEN
    RAISE EXCEPTION 'invalid_option: % must be a whole number from % to 2147483647', name, minimum
      USING ERRCODE = 'AK003', HINT = format('It is %s.', value);
  END IF;
END $$;

CREATE FUNCTION alkstore._check_options(delay_s bigint, run_at timestamp with time zone, priority bigint, expires_s bigint, max_attempts bigint, visibility_timeout_s bigint, backoff_base_s bigint, dead_letter_retention_s bigint) RETURNS void
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

CREATE FUNCTION alkstore._check_payload(payload anycompatible) RETURNS json
    LANGUAGE plpgsql STABLE
    SET bytea_output TO 'hex'
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

CREATE FUNCTION alkstore._check_public_name(what text, name text) RETURNS void
    LANGUAGE plpgsql STABLE
    AS $$
BEGIN
  PERFORM alkstore._check_name(what, name);
  IF starts_with(name, '__alkstore_') THEN
    RAISE EXCEPTION 'invalid_name: % must not start with the reserved prefix __alkstore_', what
      USING ERRCODE = 'AK001', HINT = format('It is %s.', quote_literal(name));
  END IF;
END $$;

CREATE FUNCTION alkstore._check_ttl(ttl_s bigint) RETURNS void
    LANGUAGE plpgsql STABLE
    AS $$
BEGIN
  IF ttl_s IS NULL THEN
    RAISE EXCEPTION 'invalid_option: ttl_s is required' USING ERRCODE = 'AK003', HINT = 'It is NULL.';
  END IF;
  PERFORM alkstore._check_option('ttl_s', ttl_s, 1);
END $$;

CREATE FUNCTION alkstore._claim(queue text, worker_id text, n bigint) RETURNS SETOF alkstore.claimed_job
    LANGUAGE plpgsql
    AS $$
DECLARE
  moment timestamptz := alkstore._now();
  wanted bigint := coalesce(_claim.n, 1);
  mark text[] := nullif(current_setting('alkstore._mark', true), '')::text[];
  look_at_due boolean;
  due bigint[] := '{}'::bigint[];
  spent bigint[];
  picked bigint[];
  pages bigint;
  costly boolean := false;
BEGIN
  PERFORM alkstore._check_name('worker_id', _claim.worker_id);
  IF wanted <= 0 THEN
    RETURN;
  END IF;
  IF mark IS NOT NULL
    AND mark[1:3] <> ARRAY['alkstore._job'::regclass::oid::text, _claim.queue, extract(epoch FROM moment)::text]
  THEN
    mark := NULL;
  END IF;
  look_at_due := mark IS NULL;

  LOOP
    pages := alkstore._pages_read();
    -- Ids first, into an array: a semi-join could run the locking sub-select again and hand out more than n.
    -- NULL: some row has become due, so the ready index is not the whole story.
    SELECT CASE WHEN NOT look_at_due OR NOT EXISTS (
        SELECT FROM alkstore._job j
        WHERE j.queue = _claim.queue AND NOT j.ready AND j.due_at <= moment)
      THEN ARRAY(
        SELECT j.id FROM alkstore._job j
        WHERE j.queue = _claim.queue AND j.ready AND j.due_at <= moment
          AND (j.expires_at IS NULL OR j.expires_at >= moment)
          AND (-j.priority, j.run_at, j.id) > (
            coalesce(mark[4]::bigint, -2147483648), coalesce(to_timestamp(mark[5]::float8), '-infinity'),
            coalesce(mark[6]::bigint, 0))
        ORDER BY -j.priority, j.run_at, j.id
        LIMIT wanted
        FOR UPDATE SKIP LOCKED)
      END INTO picked;
    IF picked IS NULL THEN
      SELECT
        coalesce(array_agg(j.id) FILTER (
          WHERE (j.expires_at IS NULL OR j.expires_at >= moment)
            AND (j.claim_expires_at IS NULL OR j.attempts - j.released < j.max_attempts)), '{}'),
        coalesce(array_agg(j.id) FILTER (
          WHERE j.claim_expires_at < moment AND j.attempts - j.released >= j.max_attempts), '{}')
      INTO due, spent
      FROM alkstore._job j
      WHERE j.queue = _claim.queue AND NOT j.ready AND j.due_at <= moment;
      costly := alkstore._pages_read() - pages > 25 + 3 * (cardinality(due) + cardinality(spent));
      IF spent <> '{}' THEN
        PERFORM alkstore._bury_spent(spent, moment);
      END IF;
      -- Few due rows are merged on the fly, so that a claimer in a long transaction holds only what it takes.
      -- Many would be sorted again by every claim, and a mark leads past them: those are promoted, once.
      IF costly OR cardinality(due) > 100 THEN
        PERFORM alkstore._promote(due, moment);
        due := '{}';
        look_at_due := false;
        CONTINUE;
      END IF;
      pages := alkstore._pages_read();
      picked := alkstore._pick_with_due(_claim.queue, wanted, moment, due);
    END IF;
    costly := costly OR alkstore._pages_read() - pages > 25 + 3 * (cardinality(due) + cardinality(picked));
    EXIT WHEN mark IS NULL OR picked <> '{}';
    mark := NULL;
    look_at_due := true;
  END LOOP;
  IF picked = '{}' THEN
    RETURN;
  END IF;
  IF mark IS NOT NULL OR costly THEN
    IF due <> '{}' THEN
      PERFORM alkstore._promote(due, moment);
    END IF;
    PERFORM alkstore._set_mark(_claim.queue, moment, picked[cardinality(picked)]);
  END IF;

  RETURN QUERY
  WITH taken AS (
    UPDATE alkstore._job j SET
      worker_id = _claim.worker_id,
      claimed_at = moment,
      attempts = j.attempts + 1,
      claim_expires_at = moment + make_interval(secs => j.visibility_timeout_s),
      ready = false,
      due_at = moment + make_interval(secs => j.visibility_timeout_s + 1)
    WHERE j.id = ANY (picked)
    RETURNING j.*
  )
  SELECT
    t.id, t.queue, t.payload, t.attempts, t.claim_expires_at, t.priority, t.max_attempts, t.worker_id, t.claimed_at,
    t.run_at, t.expires_at, t.created_at
  FROM taken t
  ORDER BY t.priority DESC, t.run_at, t.id;
END $$;

CREATE FUNCTION alkstore._cut(error text) RETURNS text
    LANGUAGE sql IMMUTABLE
    AS $$ SELECT left(error, 65536) $$;

CREATE FUNCTION alkstore._enqueue(queue text, payloads json[], delay_s bigint, run_at timestamp with time zone, priority bigint, expires_s bigint, max_attempts bigint, visibility_timeout_s bigint, backoff_base_s bigint, dead_letter_retention_s bigint) RETURNS SETOF bigint
    LANGUAGE plpgsql
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

CREATE FUNCTION alkstore._grant_calls(role text, calls text[]) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
  -- GRANT takes even a quoted "public" for everybody; no role has that name.
  grantee regrole := format('%I', role)::regrole;
  schema_id regnamespace := (
    SELECT c.relnamespace::regnamespace FROM pg_catalog.pg_class c WHERE c.oid = 'alkstore._job'::regclass);
  call regprocedure;
BEGIN
  EXECUTE format('GRANT USAGE ON SCHEMA %s TO %s', schema_id, grantee);
  FOR call IN
    SELECT p.oid::regprocedure FROM pg_catalog.pg_proc p
    WHERE p.pronamespace = schema_id AND p.proname = ANY (calls || '{version}')
  LOOP
    EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s', call, grantee);
  END LOOP;
END $$;

CREATE FUNCTION alkstore._grant_views(role text, views text[] DEFAULT NULL::text[]) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
  grantee regrole := format('%I', role)::regrole;
  ops_view regclass;
BEGIN
  PERFORM alkstore._grant_calls(role, '{_now}');
  FOR ops_view IN
    SELECT v.oid::regclass FROM pg_catalog.pg_class v
    WHERE v.relkind = 'v' AND (views IS NULL OR v.relname = ANY (views))
      AND v.relnamespace = (SELECT c.relnamespace FROM pg_catalog.pg_class c WHERE c.oid = 'alkstore._job'::regclass)
  LOOP
    EXECUTE format('GRANT SELECT ON %s TO %s', ops_view, grantee);
  END LOOP;
END $$;

CREATE FUNCTION alkstore._interval_s(spec text) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE
    AS $_$
DECLARE
  part text[] := regexp_match(spec, '^@every ([1-9][0-9]{0,9})([smhd])$');
  seconds bigint := part[1]::bigint * CASE part[2] WHEN 's' THEN 1 WHEN 'm' THEN 60 WHEN 'h' THEN 3600 ELSE 86400 END;
BEGIN
  IF seconds <= 2147483647 THEN
    RETURN seconds;
  END IF;
  RAISE EXCEPTION 'invalid_spec: % is not a schedule', coalesce(quote_literal(spec), 'NULL')
    USING ERRCODE = 'AK004', HINT = 'Write @every, one space, a number from 1, and s, m, h or d: @every 90m. At most 2147483647 seconds.';
END $_$;

CREATE FUNCTION alkstore._now() RETURNS timestamp with time zone
    LANGUAGE sql
    AS $$ SELECT pg_catalog.date_trunc('second', pg_catalog.clock_timestamp()) $$;

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

CREATE FUNCTION alkstore._pages_read() RETURNS bigint
    LANGUAGE sql
    AS $$
  SELECT pg_stat_get_xact_blocks_fetched('alkstore._job'::regclass)
    + pg_stat_get_xact_blocks_fetched('alkstore._job_ready'::regclass)
    + pg_stat_get_xact_blocks_fetched('alkstore._job_due'::regclass)
$$;

CREATE FUNCTION alkstore._pick_with_due(queue text, n bigint, moment timestamp with time zone, due bigint[]) RETURNS bigint[]
    LANGUAGE plpgsql
    AS $$
DECLARE
  candidate bigint;
  picked bigint[] := '{}'::bigint[];
BEGIN
  -- Sorted arms are merged lazily: the ready index is read only as far as needed.
  -- One by one, since a locking cursor over the merge would hold a row more than it returns.
  FOR candidate IN
    SELECT m.id FROM (
      (SELECT j.id, -j.priority AS rank, j.run_at FROM alkstore._job j
       WHERE j.queue = _pick_with_due.queue AND j.ready
       ORDER BY -j.priority, j.run_at, j.id OFFSET 0)
      UNION ALL
      (SELECT j.id, -j.priority, j.run_at FROM alkstore._job j
       WHERE j.id = ANY (due) AND NOT j.ready
       ORDER BY -j.priority, j.run_at, j.id OFFSET 0)
    ) m
    ORDER BY m.rank, m.run_at, m.id
  LOOP
    EXIT WHEN cardinality(picked) >= n;
    candidate := (
      SELECT j.id FROM alkstore._job j
      WHERE j.id = candidate AND j.due_at <= moment
        AND (j.expires_at IS NULL OR j.expires_at >= moment)
        AND (j.claim_expires_at IS NULL OR j.attempts - j.released < j.max_attempts)
      FOR UPDATE SKIP LOCKED);
    -- One element at a time grows the array in place; an array appended to it would copy it each time.
    IF candidate IS NOT NULL THEN
      picked := picked || candidate;
    END IF;
  END LOOP;
  RETURN picked;
END $$;

CREATE FUNCTION alkstore._promote(due bigint[], moment timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
  UPDATE alkstore._job j SET ready = true
  WHERE j.id = ANY (ARRAY(
    SELECT d.id FROM alkstore._job d
    WHERE d.id = ANY (due) AND NOT d.ready AND d.due_at <= moment
      AND (d.claim_expires_at IS NULL OR d.attempts - d.released < d.max_attempts)
    ORDER BY d.id
    FOR UPDATE SKIP LOCKED));
END $$;

CREATE FUNCTION alkstore._release_lock(name text, owner text) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
DECLARE
  moment timestamptz := alkstore._now();
BEGIN
  PERFORM alkstore._check_name('owner', _release_lock.owner);
  DELETE FROM alkstore._lock l
  WHERE l.name = _release_lock.name AND l.owner = _release_lock.owner AND l.expires_at >= moment;
  RETURN FOUND;
END $$;

CREATE FUNCTION alkstore._set_mark(queue text, moment timestamp with time zone, last_picked bigint) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
  PERFORM set_config(
    'alkstore._mark',
    ARRAY[
      'alkstore._job'::regclass::oid::text, _set_mark.queue, extract(epoch FROM moment)::text,
      (-j.priority)::text, extract(epoch FROM j.run_at)::text, j.id::text]::text,
    false)
  FROM alkstore._job j
  WHERE j.id = last_picked;
END $$;

CREATE FUNCTION alkstore._sweep_expired(queue text, OUT expired bigint, OUT pruned bigint) RETURNS record
    LANGUAGE plpgsql
    AS $$
DECLARE
  moment timestamptz := alkstore._now();
BEGIN
  expired := alkstore._bury(
    ARRAY(
      SELECT j.id FROM alkstore._job j
      WHERE j.queue = _sweep_expired.queue AND j.expires_at < moment
      ORDER BY j.id
      FOR UPDATE SKIP LOCKED),
    'expired', moment);
  DELETE FROM alkstore._dead_job d
  WHERE d.id = ANY (ARRAY(
    SELECT p.id FROM alkstore._dead_job p
    WHERE p.queue = _sweep_expired.queue AND p.prune_at < moment
    ORDER BY p.id
    FOR UPDATE SKIP LOCKED));
  GET DIAGNOSTICS pruned = ROW_COUNT;
END $$;

CREATE FUNCTION alkstore._wake(queue text) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
  IF lower(coalesce(current_setting('alkstore.notify', true), '')) NOT IN ('off', 'false', 'no', '0') THEN
    PERFORM pg_notify(alkstore.wake_channel(_wake.queue), '');
  END IF;
END $$;

CREATE FUNCTION alkstore.ack(queue text, job_id bigint, attempt bigint) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
  moment timestamptz := alkstore._now();
BEGIN
  PERFORM alkstore._check_name('queue', ack.queue);
  DELETE FROM alkstore._job j
  WHERE j.id = ack.job_id AND j.queue = ack.queue AND j.attempts = ack.attempt AND j.claim_expires_at >= moment;
  RETURN FOUND;
END $$;

COMMENT ON FUNCTION alkstore.ack(queue text, job_id bigint, attempt bigint) IS 'Deletes a claimed job: its work is done. False, and nothing changed, unless the job is processing under that very attempt
and its claim has not expired. Errors: AK001 invalid_name.';

CREATE FUNCTION alkstore.ack_batch(queue text, job_ids bigint[], attempts bigint[] DEFAULT NULL::bigint[]) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    AS $$
DECLARE
  moment timestamptz := alkstore._now();
  accepted bigint;
BEGIN
  PERFORM alkstore._check_name('queue', ack_batch.queue);
  IF ack_batch.job_ids IS NULL THEN
    RAISE EXCEPTION 'invalid_option: job_ids is NULL'
      USING ERRCODE = 'AK003', HINT = 'No ids at all is an empty array.';
  END IF;
  IF cardinality(ack_batch.attempts) <> cardinality(ack_batch.job_ids) THEN
    RAISE EXCEPTION 'invalid_option: job_ids and attempts must have the same length'
      USING ERRCODE = 'AK003',
            HINT = format('They have %s and %s.', cardinality(ack_batch.job_ids), cardinality(ack_batch.attempts));
  END IF;
  -- Locked in id order, waiting: two batches over the same rows never deadlock.
  DELETE FROM alkstore._job d
  WHERE d.id = ANY (ARRAY(
    SELECT j.id FROM alkstore._job j
    WHERE j.id = ANY (ack_batch.job_ids) AND j.queue = ack_batch.queue AND j.claim_expires_at >= moment
      AND (
        (j.id, j.attempts) IN (
          SELECT g.id, g.attempt FROM unnest(ack_batch.job_ids, ack_batch.attempts) g (id, attempt)
          WHERE g.attempt IS NOT NULL)
        OR j.id IN (
          SELECT g.id FROM unnest(ack_batch.job_ids, ack_batch.attempts) g (id, attempt)
          WHERE g.attempt IS NULL))
    ORDER BY j.id
    FOR UPDATE));
  GET DIAGNOSTICS accepted = ROW_COUNT;
  RETURN accepted;
END $$;

COMMENT ON FUNCTION alkstore.ack_batch(queue text, job_ids bigint[], attempts bigint[]) IS 'Acks many jobs of one queue and returns how many were accepted; the rest is ignored, an id given twice counts once.
attempts[i] belongs to job_ids[i]. Without attempts, or where one is NULL, the attempt is not checked: a worker whose claim
was taken over by another could then ack the other''s claim. Errors: AK001 invalid_name, AK003 invalid_option.';

CREATE FUNCTION alkstore.acquire_lock(name text, owner text, ttl_s bigint) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
  PERFORM alkstore._check_public_name('name', acquire_lock.name);
  RETURN alkstore._acquire_lock(acquire_lock.name, acquire_lock.owner, acquire_lock.ttl_s);
END $$;

COMMENT ON FUNCTION alkstore.acquire_lock(name text, owner text, ttl_s bigint) IS 'True when owner now holds the lock for ttl_s seconds: it was free, lapsed, or the owner''s already (then renewed). False: another
owner holds it. A row with a deadline, not a session lock: it works through poolers. Errors: AK001 invalid_name, AK003 invalid_option.';

CREATE FUNCTION alkstore.cancel(queue text, job_id bigint) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
BEGIN
  PERFORM alkstore._check_public_name('queue', cancel.queue);
  DELETE FROM alkstore._job j WHERE j.id = cancel.job_id AND j.queue = cancel.queue;
  RETURN FOUND;
END $$;

COMMENT ON FUNCTION alkstore.cancel(queue text, job_id bigint) IS 'Deletes a live job, pending or processing. False when there is none (a dead job stays). Errors: AK001 invalid_name.';

CREATE FUNCTION alkstore.claim(queue text, worker_id text, n bigint DEFAULT 1) RETURNS SETOF alkstore.claimed_job
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET jit TO 'off'
    AS $$
BEGIN
  PERFORM alkstore._check_public_name('queue', claim.queue);
  RETURN QUERY SELECT * FROM alkstore._claim(claim.queue, claim.worker_id, claim.n);
END $$;

COMMENT ON FUNCTION alkstore.claim(queue text, worker_id text, n bigint) IS 'Hands out up to n ready jobs to a worker, by priority (higher first), run_at, id. Each is the worker''s until claim_expires_at;
then anyone may claim it again, as the next attempt. Rows locked by others are passed over, never waited for.
n: NULL is 1, 0 or less gives no rows. No row: nothing was ready. Errors: AK001 invalid_name.';

CREATE FUNCTION alkstore.enqueue(queue text, payload anycompatible, delay_s bigint DEFAULT NULL::bigint, run_at timestamp with time zone DEFAULT NULL::timestamp with time zone, priority bigint DEFAULT NULL::bigint, expires_s bigint DEFAULT NULL::bigint, max_attempts bigint DEFAULT NULL::bigint, visibility_timeout_s bigint DEFAULT NULL::bigint, backoff_base_s bigint DEFAULT NULL::bigint, dead_letter_retention_s bigint DEFAULT NULL::bigint) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
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

COMMENT ON FUNCTION alkstore.enqueue(queue text, payload anycompatible, delay_s bigint, run_at timestamp with time zone, priority bigint, expires_s bigint, max_attempts bigint, visibility_timeout_s bigint, backoff_base_s bigint, dead_letter_retention_s bigint) IS 'Adds one job to a queue and returns its id. Belongs to the caller''s transaction: nothing is claimable before commit.
payload: JSON text, json or jsonb, kept byte for byte. delay_s (seconds from now) wins over run_at; priority: higher first, default 0;
expires_s: seconds from now after which the job is never claimed; max_attempts 3, visibility_timeout_s 300, backoff_base_s 5,
dead_letter_retention_s NULL (keep dead jobs for ever) are stamped onto the job. NULL means the default.
Errors: AK001 invalid_name, AK002 invalid_payload, AK003 invalid_option.';

CREATE FUNCTION alkstore.enqueue_batch(queue text, payloads anycompatible, delay_s bigint DEFAULT NULL::bigint, run_at timestamp with time zone DEFAULT NULL::timestamp with time zone, priority bigint DEFAULT NULL::bigint, expires_s bigint DEFAULT NULL::bigint, max_attempts bigint DEFAULT NULL::bigint, visibility_timeout_s bigint DEFAULT NULL::bigint, backoff_base_s bigint DEFAULT NULL::bigint, dead_letter_retention_s bigint DEFAULT NULL::bigint) RETURNS SETOF bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
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

COMMENT ON FUNCTION alkstore.enqueue_batch(queue text, payloads anycompatible, delay_s bigint, run_at timestamp with time zone, priority bigint, expires_s bigint, max_attempts bigint, visibility_timeout_s bigint, backoff_base_s bigint, dead_letter_retention_s bigint) IS 'Adds one job per element of a JSON array, all or none, and returns their ids in input order. The options are those of enqueue
and hold for every job. Errors: AK001 invalid_name, AK002 invalid_payload (not a JSON array), AK003 invalid_option.';

CREATE FUNCTION alkstore.fail(queue text, job_id bigint, attempt bigint, error text DEFAULT NULL::text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
  moment timestamptz := alkstore._now();
BEGIN
  PERFORM alkstore._check_name('queue', fail.queue);
  RETURN 1 = alkstore._bury(
    ARRAY(
      SELECT j.id FROM alkstore._job j
      WHERE j.id = fail.job_id AND j.queue = fail.queue AND j.attempts = fail.attempt
        AND j.claim_expires_at >= moment
      FOR UPDATE),
    coalesce(alkstore._cut(fail.error), 'failed'), moment);
END $$;

COMMENT ON FUNCTION alkstore.fail(queue text, job_id bigint, attempt bigint, error text) IS 'Moves a claimed job to the dead jobs at once, whatever attempts are left; error (default ''failed'') becomes last_error.
False, and nothing changed, unless the job is processing under that very attempt and its claim has not expired.
Errors: AK001 invalid_name.';

CREATE FUNCTION alkstore.fire_schedules(name text DEFAULT NULL::text) RETURNS SETOF alkstore.fired_schedule
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
  moment timestamptz := alkstore._now();
  due alkstore._schedule%ROWTYPE;
  missed bigint;
  job_ids bigint[];
BEGIN
  -- Rows that another caller is firing are passed over: the lock is what keeps a boundary from firing twice.
  FOR due IN
    SELECT * FROM alkstore._schedule s
    WHERE s.next_run_at <= moment AND (fire_schedules.name IS NULL OR s.name = fire_schedules.name)
    ORDER BY s.next_run_at, s.name
    FOR UPDATE SKIP LOCKED
  LOOP
    missed := floor(extract(epoch FROM moment - due.next_run_at) / due.interval_s)::bigint + 1;
    BEGIN
      job_ids := ARRAY(
        SELECT e.id
        FROM (
          SELECT due.next_run_at + make_interval(secs => due.interval_s * step) AS boundary
          FROM generate_series(0, least(missed, 64) - 1) step) b
        CROSS JOIN LATERAL alkstore._enqueue(
          due.queue, ARRAY[due.payload], NULL, b.boundary, due.priority, due.expires_s, due.max_attempts, NULL, NULL, NULL) e (id)
        ORDER BY b.boundary);
      UPDATE alkstore._schedule s SET
        next_run_at = due.next_run_at + make_interval(secs => due.interval_s * missed),
        last_error = NULL
      WHERE s.name = due.name;
      -- Only now is it sure that these jobs stay.
      RETURN QUERY
      SELECT due.name, due.queue, f.job_id, due.next_run_at + make_interval(secs => due.interval_s * (f.position - 1))
      FROM unnest(job_ids) WITH ORDINALITY f (job_id, position);
    EXCEPTION
      WHEN serialization_failure OR deadlock_detected THEN
        RAISE;
      WHEN OTHERS THEN
        -- One bad schedule must not stop the others; it is tried again at the next call.
        UPDATE alkstore._schedule s SET last_error = alkstore._cut(SQLERRM)
        WHERE s.name = due.name AND s.last_error IS DISTINCT FROM alkstore._cut(SQLERRM);
    END;
  END LOOP;
END $$;

COMMENT ON FUNCTION alkstore.fire_schedules(name text) IS 'Fires each due schedule, or only the one of that name: one job per missed boundary with run_at = the boundary, oldest first, at
most 64 (the rest is skipped), and advances it past now. Returns what it enqueued. Any number may call it at once, as often as they
like: no boundary fires twice. A schedule whose enqueue fails is left as it was, with the error in schedules.last_error.';

CREATE TABLE alkstore._dead_job (
    id bigint NOT NULL,
    queue text NOT NULL COLLATE pg_catalog."C",
    payload json NOT NULL,
    priority bigint NOT NULL,
    attempts bigint NOT NULL,
    released bigint NOT NULL,
    max_attempts bigint NOT NULL,
    visibility_timeout_s bigint NOT NULL,
    backoff_base_s bigint NOT NULL,
    dead_letter_retention_s bigint,
    created_at timestamp with time zone NOT NULL,
    run_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone,
    worker_id text COLLATE pg_catalog."C",
    claimed_at timestamp with time zone,
    claim_expires_at timestamp with time zone,
    retry_error text COLLATE pg_catalog."C",
    last_error text NOT NULL COLLATE pg_catalog."C",
    died_at timestamp with time zone NOT NULL,
    prune_at timestamp with time zone
);

CREATE TABLE alkstore._job (
    id bigint NOT NULL,
    queue text NOT NULL COLLATE pg_catalog."C",
    payload json NOT NULL,
    priority bigint NOT NULL,
    attempts bigint DEFAULT 0 NOT NULL,
    released bigint DEFAULT 0 NOT NULL,
    max_attempts bigint NOT NULL,
    visibility_timeout_s bigint NOT NULL,
    backoff_base_s bigint NOT NULL,
    dead_letter_retention_s bigint,
    created_at timestamp with time zone NOT NULL,
    run_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone,
    worker_id text COLLATE pg_catalog."C",
    claimed_at timestamp with time zone,
    claim_expires_at timestamp with time zone,
    retry_error text COLLATE pg_catalog."C",
    ready boolean NOT NULL,
    due_at timestamp with time zone NOT NULL,
    CONSTRAINT _job_claim CHECK ((num_nulls(worker_id, claimed_at, claim_expires_at) = ANY (ARRAY[0, 3])))
)
WITH (autovacuum_vacuum_scale_factor='0.01');

CREATE VIEW alkstore.jobs AS
 SELECT id AS job_id,
    queue,
        CASE
            WHEN (claim_expires_at IS NULL) THEN 'pending'::text
            ELSE 'processing'::text
        END AS state,
    payload,
    priority,
    attempts,
    max_attempts,
    visibility_timeout_s,
    backoff_base_s,
    dead_letter_retention_s,
    worker_id,
    created_at,
    run_at,
    expires_at,
    claimed_at,
    claim_expires_at,
    retry_error,
    NULL::text AS last_error,
    NULL::timestamp with time zone AS died_at,
    released
   FROM alkstore._job j
UNION ALL
 SELECT id AS job_id,
    queue,
    'dead'::text AS state,
    payload,
    priority,
    attempts,
    max_attempts,
    visibility_timeout_s,
    backoff_base_s,
    dead_letter_retention_s,
    worker_id,
    created_at,
    run_at,
    expires_at,
    claimed_at,
    claim_expires_at,
    retry_error,
    last_error,
    died_at,
    released
   FROM alkstore._dead_job d;

COMMENT ON VIEW alkstore.jobs IS 'Every job, one row each: pending, processing (also after the claim lapsed, until somebody claims it), dead. Acked and cancelled jobs are gone.';

CREATE FUNCTION alkstore.get_job(queue text, job_id bigint) RETURNS SETOF alkstore.jobs
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
  SELECT * FROM alkstore.jobs j WHERE j.job_id = get_job.job_id AND j.queue = get_job.queue
$$;

COMMENT ON FUNCTION alkstore.get_job(queue text, job_id bigint) IS 'One job, live or dead, with the columns of the view jobs. No row: it never was, was acked or cancelled, or is another queue''s.';

CREATE FUNCTION alkstore.grant_operator(role text) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
  PERFORM alkstore.grant_producer(role);
  PERFORM alkstore.grant_worker(role);
  PERFORM alkstore.grant_scheduler(role);
  PERFORM alkstore._grant_calls(role, '{cancel,outbox_cancel}');
  PERFORM alkstore._grant_views(role);
END $$;

COMMENT ON FUNCTION alkstore.grant_operator(role text) IS 'Lets a role do everything that producers, workers and schedulers do, cancel, and read the views. Only the owner of the schema can grant.';

CREATE FUNCTION alkstore.grant_producer(role text) RETURNS void
    LANGUAGE sql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$ SELECT alkstore._grant_calls(grant_producer.role, '{enqueue,enqueue_batch,outbox_enqueue}') $$;

COMMENT ON FUNCTION alkstore.grant_producer(role text) IS 'Lets a role enqueue: enqueue, enqueue_batch, outbox_enqueue, version. Only the owner of the schema can grant.';

CREATE FUNCTION alkstore.grant_scheduler(role text) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
  PERFORM alkstore._grant_calls(role, '{schedule,unschedule,fire_schedules,lead_schedules,resign_schedules}');
  -- A runner sleeps until the next boundary, or until the leader's lock lapses.
  PERFORM alkstore._grant_views(role, '{schedules,locks}');
END $$;

COMMENT ON FUNCTION alkstore.grant_scheduler(role text) IS 'Lets a role schedule and fire: schedule, unschedule, fire_schedules, lead_schedules, resign_schedules, version, and the views
schedules and locks. Only the owner of the schema can grant.';

CREATE FUNCTION alkstore.grant_worker(role text) RETURNS void
    LANGUAGE sql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
  SELECT alkstore._grant_calls(
    grant_worker.role,
    '{claim,ack,ack_batch,retry,release,fail,heartbeat,get_job,next_due,wake_channel,sweep_expired,
      outbox_claim,outbox_get_job,outbox_sweep_expired,acquire_lock,renew_lock,release_lock}')
$$;

COMMENT ON FUNCTION alkstore.grant_worker(role text) IS 'Lets a role work on jobs: claim and what settles a claim, get_job, next_due, wake_channel, the sweeps, outbox_claim and
outbox_get_job, the locks, version. Only the owner of the schema can grant.';

CREATE FUNCTION alkstore.heartbeat(queue text, job_id bigint, attempt bigint, extend_s bigint DEFAULT NULL::bigint) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
  moment timestamptz := alkstore._now();
BEGIN
  PERFORM alkstore._check_name('queue', heartbeat.queue);
  PERFORM alkstore._check_option('extend_s', heartbeat.extend_s, 1);
  UPDATE alkstore._job j SET
    claim_expires_at = moment + make_interval(secs => coalesce(heartbeat.extend_s, j.visibility_timeout_s)),
    ready = false,
    due_at = moment + make_interval(secs => coalesce(heartbeat.extend_s, j.visibility_timeout_s) + 1)
  WHERE j.id = heartbeat.job_id AND j.queue = heartbeat.queue AND j.attempts = heartbeat.attempt
    AND j.claim_expires_at >= moment;
  RETURN FOUND;
END $$;

COMMENT ON FUNCTION alkstore.heartbeat(queue text, job_id bigint, attempt bigint, extend_s bigint) IS 'Resets the deadline of a claim to extend_s seconds from now (not added; default: the job''s visibility_timeout_s).
False, and nothing changed, unless the job is processing under that very attempt and its claim has not expired.
Errors: AK001 invalid_name, AK003 invalid_option.';

CREATE FUNCTION alkstore.lead_schedules(owner text, ttl_s bigint) RETURNS boolean
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$ SELECT alkstore._acquire_lock('__alkstore_scheduler', lead_schedules.owner, lead_schedules.ttl_s) $$;

COMMENT ON FUNCTION alkstore.lead_schedules(owner text, ttl_s bigint) IS 'True when owner now leads the schedule runners for ttl_s seconds: nobody did, the leader lapsed, or it is the owner already.
Leadership saves work; it is not needed for correctness. Errors: AK001 invalid_name, AK003 invalid_option.';

CREATE FUNCTION alkstore.next_due(queue text) RETURNS timestamp with time zone
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
  moment timestamptz := alkstore._now();
  ready_since timestamptz;
BEGIN
  -- Any one that is ready will do: its instant has come.
  ready_since := (
    SELECT j.due_at FROM alkstore._job j
    WHERE j.queue = next_due.queue AND j.ready AND (j.expires_at IS NULL OR j.expires_at >= greatest(j.due_at, moment))
    ORDER BY -j.priority, j.run_at, j.id
    LIMIT 1);
  -- Unless the clock stepped back: then the least one matters.
  IF ready_since > moment THEN
    ready_since := (
      SELECT min(j.due_at) FROM alkstore._job j
      WHERE j.queue = next_due.queue AND j.ready AND (j.expires_at IS NULL OR j.expires_at >= greatest(j.due_at, moment)));
  END IF;
  RETURN least(
    ready_since,
    (SELECT j.due_at FROM alkstore._job j
     WHERE j.queue = next_due.queue AND NOT j.ready
       AND (j.expires_at IS NULL OR j.expires_at >= greatest(j.due_at, moment))
     ORDER BY j.due_at
     LIMIT 1));
END $$;

COMMENT ON FUNCTION alkstore.next_due(queue text) IS 'The least instant at which a claim would find a job: at or before now when one is ready, else when the next delayed job is due
or the next claim lapses. NULL: the queue holds nothing that time alone makes claimable.';

CREATE FUNCTION alkstore.outbox_cancel(outbox text, job_id bigint) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
  -- Here and not in the WHERE, where a name is judged only once a row of that id is found.
  target text := alkstore._outbox_queue(outbox_cancel.outbox);
BEGIN
  DELETE FROM alkstore._job j
  WHERE j.id = outbox_cancel.job_id AND j.queue = target;
  RETURN FOUND;
END $$;

COMMENT ON FUNCTION alkstore.outbox_cancel(outbox text, job_id bigint) IS 'Deletes a message that is waiting or in delivery. False when there is none (a dead one stays). Errors: AK001 invalid_name.';

CREATE FUNCTION alkstore.outbox_claim(outbox text, worker_id text, n bigint DEFAULT 1) RETURNS SETOF alkstore.claimed_job
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET jit TO 'off'
    AS $$
BEGIN
  RETURN QUERY
  SELECT * FROM alkstore._claim(alkstore._outbox_queue(outbox_claim.outbox), outbox_claim.worker_id, outbox_claim.n);
END $$;

COMMENT ON FUNCTION alkstore.outbox_claim(outbox text, worker_id text, n bigint) IS 'Hands out up to n messages of an outbox, as claim does jobs. Call ack, retry, release, fail and heartbeat with the queue that the
row names. Delivery is at least once: job_id is the receiver''s key for dropping repeats. Errors: AK001 invalid_name.';

CREATE FUNCTION alkstore.outbox_enqueue(outbox text, payload anycompatible, delay_s bigint DEFAULT NULL::bigint, run_at timestamp with time zone DEFAULT NULL::timestamp with time zone, priority bigint DEFAULT NULL::bigint, expires_s bigint DEFAULT NULL::bigint, max_attempts bigint DEFAULT NULL::bigint) RETURNS bigint
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
  RETURN (
    SELECT e.id
    FROM alkstore._enqueue(
      alkstore._outbox_queue(outbox_enqueue.outbox), ARRAY[alkstore._check_payload(outbox_enqueue.payload)],
      outbox_enqueue.delay_s, outbox_enqueue.run_at, outbox_enqueue.priority, outbox_enqueue.expires_s,
      outbox_enqueue.max_attempts, NULL, NULL, NULL) e (id));
END $$;

COMMENT ON FUNCTION alkstore.outbox_enqueue(outbox text, payload anycompatible, delay_s bigint, run_at timestamp with time zone, priority bigint, expires_s bigint, max_attempts bigint) IS 'Adds one message to an outbox and returns its id; options as for enqueue. Belongs to the caller''s transaction: the message goes out
if and only if the business change commits. Errors: AK001 invalid_name, AK002 invalid_payload, AK003 invalid_option.';

CREATE FUNCTION alkstore.outbox_get_job(outbox text, job_id bigint) RETURNS SETOF alkstore.jobs
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
  SELECT * FROM alkstore.jobs j
  WHERE j.job_id = outbox_get_job.job_id AND j.queue = '__alkstore_outbox_' || outbox_get_job.outbox
$$;

COMMENT ON FUNCTION alkstore.outbox_get_job(outbox text, job_id bigint) IS 'One message, with the columns of the view jobs. No row: it never was, was delivered or cancelled, or is another outbox''s.';

CREATE FUNCTION alkstore.outbox_sweep_expired(outbox text, OUT expired bigint, OUT pruned bigint) RETURNS record
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
BEGIN
  SELECT s.expired, s.pruned INTO expired, pruned
  FROM alkstore._sweep_expired(alkstore._outbox_queue(outbox_sweep_expired.outbox)) s;
END $$;

COMMENT ON FUNCTION alkstore.outbox_sweep_expired(outbox text, OUT expired bigint, OUT pruned bigint) IS 'Moves the messages of an outbox that are past their expires_at to the dead ones. Returns counts as sweep_expired does.
Errors: AK001 invalid_name.';

CREATE FUNCTION alkstore.release(queue text, job_id bigint, attempt bigint) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
  moment timestamptz := alkstore._now();
BEGIN
  PERFORM alkstore._check_name('queue', release.queue);
  UPDATE alkstore._job j SET
    worker_id = NULL,
    claimed_at = NULL,
    claim_expires_at = NULL,
    released = j.released + 1,
    ready = (j.run_at <= moment),
    due_at = j.run_at
  WHERE j.id = release.job_id AND j.queue = release.queue AND j.attempts = release.attempt
    AND j.claim_expires_at >= moment;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  PERFORM alkstore._wake(release.queue);
  RETURN true;
END $$;

COMMENT ON FUNCTION alkstore.release(queue text, job_id bigint, attempt bigint) IS 'Gives a claimed job back unused: pending again at once with its old run_at, and the claim does not count towards max_attempts.
False, and nothing changed, unless the job is processing under that very attempt and its claim has not expired.
Errors: AK001 invalid_name.';

CREATE FUNCTION alkstore.release_lock(name text, owner text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
  PERFORM alkstore._check_public_name('name', release_lock.name);
  RETURN alkstore._release_lock(release_lock.name, release_lock.owner);
END $$;

COMMENT ON FUNCTION alkstore.release_lock(name text, owner text) IS 'Frees the owner''s lock. False, and nothing changed, unless owner holds it unlapsed. Errors: AK001 invalid_name.';

CREATE FUNCTION alkstore.renew_lock(name text, owner text, ttl_s bigint) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
  moment timestamptz := alkstore._now();
BEGIN
  PERFORM alkstore._check_public_name('name', renew_lock.name);
  PERFORM alkstore._check_name('owner', renew_lock.owner);
  PERFORM alkstore._check_ttl(renew_lock.ttl_s);
  UPDATE alkstore._lock l SET expires_at = moment + make_interval(secs => renew_lock.ttl_s)
  WHERE l.name = renew_lock.name AND l.owner = renew_lock.owner AND l.expires_at >= moment;
  RETURN FOUND;
END $$;

COMMENT ON FUNCTION alkstore.renew_lock(name text, owner text, ttl_s bigint) IS 'Resets the deadline of the owner''s lock to ttl_s seconds from now. False, and nothing changed, unless owner holds it unlapsed:
after a lapse somebody else may have acted. Errors: AK001 invalid_name, AK003 invalid_option.';

CREATE FUNCTION alkstore.resign_schedules(owner text) RETURNS boolean
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$ SELECT alkstore._release_lock('__alkstore_scheduler', resign_schedules.owner) $$;

COMMENT ON FUNCTION alkstore.resign_schedules(owner text) IS 'Gives leadership back, so that another runner need not wait for it to lapse. False unless owner leads. Errors: AK001 invalid_name.';

CREATE FUNCTION alkstore.retry(queue text, job_id bigint, attempt bigint, error text, delay_s bigint DEFAULT NULL::bigint) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
  moment timestamptz := alkstore._now();
  cut_error text := alkstore._cut(retry.error);
  job alkstore._job%ROWTYPE;
  due timestamptz;
BEGIN
  PERFORM alkstore._check_name('queue', retry.queue);
  PERFORM alkstore._check_option('delay_s', retry.delay_s, 0);
  SELECT * INTO job FROM alkstore._job j
  WHERE j.id = retry.job_id AND j.queue = retry.queue AND j.attempts = retry.attempt AND j.claim_expires_at >= moment
  FOR UPDATE;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  IF job.attempts - job.released >= job.max_attempts THEN
    PERFORM alkstore._bury(ARRAY[job.id], coalesce(cut_error, 'max attempts exceeded'), moment, cut_error);
    RETURN true;
  END IF;
  due := moment + make_interval(secs =>
    coalesce(retry.delay_s, alkstore._backoff_s(job.backoff_base_s, job.attempts - job.released)));
  UPDATE alkstore._job j SET
    worker_id = NULL,
    claimed_at = NULL,
    claim_expires_at = NULL,
    run_at = due,
    retry_error = coalesce(cut_error, j.retry_error),
    ready = (due <= moment),
    due_at = due
  WHERE j.id = job.id;
  PERFORM alkstore._wake(job.queue);
  RETURN true;
END $$;

COMMENT ON FUNCTION alkstore.retry(queue text, job_id bigint, attempt bigint, error text, delay_s bigint) IS 'Gives a claimed job back after a failed attempt: pending again after delay_s seconds, or after the backoff when delay_s is NULL;
dead when it has no attempts left. error stays readable as retry_error (NULL keeps the one before).
False, and nothing changed, unless the job is processing under that very attempt and its claim has not expired.
Errors: AK001 invalid_name, AK003 invalid_option.';

CREATE FUNCTION alkstore.revoke_all(role text) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
  grantee regrole := format('%I', role)::regrole;
  schema_id regnamespace;
  owner regrole;
BEGIN
  SELECT c.relnamespace::regnamespace, c.relowner::regrole INTO schema_id, owner
  FROM pg_catalog.pg_class c WHERE c.oid = 'alkstore._job'::regclass;
  IF grantee = owner THEN
    RAISE EXCEPTION 'alkstore runs with the rights of its owner %, who cannot do without them', owner
      USING ERRCODE = 'invalid_grant_operation';
  END IF;
  EXECUTE format('REVOKE ALL ON ALL FUNCTIONS IN SCHEMA %s FROM %s', schema_id, grantee);
  EXECUTE format('REVOKE ALL ON ALL TABLES IN SCHEMA %s FROM %s', schema_id, grantee);
  EXECUTE format('REVOKE ALL ON SCHEMA %s FROM %s', schema_id, grantee);
END $$;

COMMENT ON FUNCTION alkstore.revoke_all(role text) IS 'Takes back from a role all that the grant functions gave it; what it has by membership in other roles stays.
Only the owner of the schema can revoke.';

CREATE FUNCTION alkstore.schedule(name text, spec text, queue text, payload anycompatible, priority bigint DEFAULT NULL::bigint, max_attempts bigint DEFAULT NULL::bigint, expires_s bigint DEFAULT NULL::bigint) RETURNS timestamp with time zone
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
  moment timestamptz := alkstore._now();
  seconds bigint;
  content json;
  boundary timestamptz;
BEGIN
  PERFORM alkstore._check_public_name('name', schedule.name);
  PERFORM alkstore._check_public_name('queue', schedule.queue);
  seconds := alkstore._interval_s(schedule.spec);
  content := alkstore._check_payload(schedule.payload);
  PERFORM alkstore._check_options(
    NULL, NULL, schedule.priority, schedule.expires_s, schedule.max_attempts, NULL, NULL, NULL);
  INSERT INTO alkstore._schedule AS s (
    name, spec, interval_s, queue, payload, priority, max_attempts, expires_s, next_run_at, created_at)
  VALUES (
    schedule.name, schedule.spec, seconds, schedule.queue, content,
    coalesce(schedule.priority, 0), coalesce(schedule.max_attempts, 3), schedule.expires_s,
    moment + make_interval(secs => seconds), moment)
  -- The same spec keeps its next boundary: an application that registers at every start must still fire.
  ON CONFLICT ON CONSTRAINT _schedule_pkey DO UPDATE SET
    spec = excluded.spec,
    interval_s = excluded.interval_s,
    queue = excluded.queue,
    payload = excluded.payload,
    priority = excluded.priority,
    max_attempts = excluded.max_attempts,
    expires_s = excluded.expires_s,
    next_run_at = CASE WHEN s.spec = excluded.spec THEN s.next_run_at ELSE excluded.next_run_at END
  WHERE (s.spec, s.queue, s.payload::text, s.priority, s.max_attempts, s.expires_s) IS DISTINCT FROM (
    excluded.spec, excluded.queue, excluded.payload::text, excluded.priority, excluded.max_attempts, excluded.expires_s)
  RETURNING s.next_run_at INTO boundary;
  IF NOT FOUND THEN
    boundary := (SELECT s.next_run_at FROM alkstore._schedule s WHERE s.name = schedule.name);
  END IF;
  RETURN boundary;
END $$;

COMMENT ON FUNCTION alkstore.schedule(name text, spec text, queue text, payload anycompatible, priority bigint, max_attempts bigint, expires_s bigint) IS 'Sets the schedule of that name and returns its next boundary. spec: ''@every 30s'', 90m, 36h, 7d. The first boundary is one interval
from now; registering again with the same spec keeps the next boundary, a changed spec starts anew; queue, payload and
options are replaced. Nothing fires by itself: call fire_schedules. Errors: AK001 invalid_name, AK002 invalid_payload,
AK003 invalid_option, AK004 invalid_spec.';

CREATE FUNCTION alkstore.sweep_expired(queue text, OUT expired bigint, OUT pruned bigint) RETURNS record
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
BEGIN
  PERFORM alkstore._check_public_name('queue', sweep_expired.queue);
  SELECT s.expired, s.pruned INTO expired, pruned FROM alkstore._sweep_expired(sweep_expired.queue) s;
END $$;

COMMENT ON FUNCTION alkstore.sweep_expired(queue text, OUT expired bigint, OUT pruned bigint) IS 'Moves every job of the queue that is past its expires_at, pending or processing, to the dead jobs with last_error ''expired'', and
deletes dead jobs older than their dead_letter_retention_s. Returns both counts. Any number may run at once; rows that an
open transaction holds are left to the next call. Errors: AK001 invalid_name.';

CREATE FUNCTION alkstore.unschedule(name text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
  PERFORM alkstore._check_public_name('name', unschedule.name);
  DELETE FROM alkstore._schedule s WHERE s.name = unschedule.name;
  RETURN FOUND;
END $$;

COMMENT ON FUNCTION alkstore.unschedule(name text) IS 'Removes a schedule; jobs that it has fired stay. False when there is none. Errors: AK001 invalid_name.';

CREATE FUNCTION alkstore.version() RETURNS text
    LANGUAGE sql IMMUTABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$ SELECT '0.1.0' $$;

COMMENT ON FUNCTION alkstore.version() IS 'The version of the alkstore schema that is installed.';

CREATE FUNCTION alkstore.wake_channel(queue text) RETURNS text
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
  SELECT CASE
    WHEN octet_length(wake_channel.queue) <= 63 THEN wake_channel.queue
    -- NOTIFY refuses longer channels and LISTEN cuts them silently.
    ELSE 'alkstore_' || left(encode(sha256(convert_to(wake_channel.queue, 'UTF8')), 'hex'), 48)
  END
$$;

COMMENT ON FUNCTION alkstore.wake_channel(queue text) IS 'The channel to LISTEN on for wakes of a queue: its name, or a prefix and a hash when the name has more than 63 bytes.
A wake is a hint that a claim may find something; keep polling at a long interval as well.';

ALTER TABLE alkstore._job ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME alkstore._job_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE alkstore._lock (
    name text NOT NULL COLLATE pg_catalog."C",
    owner text NOT NULL COLLATE pg_catalog."C",
    acquired_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL
);

CREATE TABLE alkstore._schedule (
    name text NOT NULL COLLATE pg_catalog."C",
    spec text NOT NULL COLLATE pg_catalog."C",
    interval_s bigint NOT NULL,
    queue text NOT NULL COLLATE pg_catalog."C",
    payload json NOT NULL,
    priority bigint NOT NULL,
    max_attempts bigint NOT NULL,
    expires_s bigint,
    next_run_at timestamp with time zone NOT NULL,
    last_error text COLLATE pg_catalog."C",
    created_at timestamp with time zone NOT NULL
);

CREATE VIEW alkstore.dead_jobs AS
 SELECT job_id,
    queue,
    state,
    payload,
    priority,
    attempts,
    max_attempts,
    visibility_timeout_s,
    backoff_base_s,
    dead_letter_retention_s,
    worker_id,
    created_at,
    run_at,
    expires_at,
    claimed_at,
    claim_expires_at,
    retry_error,
    last_error,
    died_at,
    released
   FROM alkstore.jobs j
  WHERE (state = 'dead'::text);

COMMENT ON VIEW alkstore.dead_jobs IS 'Jobs that will not run again, with last_error and died_at. To run one again: read it, enqueue its payload.';

CREATE VIEW alkstore.locks AS
 SELECT name,
    owner,
    acquired_at,
    expires_at
   FROM alkstore._lock l
  WHERE (expires_at >= ( SELECT alkstore._now() AS _now));

COMMENT ON VIEW alkstore.locks IS 'Locks that are held now; __alkstore_scheduler is the leadership of the schedule runners.';

CREATE VIEW alkstore.queue_stats AS
 SELECT queue,
    count(*) FILTER (WHERE (condition = 'ready'::text)) AS ready,
    count(*) FILTER (WHERE (condition = 'delayed'::text)) AS delayed,
    count(*) FILTER (WHERE (condition = 'processing'::text)) AS processing,
    count(*) FILTER (WHERE (condition = 'lapsed'::text)) AS lapsed,
    count(*) FILTER (WHERE (condition = 'expired'::text)) AS expired,
    count(*) FILTER (WHERE (condition = 'dead'::text)) AS dead,
    min(run_at) FILTER (WHERE (condition = 'ready'::text)) AS oldest_ready_at
   FROM ( SELECT queue,
                CASE
                    WHEN (expires_at < clock.now) THEN 'expired'::text
                    WHEN ((claim_expires_at IS NULL) AND (run_at <= clock.now)) THEN 'ready'::text
                    WHEN (claim_expires_at IS NULL) THEN 'delayed'::text
                    WHEN (claim_expires_at >= clock.now) THEN 'processing'::text
                    ELSE 'lapsed'::text
                END AS condition,
            run_at
           FROM alkstore._job j,
            ( SELECT alkstore._now() AS now) clock
        UNION ALL
         SELECT queue,
            'dead'::text,
            NULL::timestamp with time zone
           FROM alkstore._dead_job d) s
  GROUP BY queue;

COMMENT ON VIEW alkstore.queue_stats IS 'Jobs per queue: ready (claimable now), delayed, processing, lapsed (the holder let the claim expire; claimable), expired (waiting
for a sweep), dead; oldest_ready_at is the run_at of the ready job that waits longest.';

CREATE VIEW alkstore.schedules AS
 SELECT name,
    spec,
    queue,
    payload,
    priority,
    max_attempts,
    expires_s,
    next_run_at,
    last_error,
    created_at
   FROM alkstore._schedule s;

COMMENT ON VIEW alkstore.schedules IS 'The schedules; next_run_at is the next boundary, last_error why the last firing failed (NULL after a good one).';

ALTER TABLE ONLY alkstore._dead_job
    ADD CONSTRAINT _dead_job_pkey PRIMARY KEY (id);

ALTER TABLE ONLY alkstore._job
    ADD CONSTRAINT _job_pkey PRIMARY KEY (id);

ALTER TABLE ONLY alkstore._lock
    ADD CONSTRAINT _lock_pkey PRIMARY KEY (name);

ALTER TABLE ONLY alkstore._schedule
    ADD CONSTRAINT _schedule_pkey PRIMARY KEY (name);

CREATE INDEX _dead_job_prune ON alkstore._dead_job USING btree (queue, prune_at) WHERE (prune_at IS NOT NULL);

CREATE INDEX _job_due ON alkstore._job USING btree (queue, due_at) WHERE (NOT ready);

CREATE INDEX _job_expires ON alkstore._job USING btree (queue, expires_at) WHERE (expires_at IS NOT NULL);

CREATE INDEX _job_ready ON alkstore._job USING btree (queue, ((- priority)), run_at, id) WHERE ready;

REVOKE ALL ON TYPE alkstore.claimed_job FROM PUBLIC;

REVOKE ALL ON TYPE alkstore.fired_schedule FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore._acquire_lock(name text, owner text, ttl_s bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore._backoff_s(base bigint, attempt bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore._bury(ids bigint[], last_error text, moment timestamp with time zone, error text) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore._bury_spent(spent bigint[], moment timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore._check_name(what text, name text) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore._check_option(name text, value bigint, minimum bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore._check_options(delay_s bigint, run_at timestamp with time zone, priority bigint, expires_s bigint, max_attempts bigint, visibility_timeout_s bigint, backoff_base_s bigint, dead_letter_retention_s bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore._check_payload(payload anycompatible) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore._check_public_name(what text, name text) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore._check_ttl(ttl_s bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore._claim(queue text, worker_id text, n bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore._cut(error text) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore._enqueue(queue text, payloads json[], delay_s bigint, run_at timestamp with time zone, priority bigint, expires_s bigint, max_attempts bigint, visibility_timeout_s bigint, backoff_base_s bigint, dead_letter_retention_s bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore._grant_calls(role text, calls text[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore._grant_views(role text, views text[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore._interval_s(spec text) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore._now() FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore._outbox_queue(outbox text) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore._pages_read() FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore._pick_with_due(queue text, n bigint, moment timestamp with time zone, due bigint[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore._promote(due bigint[], moment timestamp with time zone) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore._release_lock(name text, owner text) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore._set_mark(queue text, moment timestamp with time zone, last_picked bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore._sweep_expired(queue text, OUT expired bigint, OUT pruned bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore._wake(queue text) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore.ack(queue text, job_id bigint, attempt bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore.ack_batch(queue text, job_ids bigint[], attempts bigint[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore.acquire_lock(name text, owner text, ttl_s bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore.cancel(queue text, job_id bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore.claim(queue text, worker_id text, n bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore.enqueue(queue text, payload anycompatible, delay_s bigint, run_at timestamp with time zone, priority bigint, expires_s bigint, max_attempts bigint, visibility_timeout_s bigint, backoff_base_s bigint, dead_letter_retention_s bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore.enqueue_batch(queue text, payloads anycompatible, delay_s bigint, run_at timestamp with time zone, priority bigint, expires_s bigint, max_attempts bigint, visibility_timeout_s bigint, backoff_base_s bigint, dead_letter_retention_s bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore.fail(queue text, job_id bigint, attempt bigint, error text) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore.fire_schedules(name text) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore.get_job(queue text, job_id bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore.grant_operator(role text) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore.grant_producer(role text) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore.grant_scheduler(role text) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore.grant_worker(role text) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore.heartbeat(queue text, job_id bigint, attempt bigint, extend_s bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore.lead_schedules(owner text, ttl_s bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore.next_due(queue text) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore.outbox_cancel(outbox text, job_id bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore.outbox_claim(outbox text, worker_id text, n bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore.outbox_enqueue(outbox text, payload anycompatible, delay_s bigint, run_at timestamp with time zone, priority bigint, expires_s bigint, max_attempts bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore.outbox_get_job(outbox text, job_id bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore.outbox_sweep_expired(outbox text, OUT expired bigint, OUT pruned bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore.release(queue text, job_id bigint, attempt bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore.release_lock(name text, owner text) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore.renew_lock(name text, owner text, ttl_s bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore.resign_schedules(owner text) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore.retry(queue text, job_id bigint, attempt bigint, error text, delay_s bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore.revoke_all(role text) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore.schedule(name text, spec text, queue text, payload anycompatible, priority bigint, max_attempts bigint, expires_s bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore.sweep_expired(queue text, OUT expired bigint, OUT pruned bigint) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore.unschedule(name text) FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore.version() FROM PUBLIC;

REVOKE ALL ON FUNCTION alkstore.wake_channel(queue text) FROM PUBLIC;
