-- alkstore_ack, alkstore_ack_batch

-- [ack] an accepted ack is true
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1'), ('q', '2'), ('p', '3');
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 2);
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> 1

-- [ack] an accepted ack deletes that job and no other
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1'), ('q', '2'), ('p', '3');
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 2);
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('q', 1, 1);
SELECT job_id, state FROM alkstore_jobs ORDER BY job_id;
--> 2|processing
--> 3|pending

-- [valid] ack: a job never claimed is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('q', 1, 0) RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [valid] ack: another attempt number is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('q', 1, 2) RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [valid] ack: another queue is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('other', 1, 1) RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [valid] ack: an unknown job is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('q', 2, 1) RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [valid] ack: a NULL job_id is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('q', NULL, 1) RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [valid] ack: a NULL attempt is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('q', 1, NULL) RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [valid] ack: a job given back is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('q', 1, 1);
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [valid] ack: a lapsed claim is refused though nobody took the job
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 301;
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [valid] ack: a claim that another worker took over is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 301;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'v');
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [valid] ack: a claim that the same worker name took over is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 301;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [valid] ack: a dead job is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES ('q', 1, 1);
CREATE TABLE before AS SELECT * FROM __alkstore_dead_job;
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_dead_job;
--> (no rows)

-- [valid] ack: a cancelled job is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_cancel(queue, job_id) VALUES ('q', 1);
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> (no rows)
SELECT count(*) FROM alkstore_jobs;
--> 0

-- [valid] ack: a job acked before is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('q', 1, 1);
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> (no rows)
SELECT count(*) FROM alkstore_jobs;
--> 0

-- [valid] ack: accepted at the very second of claim_expires_at
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 300;
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> 1

-- [valid] ack: accepted past expires_at
INSERT INTO alkstore_enqueue(queue, payload, expires_s) VALUES ('q', '1', 10);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 11;
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> 1

-- [valid] after a reclaim the old holder changes nothing, and the new holder acks
INSERT INTO alkstore_enqueue(queue, payload, visibility_timeout_s) VALUES ('q', '1', 2);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w1');
UPDATE test_clock SET now = now + 3;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w2');
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> (no rows)
INSERT INTO alkstore_heartbeat(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> (no rows)
INSERT INTO alkstore_retry(queue, job_id, attempt, error) VALUES ('q', 1, 1, 'late') RETURNING job_id;
--> (no rows)
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> (no rows)
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> (no rows)
INSERT INTO alkstore_ack_batch(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('q', 1, 2) RETURNING job_id;
--> 1
SELECT count(*) FROM alkstore_jobs;
--> 0

-- [valid] the same for two lives of one worker name
INSERT INTO alkstore_enqueue(queue, payload, visibility_timeout_s) VALUES ('q', '1', 2);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'pod-1');
UPDATE test_clock SET now = now + 3;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'pod-1');
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> (no rows)
INSERT INTO alkstore_heartbeat(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> (no rows)
INSERT INTO alkstore_retry(queue, job_id, attempt, error) VALUES ('q', 1, 1, 'late') RETURNING job_id;
--> (no rows)
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> (no rows)
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> (no rows)
INSERT INTO alkstore_ack_batch(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('q', 1, 2) RETURNING job_id;
--> 1
SELECT count(*) FROM alkstore_jobs;
--> 0

-- [ack-batch] each claim is judged by itself and the accepted are counted
-- Jobs 1 and 2 claimed, 3 lapsed, 4 of another queue, 5 given back.
INSERT INTO alkstore_enqueue(queue, payload, visibility_timeout_s)
VALUES ('q', '1', NULL), ('q', '2', NULL), ('q', '3', 10), ('p', '4', NULL), ('q', '5', NULL);
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 4);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('p', 'w');
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('q', 5, 1);
UPDATE test_clock SET now = now + 11;
SAVEPOINT both_calls;
INSERT INTO alkstore_ack_batch(queue, job_id, attempt)
VALUES ('q', 5, 1), ('q', 4, 1), ('q', 3, 1), ('q', 2, 2), ('q', 1, 1)
RETURNING job_id;
--> 1
SELECT job_id, state FROM alkstore_jobs ORDER BY job_id;
--> 2|processing
--> 3|processing
--> 4|processing
--> 5|pending
ROLLBACK TO both_calls;
INSERT INTO alkstore_ack(queue, job_id, attempt)
VALUES ('q', 5, 1), ('q', 4, 1), ('q', 3, 1), ('q', 2, 2), ('q', 1, 1)
RETURNING job_id;
--> 1
SELECT job_id, state FROM alkstore_jobs ORDER BY job_id;
--> 2|processing
--> 3|processing
--> 4|processing
--> 5|pending
RELEASE both_calls;

-- [ack-batch] an id given twice counts once
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1'), ('q', '2'), ('q', '3');
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 3);
INSERT INTO alkstore_ack_batch(queue, job_id, attempt) VALUES ('q', 1, 1), ('q', 1, 1) RETURNING job_id;
--> 1
INSERT INTO alkstore_ack_batch(queue, job_id, attempt) VALUES ('q', 2, 7), ('q', 2, 1), ('q', 2, NULL) RETURNING job_id;
--> 2
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('q', 3, 1), ('q', 3, 1) RETURNING job_id;
--> 3

