-- alkstore_heartbeat

-- [heartbeat] the deadline is extend_s from now, not added, and nothing else changes
INSERT INTO alkstore_enqueue(queue, payload, priority, expires_s, max_attempts, visibility_timeout_s, backoff_base_s, dead_letter_retention_s)
VALUES ('q', '{"a": 1}', 7, 1000, 5, 60, 9, 77);
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '2');
UPDATE test_clock SET now = now + 10;
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 2);
UPDATE test_clock SET now = now + 10;
INSERT INTO alkstore_heartbeat(queue, job_id, attempt, extend_s) VALUES ('q', 1, 1, 100) RETURNING job_id;
--> 1
SELECT * FROM alkstore_jobs WHERE job_id = 1;
--> 1|q|processing|{"a": 1}|7|1|5|60|9|77|w|1000000000|1000000000|1000001000|1000000010|1000000120|NULL|NULL|NULL|0
SELECT job_id, claim_expires_at FROM alkstore_jobs WHERE job_id = 2;
--> 2|1000000310

-- [heartbeat] without extend_s the deadline is the job's visibility timeout from now
INSERT INTO alkstore_enqueue(queue, payload, visibility_timeout_s) VALUES ('q', '1', 60);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 20;
INSERT INTO alkstore_heartbeat(queue, job_id, attempt) VALUES ('q', 1, 1);
SELECT claim_expires_at FROM alkstore_jobs;
--> 1000000080

-- [heartbeat] the deadline may come nearer
INSERT INTO alkstore_enqueue(queue, payload, visibility_timeout_s) VALUES ('q', '1', 60);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 20;
INSERT INTO alkstore_heartbeat(queue, job_id, attempt, extend_s) VALUES ('q', 1, 1, 1);
SELECT claim_expires_at FROM alkstore_jobs;
--> 1000000021

-- [heartbeat] extend_s may be 2147483647
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_heartbeat(queue, job_id, attempt, extend_s) VALUES ('q', 1, 1, 2147483647);
SELECT claim_expires_at FROM alkstore_jobs;
--> 3147483647

-- [heartbeat] nobody claims the job until the new deadline has passed
INSERT INTO alkstore_enqueue(queue, payload, visibility_timeout_s) VALUES ('q', '1', 10);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 10;
INSERT INTO alkstore_heartbeat(queue, job_id, attempt) VALUES ('q', 1, 1);
UPDATE test_clock SET now = now + 10;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'v');
SELECT job_id FROM alkstore_claimed;
--> (no rows)

-- [heartbeat] past the new deadline the job is claimed again
INSERT INTO alkstore_enqueue(queue, payload, visibility_timeout_s) VALUES ('q', '1', 10);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 10;
INSERT INTO alkstore_heartbeat(queue, job_id, attempt) VALUES ('q', 1, 1);
UPDATE test_clock SET now = now + 11;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'v');
SELECT job_id, attempt FROM alkstore_claimed;
--> 1|2

-- [heartbeat] a job that had become claimable before the clock stepped back is not any more
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 102)
INSERT INTO alkstore_enqueue(queue, payload, visibility_timeout_s) SELECT 'q', '1', 10 FROM n;
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 102);
-- The clock runs on past all deadlines, a claim of one job looks at them, and the clock steps back.
UPDATE test_clock SET now = now + 11;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'v');
UPDATE test_clock SET now = now - 1;
INSERT INTO alkstore_heartbeat(queue, job_id, attempt) VALUES ('q', 102, 1);
UPDATE test_clock SET now = now + 1;
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'v', 102);
SELECT count(*), max(job_id) FROM alkstore_claimed;
--> 100|101

-- [plans] a job that is held on to leaves the index that claims read
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 102)
INSERT INTO alkstore_enqueue(queue, payload, visibility_timeout_s) SELECT 'q', '1', 10 FROM n;
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 102);
UPDATE test_clock SET now = now + 11;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'v');
UPDATE test_clock SET now = now - 1;
INSERT INTO alkstore_heartbeat(queue, job_id, attempt) VALUES ('q', 102, 1);
SELECT ready, count(*), max(id) FROM __alkstore_job GROUP BY 1 ORDER BY 1;
--> 0|2|102
--> 1|100|101

