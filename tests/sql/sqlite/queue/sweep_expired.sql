-- alkstore_sweep_expired

-- [sweep] at its very expires_at a job is not swept
INSERT INTO alkstore_enqueue(queue, payload, expires_s) VALUES ('q', '1', 100), ('q', '2', 100);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 100;
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_sweep_expired(queue) VALUES ('q') RETURNING (SELECT expired FROM alkstore_swept);
--> 0
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [sweep] every job past expires_at, pending and processing, is dead
INSERT INTO alkstore_enqueue(queue, payload, expires_s) VALUES ('q', '1', 100), ('q', '2', 100), ('q', '3', 101), ('q', '4', NULL);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 101;
INSERT INTO alkstore_sweep_expired(queue) VALUES ('q') RETURNING (SELECT expired FROM alkstore_swept);
--> 2
SELECT expired, pruned FROM alkstore_swept;
--> 2|0
SELECT * FROM alkstore_jobs ORDER BY job_id;
--> 1|q|dead|1|0|1|3|300|5|NULL|w|1000000000|1000000000|1000000100|1000000000|1000000300|NULL|expired|1000000101|0
--> 2|q|dead|2|0|0|3|300|5|NULL|NULL|1000000000|1000000000|1000000100|NULL|NULL|NULL|expired|1000000101|0
--> 3|q|pending|3|0|0|3|300|5|NULL|NULL|1000000000|1000000000|1000000101|NULL|NULL|NULL|NULL|NULL|0
--> 4|q|pending|4|0|0|3|300|5|NULL|NULL|1000000000|1000000000|NULL|NULL|NULL|NULL|NULL|NULL|0

-- [sweep] a holder loses a job that is swept
INSERT INTO alkstore_enqueue(queue, payload, expires_s) VALUES ('q', '1', 100);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 101;
INSERT INTO alkstore_sweep_expired(queue) VALUES ('q');
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> (no rows)
INSERT INTO alkstore_heartbeat(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> (no rows)

-- [sweep] so are a delayed and a lapsed job past expires_at; a lapsed one without expires_at stays
INSERT INTO alkstore_enqueue(queue, payload, delay_s, expires_s, max_attempts)
VALUES ('q', '1', 1000, 10, NULL), ('q', '2', NULL, 10, 1), ('q', '3', NULL, NULL, 1);
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 2);
UPDATE test_clock SET now = now + 301;
INSERT INTO alkstore_sweep_expired(queue) VALUES ('q');
SELECT expired, pruned FROM alkstore_swept;
--> 2|0
SELECT job_id, state, last_error FROM alkstore_jobs ORDER BY job_id;
--> 1|dead|expired
--> 2|dead|expired
--> 3|processing|NULL

-- [sweep] retry_error stays beside expired
INSERT INTO alkstore_enqueue(queue, payload, expires_s) VALUES ('q', '1', 10);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_retry(queue, job_id, attempt, error, delay_s) VALUES ('q', 1, 1, 'oops', 5);
UPDATE test_clock SET now = now + 11;
INSERT INTO alkstore_sweep_expired(queue) VALUES ('q');
SELECT retry_error, last_error FROM alkstore_jobs;
--> oops|expired

-- [sweep] dead jobs are deleted when their retention has passed, never without one
-- Dead at 1000000000: kept for ever, 0, 10 and 2147483647 seconds.
INSERT INTO alkstore_enqueue(queue, payload, dead_letter_retention_s)
VALUES ('q', '1', NULL), ('q', '2', 0), ('q', '3', 10), ('q', '4', 2147483647);
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 4);
INSERT INTO alkstore_fail(queue, job_id, attempt) SELECT queue, job_id, 1 FROM alkstore_jobs;
INSERT INTO alkstore_sweep_expired(queue) VALUES ('q');
SELECT expired, pruned FROM alkstore_swept;
--> 0|0
UPDATE test_clock SET now = now + 1;
INSERT INTO alkstore_sweep_expired(queue) VALUES ('q');
SELECT expired, pruned FROM alkstore_swept;
--> 0|1
UPDATE test_clock SET now = now + 9;
INSERT INTO alkstore_sweep_expired(queue) VALUES ('q');
SELECT expired, pruned FROM alkstore_swept;
--> 0|0
UPDATE test_clock SET now = now + 1;
INSERT INTO alkstore_sweep_expired(queue) VALUES ('q');
SELECT expired, pruned FROM alkstore_swept;
--> 0|1
UPDATE test_clock SET now = now + 1000000000;
INSERT INTO alkstore_sweep_expired(queue) VALUES ('q');
SELECT expired, pruned FROM alkstore_swept;
--> 0|0
SELECT job_id FROM alkstore_jobs ORDER BY job_id;
--> 1
--> 4

-- [sweep] the counts are of both kinds, and what a sweep buries it does not delete
INSERT INTO alkstore_enqueue(queue, payload, dead_letter_retention_s) VALUES ('q', '1', 10), ('q', '2', 10);
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 2);
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES ('q', 1, 1), ('q', 2, 1);
INSERT INTO alkstore_enqueue(queue, payload, expires_s, dead_letter_retention_s)
VALUES ('q', '3', 10, 0), ('q', '4', 10, 0), ('q', '5', 10, 0);
UPDATE test_clock SET now = now + 11;
INSERT INTO alkstore_sweep_expired(queue) VALUES ('q');
SELECT expired, pruned FROM alkstore_swept;
--> 3|2
SELECT job_id, state FROM alkstore_jobs ORDER BY job_id;
--> 3|dead
--> 4|dead
--> 5|dead

