-- alkstore_release

-- [release] the job is pending again with its old run_at, its claim cleared, the claim counted in attempts and in released
INSERT INTO alkstore_enqueue(queue, payload, priority, expires_s, max_attempts, visibility_timeout_s, backoff_base_s, dead_letter_retention_s)
VALUES ('q', '{"a": 1}', 7, 1000, 5, 60, 9, 77);
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '2');
UPDATE test_clock SET now = now + 10;
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 2);
UPDATE test_clock SET now = now + 10;
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> 1
SELECT * FROM alkstore_jobs WHERE job_id = 1;
--> 1|q|pending|{"a": 1}|7|1|5|60|9|77|NULL|1000000000|1000000000|1000001000|NULL|NULL|NULL|NULL|NULL|1
SELECT job_id, state, released FROM alkstore_jobs WHERE job_id = 2;
--> 2|processing|0

-- [release] the job can be claimed at once, as the next attempt
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 10;
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('q', 1, 1);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'v');
SELECT job_id, attempt, run_at FROM alkstore_claimed;
--> 1|2|1000000000

-- [release] released claims are not counted, however many
INSERT INTO alkstore_enqueue(queue, payload, max_attempts) VALUES ('q', '1', 1);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('q', 1, 1);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('q', 1, 2);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
SELECT state, attempts, released FROM alkstore_jobs;
--> processing|3|2

-- [release] a claim that lapses is counted as ever
INSERT INTO alkstore_enqueue(queue, payload, max_attempts) VALUES ('q', '1', 1);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('q', 1, 1);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 301;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
SELECT job_id FROM alkstore_claimed;
--> (no rows)
SELECT state, attempts, released, last_error FROM alkstore_jobs;
--> dead|2|1|max attempts exceeded

-- [release] a job with a released and a lapsed claim has the attempt left that the released one did not use
INSERT INTO alkstore_enqueue(queue, payload, max_attempts) VALUES ('q', '1', 2);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('q', 1, 1);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 301;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
SELECT job_id, attempt FROM alkstore_claimed;
--> 1|3

-- [release] retry_error stays
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_retry(queue, job_id, attempt, error, delay_s) VALUES ('q', 1, 1, 'oops', 0);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('q', 1, 2);
SELECT state, retry_error FROM alkstore_jobs;
--> pending|oops

-- [release] after the clock stepped back the job waits for its run_at
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now - 10;
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('q', 1, 1);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
SELECT job_id FROM alkstore_claimed;
--> (no rows)
UPDATE test_clock SET now = now + 10;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
SELECT job_id, run_at FROM alkstore_claimed;
--> 1|1000000000

-- [plans] a released job that is not due is not in the index that claims read
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now - 10;
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('q', 1, 1);
SELECT ready FROM __alkstore_job;
--> 0

-- [valid] release: a job never claimed is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('q', 1, 0) RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [valid] release: another attempt number is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('q', 1, 2) RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [valid] release: another queue is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('other', 1, 1) RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [valid] release: an unknown job is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('q', 2, 1) RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [valid] release: a NULL job_id is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('q', NULL, 1) RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [valid] release: a NULL attempt is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('q', 1, NULL) RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [valid] release: a job given back is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('q', 1, 1);
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [valid] release: a lapsed claim is refused though nobody took the job
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 301;
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [valid] release: a claim that another worker took over is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 301;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'v');
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [valid] release: a claim that the same worker name took over is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 301;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [valid] release: a dead job is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES ('q', 1, 1);
CREATE TABLE before AS SELECT * FROM __alkstore_dead_job;
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_dead_job;
--> (no rows)

-- [valid] release: a cancelled job is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_cancel(queue, job_id) VALUES ('q', 1);
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> (no rows)
SELECT count(*) FROM alkstore_jobs;
--> 0

-- [valid] release: a job acked before is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('q', 1, 1);
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> (no rows)
SELECT count(*) FROM alkstore_jobs;
--> 0

-- [valid] release: accepted at the very second of claim_expires_at
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 300;
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> 1

-- [valid] release: accepted past expires_at
INSERT INTO alkstore_enqueue(queue, payload, expires_s) VALUES ('q', '1', 10);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 11;
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> 1

-- [name] release: a reserved queue is accepted
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE __alkstore_job SET queue = '__alkstore_q';
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('__alkstore_none', 1, 1) RETURNING job_id;
--> (no rows)
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('__alkstore_q', 1, 1) RETURNING job_id;
--> 1

-- [refusals] release: a queue name that cannot exist is AK001
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES (NULL, 1, 1);
--! AK001
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('', 1, 1);
--! AK001
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES (replace(hex(zeroblob(128)), '00', 'é'), 1, 1);
--! AK001
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES (replace(hex(zeroblob(127)), '00', 'é') || 'e', 1, 1) RETURNING job_id;
--> (no rows)
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('q' || char(0), 1, 1);
--! AK001
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES (x'71', 1, 1);
--! AK001
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [idle] a refused release writes nothing
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
CREATE TABLE before AS SELECT total_changes() AS changes;
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('q', 1, 9);
SELECT total_changes() - changes FROM before;
--> 0