-- [ack-batch] cancelled, unknown and repeated ids do not count, and no ids give 0
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1'), ('q', '2'), ('q', '3');
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 3);
INSERT INTO alkstore_cancel(queue, job_id) VALUES ('q', 2);
INSERT INTO alkstore_ack_batch(queue, job_id, attempt) SELECT 'q', 1, 1 WHERE 0 RETURNING job_id;
--> (no rows)
INSERT INTO alkstore_ack_batch(queue, job_id) SELECT 'q', 1 WHERE 0 RETURNING job_id;
--> (no rows)
INSERT INTO alkstore_ack_batch(queue, job_id, attempt)
VALUES ('q', 1, 1), ('q', 2, 1), ('q', 3, 1), ('q', 99, 1), ('q', 1, 1)
RETURNING job_id;
--> 1
--> 3

-- [ack-batch] without attempts all but the attempt is checked
-- Job 1 is in its second claim, 2 lapsed, 3 delayed, 4 of another queue, 5 dead.
INSERT INTO alkstore_enqueue(queue, payload, visibility_timeout_s, delay_s)
VALUES ('q', '1', 10, NULL), ('q', '2', 10, NULL), ('q', '3', NULL, 1000), ('p', '4', NULL, NULL), ('q', '5', NULL, NULL);
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 3);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('p', 'w');
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES ('q', 5, 1);
UPDATE test_clock SET now = now + 11;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'v');
INSERT INTO alkstore_ack_batch(queue, job_id)
VALUES ('q', 1), ('q', 2), ('q', 3), ('q', 4), ('q', 5), ('q', NULL)
RETURNING job_id;
--> 1
SELECT job_id, state FROM alkstore_jobs ORDER BY job_id;
--> 2|processing
--> 3|pending
--> 4|processing
--> 5|dead

-- [ack-batch] a NULL attempt goes unchecked, those beside it are checked
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1'), ('q', '2'), ('q', '3');
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 3);
INSERT INTO alkstore_ack_batch(queue, job_id, attempt) VALUES ('q', 1, NULL), ('q', 2, 2), ('q', 3, 1) RETURNING job_id;
--> 1
--> 3
SELECT job_id FROM alkstore_jobs;
--> 2

-- [ack-batch] a NULL id does not count
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_ack_batch(queue, job_id) VALUES ('q', NULL) RETURNING job_id;
--> (no rows)
INSERT INTO alkstore_ack_batch(queue, job_id, attempt) VALUES ('q', NULL, 1), ('q', NULL, NULL) RETURNING job_id;
--> (no rows)
INSERT INTO alkstore_ack_batch(queue, job_id, attempt) VALUES ('q', NULL, 1), ('q', 1, 1) RETURNING job_id;
--> 1

-- [ack-batch] a great many are acked at once
INSERT INTO alkstore_enqueue(queue, payload)
WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 10000) SELECT 'q', i FROM n;
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 10000);
INSERT INTO alkstore_ack_batch(queue, job_id, attempt) SELECT queue, job_id, attempt FROM alkstore_claimed;
SELECT count(*) FROM alkstore_jobs;
--> 0

-- [ack-batch] in one batch each claim goes by its own deadline
INSERT INTO alkstore_enqueue(queue, payload, visibility_timeout_s) VALUES ('q', '1', 2), ('q', '2', 60);
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 2);
UPDATE test_clock SET now = now + 3;
INSERT INTO alkstore_ack_batch(queue, job_id, attempt) VALUES ('q', 1, 1), ('q', 2, 1) RETURNING job_id;
--> 2
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'v', 2);
SELECT job_id, attempt, worker_id FROM alkstore_claimed;
--> 1|2|v

-- [name] ack, ack_batch: a reserved queue is accepted
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1'), ('q', '2');
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 2);
UPDATE __alkstore_job SET queue = '__alkstore_q';
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('__alkstore_none', 1, 1) RETURNING job_id;
--> (no rows)
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('__alkstore_q', 1, 1) RETURNING job_id;
--> 1
INSERT INTO alkstore_ack_batch(queue, job_id, attempt) VALUES ('__alkstore_q', 2, 1) RETURNING job_id;
--> 2

-- [refusals] ack, ack_batch: a queue name that cannot exist is AK001
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES (NULL, 1, 1);
--! AK001
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('', 1, 1);
--! AK001
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES (replace(hex(zeroblob(128)), '00', 'é'), 1, 1);
--! AK001
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES (replace(hex(zeroblob(127)), '00', 'é') || 'e', 1, 1) RETURNING job_id;
--> (no rows)
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('q' || char(0), 1, 1);
--! AK001
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES (x'71', 1, 1);
--! AK001
INSERT INTO alkstore_ack_batch(queue, job_id) VALUES (NULL, 1);
--! AK001
INSERT INTO alkstore_ack_batch(queue, job_id) VALUES ('', 1);
--! AK001
INSERT INTO alkstore_ack_batch(queue, job_id) VALUES (replace(hex(zeroblob(128)), '00', 'é'), 1);
--! AK001
INSERT INTO alkstore_ack_batch(queue, job_id) VALUES (replace(hex(zeroblob(127)), '00', 'é') || 'e', 1) RETURNING job_id;
--> (no rows)
-- One bad row undoes its whole statement.
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('q', 1, 1), ('', 1, 1);
--! AK001
INSERT INTO alkstore_ack_batch(queue, job_id, attempt) VALUES ('q', 1, 1), ('', 1, 1);
--! AK001
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [idle] a refused ack or ack_batch writes nothing
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
CREATE TABLE before AS SELECT total_changes() AS changes;
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('q', 1, 2);
INSERT INTO alkstore_ack_batch(queue, job_id, attempt) VALUES ('q', 1, 2), ('q', 2, 1);
SELECT total_changes() - changes FROM before;
--> 0
