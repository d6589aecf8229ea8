-- ack, ack_batch: the work is done, the job is gone.

CREATE FUNCTION alkstore.ack(queue text, job_id bigint, attempt bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $$
DECLARE
  moment timestamptz := alkstore._now();
BEGIN
  PERFORM alkstore._check_name('queue', ack.queue);
  DELETE FROM alkstore._job j
  WHERE j.id = ack.job_id AND j.queue = ack.queue AND j.attempts = ack.attempt AND j.claim_expires_at >= moment;
  RETURN FOUND;
END $$;
COMMENT ON FUNCTION alkstore.ack(text, bigint, bigint) IS
'Deletes a claimed job: its work is done. False, and nothing changed, unless the job is processing under that very attempt
and its claim has not expired. Errors: AK001 invalid_name.';

CREATE FUNCTION alkstore.ack_batch(queue text, job_ids bigint[], attempts bigint[] DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
-- Any number of ids: a plan for these very arrays would not hash long ones, nor a bitmap beyond work_mem be exact, and each
-- row would be compared with every id.
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
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
COMMENT ON FUNCTION alkstore.ack_batch(text, bigint[], bigint[]) IS
'Acks many jobs of one queue and returns how many were accepted; the rest is ignored, an id given twice counts once.
attempts[i] belongs to job_ids[i]. Without attempts, or where one is NULL, the attempt is not checked: a worker whose claim
was taken over by another could then ack the other''s claim. Errors: AK001 invalid_name, AK003 invalid_option.';
