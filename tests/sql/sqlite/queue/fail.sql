-- alkstore_fail

-- [fail] the job is dead at once, whatever attempts it has left, with the error given
INSERT INTO alkstore_enqueue(queue, payload, max_attempts) VALUES ('q', '1', 9), ('q', '2', NULL);
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 2);
INSERT INTO alkstore_fail(queue, job_id, attempt, error) VALUES ('q', 1, 1, 'no such user') RETURNING job_id;
--> 1
SELECT job_id, state, last_error, retry_error FROM alkstore_jobs ORDER BY job_id;
--> 1|dead|no such user|NULL
--> 2|processing|NULL|NULL

-- [fail] without an error last_error is failed, an empty error stays empty
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1'), ('q', '2'), ('q', '3');
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 3);
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES ('q', 1, 1);
INSERT INTO alkstore_fail(queue, job_id, attempt, error) VALUES ('q', 2, 1, NULL), ('q', 3, 1, '');
SELECT job_id, last_error FROM alkstore_jobs ORDER BY job_id;
--> 1|failed
--> 2|failed
--> 3|

-- [fail] retry_error stays what retry was given
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_retry(queue, job_id, attempt, error, delay_s) VALUES ('q', 1, 1, 'oops', 0);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_fail(queue, job_id, attempt, error) VALUES ('q', 1, 2, 'gone');
SELECT retry_error, last_error FROM alkstore_jobs;
--> oops|gone

-- [dead-move] a dead job keeps its id, payload, stamps, attempts and instants
INSERT INTO alkstore_enqueue(queue, payload, delay_s, priority, expires_s, max_attempts, visibility_timeout_s, backoff_base_s,
  dead_letter_retention_s)
VALUES ('q', '{"b":1, "a":[1.0,1e2]}', 5, 7, 1000, 5, 60, 9, 77);
UPDATE test_clock SET now = now + 10;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('q', 1, 1);
UPDATE test_clock SET now = now + 10;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_retry(queue, job_id, attempt, error, delay_s) VALUES ('q', 1, 2, 'oops', 1);
UPDATE test_clock SET now = now + 10;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 10;
INSERT INTO alkstore_fail(queue, job_id, attempt, error) VALUES ('q', 1, 3, 'boom');
SELECT * FROM alkstore_jobs;
--> 1|q|dead|{"b":1, "a":[1.0,1e2]}|7|3|5|60|9|77|w|1000000000|1000000021|1000001000|1000000030|1000000090|oops|boom|1000000040|1

-- [dead-move] a dead job is in the dead storage alone, however it died
-- Four ways to die: fail, retry, sweep and, by a claim, too many lapses.
INSERT INTO alkstore_enqueue(queue, payload, max_attempts, expires_s)
VALUES ('q', '1', NULL, NULL), ('q', '2', 1, NULL), ('q', '3', NULL, 10), ('q', '4', 1, NULL);
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 4);
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES ('q', 1, 1);
INSERT INTO alkstore_retry(queue, job_id, attempt) VALUES ('q', 2, 1);
UPDATE test_clock SET now = now + 301;
INSERT INTO alkstore_sweep_expired(queue) VALUES ('q');
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 4);
SELECT count(*) FROM __alkstore_job;
--> 0
SELECT job_id, state, last_error FROM alkstore_jobs ORDER BY job_id;
--> 1|dead|failed
--> 2|dead|max attempts exceeded
--> 3|dead|expired
--> 4|dead|max attempts exceeded

-- [dead-move] a move that breaks off leaves the job where it was
INSERT INTO alkstore_enqueue(queue, payload, max_attempts, expires_s) VALUES ('q', '1', 1, 10);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
CREATE TEMP TRIGGER break BEFORE DELETE ON __alkstore_job BEGIN SELECT RAISE(ABORT, 'broken'); END;
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES ('q', 1, 1);
--! broken
INSERT INTO alkstore_retry(queue, job_id, attempt) VALUES ('q', 1, 1);
--! broken
UPDATE test_clock SET now = now + 301;
INSERT INTO alkstore_sweep_expired(queue) VALUES ('q');
--! broken
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
--! broken
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)
SELECT count(*) FROM __alkstore_dead_job;
--> 0

