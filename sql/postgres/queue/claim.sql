-- claim: hand out ready jobs, each to exactly one claimer, for the visibility timeout stamped on the job.

CREATE TYPE alkstore.claimed_job AS (
  job_id           bigint,
  queue            text,
  payload          json,
  attempt          bigint,
  claim_expires_at timestamptz,
  priority         bigint,
  max_attempts     bigint,
  worker_id        text,
  claimed_at       timestamptz,
  run_at           timestamptz,
  expires_at       timestamptz,
  created_at       timestamptz
);
COMMENT ON TYPE alkstore.claimed_job IS 'One claim: what alkstore.claim returns. (job_id, attempt) names it for ever.';

-- Lapsed and no attempts left: never to run again.
CREATE FUNCTION alkstore._bury_spent(spent bigint[], moment timestamptz) RETURNS void
LANGUAGE plpgsql VOLATILE
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

-- Moves rows that are due into the ready index, so that claims find them there in their order.
CREATE FUNCTION alkstore._promote(due bigint[], moment timestamptz) RETURNS void
LANGUAGE plpgsql VOLATILE
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

-- The ids to hand out, of the ready rows and a few due ones that stay where they are; locked, at most n, in claim order.
CREATE FUNCTION alkstore._pick_with_due(queue text, n bigint, moment timestamptz, due bigint[]) RETURNS bigint[]
LANGUAGE plpgsql VOLATILE
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

-- While some transaction holds an old snapshot, finished jobs leave index entries that nobody may remove, and every claim
-- would walk over all of them. So a session that met a costly walk notes where it ended, and for the rest of that second of
-- the clock starts there; a claim that finds nothing there looks again from the left. The index is part of the mark, since
-- two schemas may have queues of the same name.
CREATE FUNCTION alkstore._set_mark(queue text, moment timestamptz, last_picked bigint) RETURNS void
LANGUAGE plpgsql VOLATILE
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

-- Pages of jobs and of the two indexes that this transaction has read so far: what a walk costs, without any clock.
CREATE FUNCTION alkstore._pages_read() RETURNS bigint
LANGUAGE sql VOLATILE
AS $$
  SELECT pg_stat_get_xact_blocks_fetched('alkstore._job'::regclass)
    + pg_stat_get_xact_blocks_fetched('alkstore._job_ready'::regclass)
    + pg_stat_get_xact_blocks_fetched('alkstore._job_due'::regclass)
$$;

-- The claim proper; the queue's name is checked, and may be a reserved one. Called with the settings of claim.
CREATE FUNCTION alkstore._claim(queue text, worker_id text, n bigint) RETURNS SETOF alkstore.claimed_job
LANGUAGE plpgsql VOLATILE
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

CREATE FUNCTION alkstore.claim(queue text, worker_id text, n bigint DEFAULT 1) RETURNS SETOF alkstore.claimed_job
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
-- Plans outlive the statistics that they were made on: the ordered index, whatever the server believes.
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off
AS $$
BEGIN
  PERFORM alkstore._check_public_name('queue', claim.queue);
  RETURN QUERY SELECT * FROM alkstore._claim(claim.queue, claim.worker_id, claim.n);
END $$;
COMMENT ON FUNCTION alkstore.claim(text, text, bigint) IS
'Hands out up to n ready jobs to a worker, by priority (higher first), run_at, id. Each is the worker''s until claim_expires_at;
then anyone may claim it again, as the next attempt. Rows locked by others are passed over, never waited for.
n: NULL is 1, 0 or less gives no rows. No row: nothing was ready. Errors: AK001 invalid_name.';