-- [sweep] only the queue given is swept
INSERT INTO alkstore_enqueue(queue, payload, expires_s, dead_letter_retention_s, priority)
VALUES ('p', '1', 10, NULL, 0), ('p', '2', NULL, 0, 1);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('p', 'w');
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES ('p', 2, 1);
UPDATE test_clock SET now = now + 11;
INSERT INTO alkstore_sweep_expired(queue) VALUES ('q');
SELECT expired, pruned FROM alkstore_swept;
--> 0|0
SELECT job_id, state FROM alkstore_jobs ORDER BY job_id;
--> 1|pending
--> 2|dead
INSERT INTO alkstore_sweep_expired(queue) VALUES ('p');
SELECT expired, pruned FROM alkstore_swept;
--> 1|1

-- [no-stranded] a job with expires_at is, once swept, in exactly one of pending, processing and dead
-- One job of each kind: pending, delayed, in work, lapsed, lapsed for good; with and past an expiry.
WITH p(priority, delay_s, max_attempts, visibility_timeout_s) AS (
    VALUES (0, 0, 3, 300), (0, 1000, 3, 300), (9, 0, 3, 1000), (9, 0, 3, 10), (9, 0, 1, 10)),
  e(e) AS (VALUES (50), (100), (1000))
INSERT INTO alkstore_enqueue(queue, payload, expires_s, priority, delay_s, max_attempts, visibility_timeout_s)
SELECT 'q', e, e, p.* FROM p, e;
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 9);
UPDATE test_clock SET now = now + 100;
INSERT INTO alkstore_sweep_expired(queue) VALUES ('q');
SELECT expires_at, state, count(*) FROM alkstore_jobs GROUP BY 1, 2 ORDER BY 1, 2;
--> 1000000050|dead|5
--> 1000000100|pending|2
--> 1000000100|processing|3
--> 1000001000|pending|2
--> 1000001000|processing|3
SELECT count(*), count(DISTINCT job_id) FROM alkstore_jobs;
--> 15|15

-- [no-ambient] nothing is buried or deleted until a sweep or a claim of its queue asks
-- Expired, lapsed for good, and dead past its retention: no other call touches them.
INSERT INTO alkstore_enqueue(queue, payload, dead_letter_retention_s) VALUES ('q', '1', 0);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES ('q', 1, 1);
INSERT INTO alkstore_enqueue(queue, payload, max_attempts) VALUES ('q', '2', 1);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_enqueue(queue, payload, expires_s, visibility_timeout_s, priority)
VALUES ('q', '3', 10, NULL, 0), ('q', '4', NULL, 1000, 1);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 301;
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '5');
SELECT next_due FROM alkstore_next_due;
--> 1000000301
SELECT state FROM alkstore_jobs WHERE queue = 'q' AND job_id = 1;
--> dead
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('p', 'w');
INSERT INTO alkstore_sweep_expired(queue) VALUES ('p');
INSERT INTO alkstore_heartbeat(queue, job_id, attempt) VALUES ('q', 4, 1) RETURNING job_id;
--> 4
INSERT INTO alkstore_retry(queue, job_id, attempt, delay_s) VALUES ('q', 4, 1, 0) RETURNING job_id;
--> 4
SELECT count(*) FROM alkstore_queue_stats;
--> 1
INSERT INTO alkstore_cancel(queue, job_id) VALUES ('q', 5) RETURNING job_id;
--> 5
SELECT job_id, state FROM alkstore_jobs ORDER BY job_id;
--> 1|dead
--> 2|processing
--> 3|pending
--> 4|pending

-- [name] sweep_expired: a reserved queue is refused
INSERT INTO alkstore_sweep_expired(queue) VALUES ('__alkstore_q');
--! AK001

-- [refusals] sweep_expired: a queue name that cannot exist is AK001
INSERT INTO alkstore_sweep_expired(queue) VALUES (NULL);
--! AK001
INSERT INTO alkstore_sweep_expired(queue) VALUES ('');
--! AK001
INSERT INTO alkstore_sweep_expired(queue) VALUES (replace(hex(zeroblob(128)), '00', 'é'));
--! AK001
INSERT INTO alkstore_sweep_expired(queue) VALUES (replace(hex(zeroblob(127)), '00', 'é') || 'e');
INSERT INTO alkstore_sweep_expired(queue) VALUES ('q' || char(0));
--! AK001
INSERT INTO alkstore_sweep_expired(queue) VALUES (x'71');
--! AK001

-- [idle] a sweep with nothing to do writes nothing
INSERT INTO alkstore_enqueue(queue, payload, expires_s) VALUES ('q', '1', 10);
UPDATE test_clock SET now = now + 11;
INSERT INTO alkstore_sweep_expired(queue) VALUES ('q');
-- The next one may still clear what this one told.
INSERT INTO alkstore_sweep_expired(queue) VALUES ('q');
CREATE TABLE before AS SELECT total_changes() AS changes;
INSERT INTO alkstore_sweep_expired(queue) VALUES ('q');
SELECT total_changes() - changes FROM before;
--> 0
SELECT expired, pruned FROM alkstore_swept;
--> 0|0