-- [valid] heartbeat: a job never claimed is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_heartbeat(queue, job_id, attempt) VALUES ('q', 1, 0) RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [valid] heartbeat: another attempt number is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_heartbeat(queue, job_id, attempt) VALUES ('q', 1, 2) RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [valid] heartbeat: another queue is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_heartbeat(queue, job_id, attempt) VALUES ('other', 1, 1) RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [valid] heartbeat: an unknown job is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_heartbeat(queue, job_id, attempt) VALUES ('q', 2, 1) RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [valid] heartbeat: a NULL job_id is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_heartbeat(queue, job_id, attempt) VALUES ('q', NULL, 1) RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [valid] heartbeat: a NULL attempt is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_heartbeat(queue, job_id, attempt) VALUES ('q', 1, NULL) RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [valid] heartbeat: a job given back is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('q', 1, 1);
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_heartbeat(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [valid] heartbeat: a lapsed claim is refused though nobody took the job
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 301;
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_heartbeat(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [valid] heartbeat: a claim that another worker took over is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 301;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'v');
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_heartbeat(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [valid] heartbeat: a claim that the same worker name took over is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 301;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_heartbeat(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [valid] heartbeat: a dead job is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES ('q', 1, 1);
CREATE TABLE before AS SELECT * FROM __alkstore_dead_job;
INSERT INTO alkstore_heartbeat(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_dead_job;
--> (no rows)

-- [valid] heartbeat: a cancelled job is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_cancel(queue, job_id) VALUES ('q', 1);
INSERT INTO alkstore_heartbeat(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> (no rows)
SELECT count(*) FROM alkstore_jobs;
--> 0

-- [valid] heartbeat: a job acked before is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('q', 1, 1);
INSERT INTO alkstore_heartbeat(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> (no rows)
SELECT count(*) FROM alkstore_jobs;
--> 0

-- [valid] heartbeat: accepted at the very second of claim_expires_at
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 300;
INSERT INTO alkstore_heartbeat(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> 1

-- [valid] heartbeat: accepted past expires_at
INSERT INTO alkstore_enqueue(queue, payload, expires_s) VALUES ('q', '1', 10);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 11;
INSERT INTO alkstore_heartbeat(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> 1

-- [name] heartbeat: a reserved queue is accepted
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE __alkstore_job SET queue = '__alkstore_q';
INSERT INTO alkstore_heartbeat(queue, job_id, attempt) VALUES ('__alkstore_none', 1, 1) RETURNING job_id;
--> (no rows)
INSERT INTO alkstore_heartbeat(queue, job_id, attempt) VALUES ('__alkstore_q', 1, 1) RETURNING job_id;
--> 1

-- [refusals] heartbeat: a queue name that cannot exist is AK001
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_heartbeat(queue, job_id, attempt) VALUES (NULL, 1, 1);
--! AK001
INSERT INTO alkstore_heartbeat(queue, job_id, attempt) VALUES ('', 1, 1);
--! AK001
INSERT INTO alkstore_heartbeat(queue, job_id, attempt) VALUES (replace(hex(zeroblob(128)), '00', 'é'), 1, 1);
--! AK001
INSERT INTO alkstore_heartbeat(queue, job_id, attempt) VALUES (replace(hex(zeroblob(127)), '00', 'é') || 'e', 1, 1) RETURNING job_id;
--> (no rows)
INSERT INTO alkstore_heartbeat(queue, job_id, attempt) VALUES ('q' || char(0), 1, 1);
--! AK001
INSERT INTO alkstore_heartbeat(queue, job_id, attempt) VALUES (x'71', 1, 1);
--! AK001
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [refusals] heartbeat: extend_s below 1 or beyond 32 bits is AK003, also when the claim is stale
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_heartbeat(queue, job_id, attempt, extend_s) VALUES ('q', 1, 1, 0);
--! AK003
INSERT INTO alkstore_heartbeat(queue, job_id, attempt, extend_s) VALUES ('q', 1, 1, -1);
--! AK003
INSERT INTO alkstore_heartbeat(queue, job_id, attempt, extend_s) VALUES ('q', 1, 1, 2147483648);
--! AK003
INSERT INTO alkstore_heartbeat(queue, job_id, attempt, extend_s) VALUES ('q', 1, 1, 9223372036854775807);
--! AK003
INSERT INTO alkstore_heartbeat(queue, job_id, attempt, extend_s) VALUES ('q', 1, 1, 1.5);
--! AK003
INSERT INTO alkstore_heartbeat(queue, job_id, attempt, extend_s) VALUES ('q', 1, 1, '60');
--! AK003
INSERT INTO alkstore_heartbeat(queue, job_id, attempt, extend_s) VALUES ('q', 1, 9, 0);
--! AK003
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [idle] a refused heartbeat writes nothing
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
CREATE TABLE before AS SELECT total_changes() AS changes;
INSERT INTO alkstore_heartbeat(queue, job_id, attempt) VALUES ('q', 1, 9);
SELECT total_changes() - changes FROM before;
--> 0