-- [dead-move] a dead job is never claimed
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1'), ('q', '2');
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 2);
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES ('q', 1, 1);
UPDATE test_clock SET now = now + 301;
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 9);
SELECT job_id FROM alkstore_claimed;
--> 2

-- [valid] fail: a job never claimed is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES ('q', 1, 0) RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [valid] fail: another attempt number is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES ('q', 1, 2) RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [valid] fail: another queue is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES ('other', 1, 1) RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [valid] fail: an unknown job is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES ('q', 2, 1) RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [valid] fail: a NULL job_id is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES ('q', NULL, 1) RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [valid] fail: a NULL attempt is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES ('q', 1, NULL) RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [valid] fail: a job given back is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('q', 1, 1);
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [valid] fail: a lapsed claim is refused though nobody took the job
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 301;
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [valid] fail: a claim that another worker took over is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 301;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'v');
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [valid] fail: a claim that the same worker name took over is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 301;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [valid] fail: a dead job is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES ('q', 1, 1);
CREATE TABLE before AS SELECT * FROM __alkstore_dead_job;
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_dead_job;
--> (no rows)

-- [valid] fail: a cancelled job is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_cancel(queue, job_id) VALUES ('q', 1);
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> (no rows)
SELECT count(*) FROM alkstore_jobs;
--> 0

-- [valid] fail: a job acked before is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('q', 1, 1);
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> (no rows)
SELECT count(*) FROM alkstore_jobs;
--> 0

-- [valid] fail: accepted at the very second of claim_expires_at
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 300;
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> 1

-- [valid] fail: accepted past expires_at
INSERT INTO alkstore_enqueue(queue, payload, expires_s) VALUES ('q', '1', 10);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 11;
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> 1

-- [error-text] an error given to fail is cut at 65536 characters
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1'), ('q', '2'), ('q', '3');
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 3);
INSERT INTO alkstore_fail(queue, job_id, attempt, error) VALUES
  ('q', 1, 1, replace(hex(zeroblob(65536)), '00', '😀')),
  ('q', 2, 1, replace(hex(zeroblob(65537)), '00', '😀')),
  ('q', 3, 1, hex(zeroblob(5242880)))
RETURNING job_id;
--> 1
--> 2
--> 3
SELECT job_id, last_error = replace(hex(zeroblob(65536)), '00', '😀'), last_error = hex(zeroblob(32768))
FROM alkstore_jobs ORDER BY job_id;
--> 1|1|0
--> 2|1|0
--> 3|0|1

-- [error-text] an error given to fail cannot bring in a NUL
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1'), ('q', '2'), ('q', '3');
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 3);
INSERT INTO alkstore_fail(queue, job_id, attempt, error)
VALUES ('q', 1, 1, 'a' || char(0) || 'b'), ('q', 2, 1, char(0) || 'b'), ('q', 3, 1, 'é' || char(0))
RETURNING job_id;
--> 1
--> 2
--> 3
SELECT job_id, state, hex(last_error) FROM alkstore_jobs ORDER BY job_id;
--> 1|dead|61
--> 2|dead|
--> 3|dead|C3A9

-- [name] fail: a reserved queue is accepted
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE __alkstore_job SET queue = '__alkstore_q';
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES ('__alkstore_none', 1, 1) RETURNING job_id;
--> (no rows)
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES ('__alkstore_q', 1, 1) RETURNING job_id;
--> 1

-- [refusals] fail: a queue name that cannot exist is AK001
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES (NULL, 1, 1);
--! AK001
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES ('', 1, 1);
--! AK001
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES (replace(hex(zeroblob(128)), '00', 'é'), 1, 1);
--! AK001
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES (replace(hex(zeroblob(127)), '00', 'é') || 'e', 1, 1) RETURNING job_id;
--> (no rows)
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES ('q' || char(0), 1, 1);
--! AK001
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES (x'71', 1, 1);
--! AK001
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [idle] a refused fail writes nothing
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
CREATE TABLE before AS SELECT total_changes() AS changes;
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES ('q', 1, 9);
SELECT total_changes() - changes FROM before;
--> 0

-- [error-text] an error given to fail as bytes becomes text, cut at the first NUL
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_fail(queue, job_id, attempt, error) VALUES ('q', 1, 1, x'626f6f6d00ff');
SELECT last_error, typeof(last_error) FROM alkstore_dead_jobs;
--> boom|text
