-- alkstore_retry

-- [retry] the job is pending again after delay_s, its claim cleared, its attempt counted
INSERT INTO alkstore_enqueue(queue, payload, priority, expires_s, max_attempts, visibility_timeout_s, backoff_base_s, dead_letter_retention_s)
VALUES ('q', '{"a": 1}', 7, 1000, 5, 60, 9, 77);
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '2');
UPDATE test_clock SET now = now + 10;
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 2);
UPDATE test_clock SET now = now + 10;
INSERT INTO alkstore_retry(queue, job_id, attempt, error, delay_s) VALUES ('q', 1, 1, 'oops', 30) RETURNING job_id;
--> 1
SELECT * FROM alkstore_jobs WHERE job_id = 1;
--> 1|q|pending|{"a": 1}|7|1|5|60|9|77|NULL|1000000000|1000000050|1000001000|NULL|NULL|oops|NULL|NULL|0
SELECT job_id, state FROM alkstore_jobs WHERE job_id = 2;
--> 2|processing

-- [retry] the job is not claimed before its delay has passed
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_retry(queue, job_id, attempt, delay_s) VALUES ('q', 1, 1, 30);
UPDATE test_clock SET now = now + 29;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
SELECT job_id FROM alkstore_claimed;
--> (no rows)

-- [retry] the job is claimed when its delay has passed, as the next attempt
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_retry(queue, job_id, attempt, delay_s) VALUES ('q', 1, 1, 30);
UPDATE test_clock SET now = now + 30;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
SELECT job_id, attempt, run_at FROM alkstore_claimed;
--> 1|2|1000000030

-- [retry] delay_s 0 makes the job ready at once
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_retry(queue, job_id, attempt, delay_s) VALUES ('q', 1, 1, 0);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
SELECT job_id, attempt, run_at FROM alkstore_claimed;
--> 1|2|1000000000

-- [retry] delay_s may be 2147483647
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_retry(queue, job_id, attempt, delay_s) VALUES ('q', 1, 1, 2147483647);
SELECT state, run_at FROM alkstore_jobs;
--> pending|3147483647

-- [plans] a job that waits for its retry is not in the index that claims read
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_retry(queue, job_id, attempt, delay_s) VALUES ('q', 1, 1, 1);
SELECT ready FROM __alkstore_job;
--> 0

-- [retry] a job runs max_attempts times and is then dead
INSERT INTO alkstore_enqueue(queue, payload, max_attempts) VALUES ('q', '1', 3);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
SELECT attempt FROM alkstore_claimed;
--> 1
INSERT INTO alkstore_retry(queue, job_id, attempt, delay_s) VALUES ('q', 1, 1, 0) RETURNING job_id;
--> 1
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
SELECT attempt FROM alkstore_claimed;
--> 2
INSERT INTO alkstore_retry(queue, job_id, attempt, delay_s) VALUES ('q', 1, 2, 0) RETURNING job_id;
--> 1
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
SELECT attempt FROM alkstore_claimed;
--> 3
INSERT INTO alkstore_retry(queue, job_id, attempt, delay_s) VALUES ('q', 1, 3, 0) RETURNING job_id;
--> 1
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
SELECT attempt FROM alkstore_claimed;
--> (no rows)
SELECT state, attempts, last_error FROM alkstore_jobs;
--> dead|3|max attempts exceeded

-- [retry] without attempts left the job is dead, with the error given
INSERT INTO alkstore_enqueue(queue, payload, max_attempts) VALUES ('q', '1', 1);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 10;
INSERT INTO alkstore_retry(queue, job_id, attempt, error, delay_s) VALUES ('q', 1, 1, 'boom', 30);
SELECT * FROM alkstore_jobs;
--> 1|q|dead|1|0|1|1|300|5|NULL|w|1000000000|1000000000|NULL|1000000000|1000000300|boom|boom|1000000010|0

-- [retry] released claims do not count towards max_attempts
INSERT INTO alkstore_enqueue(queue, payload, max_attempts) VALUES ('q', '1', 2);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('q', 1, 1);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_retry(queue, job_id, attempt, delay_s) VALUES ('q', 1, 2, 0);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
SELECT state, attempts, released FROM alkstore_jobs;
--> processing|3|1
INSERT INTO alkstore_retry(queue, job_id, attempt, delay_s) VALUES ('q', 1, 3, 0) RETURNING job_id;
--> 1
SELECT state, attempts, released FROM alkstore_jobs;
--> dead|3|1

-- [valid] retry: a job never claimed is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_retry(queue, job_id, attempt, error) VALUES ('q', 1, 0, 'oops') RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [valid] retry: another attempt number is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_retry(queue, job_id, attempt, error) VALUES ('q', 1, 2, 'oops') RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [valid] retry: another queue is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_retry(queue, job_id, attempt, error) VALUES ('other', 1, 1, 'oops') RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [valid] retry: an unknown job is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_retry(queue, job_id, attempt, error) VALUES ('q', 2, 1, 'oops') RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [valid] retry: a NULL job_id is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_retry(queue, job_id, attempt, error) VALUES ('q', NULL, 1, 'oops') RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [valid] retry: a NULL attempt is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_retry(queue, job_id, attempt, error) VALUES ('q', 1, NULL, 'oops') RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [valid] retry: a job given back is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('q', 1, 1);
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_retry(queue, job_id, attempt, error) VALUES ('q', 1, 1, 'oops') RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [valid] retry: a lapsed claim is refused though nobody took the job
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 301;
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_retry(queue, job_id, attempt, error) VALUES ('q', 1, 1, 'oops') RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [valid] retry: a claim that another worker took over is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 301;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'v');
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_retry(queue, job_id, attempt, error) VALUES ('q', 1, 1, 'oops') RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [valid] retry: a claim that the same worker name took over is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 301;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_retry(queue, job_id, attempt, error) VALUES ('q', 1, 1, 'oops') RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [valid] retry: a dead job is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES ('q', 1, 1);
CREATE TABLE before AS SELECT * FROM __alkstore_dead_job;
INSERT INTO alkstore_retry(queue, job_id, attempt, error) VALUES ('q', 1, 1, 'oops') RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_dead_job;
--> (no rows)

-- [valid] retry: a cancelled job is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_cancel(queue, job_id) VALUES ('q', 1);
INSERT INTO alkstore_retry(queue, job_id, attempt, error) VALUES ('q', 1, 1, 'oops') RETURNING job_id;
--> (no rows)
SELECT count(*) FROM alkstore_jobs;
--> 0

-- [valid] retry: a job acked before is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('q', 1, 1);
INSERT INTO alkstore_retry(queue, job_id, attempt, error) VALUES ('q', 1, 1, 'oops') RETURNING job_id;
--> (no rows)
SELECT count(*) FROM alkstore_jobs;
--> 0

-- [valid] retry: accepted at the very second of claim_expires_at
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 300;
INSERT INTO alkstore_retry(queue, job_id, attempt, error) VALUES ('q', 1, 1, 'oops') RETURNING job_id;
--> 1

-- [valid] retry: accepted past expires_at
INSERT INTO alkstore_enqueue(queue, payload, expires_s) VALUES ('q', '1', 10);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 11;
INSERT INTO alkstore_retry(queue, job_id, attempt, error) VALUES ('q', 1, 1, 'oops') RETURNING job_id;
--> 1

-- [error-text] retry without an error keeps the one before
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_retry(queue, job_id, attempt, error, delay_s) VALUES ('q', 1, 1, 'first', 0);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_retry(queue, job_id, attempt, error, delay_s) VALUES ('q', 1, 2, NULL, 0);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
SELECT state, retry_error FROM alkstore_jobs;
--> processing|first

-- [error-text] retry_error is the last one given
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_retry(queue, job_id, attempt, error, delay_s) VALUES ('q', 1, 1, 'first', 0);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_retry(queue, job_id, attempt, error, delay_s) VALUES ('q', 1, 2, 'second', 0);
SELECT state, retry_error FROM alkstore_jobs;
--> pending|second

-- [error-text] an empty error given to retry counts
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_retry(queue, job_id, attempt, error, delay_s) VALUES ('q', 1, 1, 'first', 0);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_retry(queue, job_id, attempt, error, delay_s) VALUES ('q', 1, 2, '', 0);
SELECT state, retry_error FROM alkstore_jobs;
--> pending|

-- [error-text] a retry that dies without an error keeps the retry_error before
INSERT INTO alkstore_enqueue(queue, payload, max_attempts) VALUES ('q', '1', 2);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_retry(queue, job_id, attempt, error, delay_s) VALUES ('q', 1, 1, 'first', 0);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_retry(queue, job_id, attempt) VALUES ('q', 1, 2);
SELECT retry_error, last_error FROM alkstore_jobs;
--> first|max attempts exceeded

-- [error-text] a retry that dies with an error sets both errors
INSERT INTO alkstore_enqueue(queue, payload, max_attempts) VALUES ('q', '1', 2);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_retry(queue, job_id, attempt, error, delay_s) VALUES ('q', 1, 1, 'first', 0);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_retry(queue, job_id, attempt, error) VALUES ('q', 1, 2, 'second');
SELECT retry_error, last_error FROM alkstore_jobs;
--> second|second

-- [error-text] a retry that dies with an empty error sets both errors
INSERT INTO alkstore_enqueue(queue, payload, max_attempts) VALUES ('q', '1', 1);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_retry(queue, job_id, attempt, error) VALUES ('q', 1, 1, '');
SELECT retry_error, last_error FROM alkstore_jobs;
--> |

-- [error-text] an error given to retry is cut at 65536 characters
INSERT INTO alkstore_enqueue(queue, payload, max_attempts) VALUES ('q', '1', 2), ('q', '2', 2), ('q', '3', 2), ('q', '4', 1);
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 4);
INSERT INTO alkstore_retry(queue, job_id, attempt, error) VALUES
  ('q', 1, 1, replace(hex(zeroblob(65536)), '00', '😀')),
  ('q', 2, 1, replace(hex(zeroblob(65537)), '00', '😀')),
  ('q', 3, 1, hex(zeroblob(5242880))),
  ('q', 4, 1, replace(hex(zeroblob(65537)), '00', '😀'))
RETURNING job_id;
--> 1
--> 2
--> 3
--> 4
SELECT job_id, retry_error = e.faces, retry_error = e.zeros, last_error = e.faces
FROM alkstore_jobs, (SELECT replace(hex(zeroblob(65536)), '00', '😀') AS faces, hex(zeroblob(32768)) AS zeros) e
ORDER BY job_id;
--> 1|1|0|NULL
--> 2|1|0|NULL
--> 3|0|1|NULL
--> 4|1|0|1

-- [error-text] an error given to retry cannot bring in a NUL
INSERT INTO alkstore_enqueue(queue, payload, max_attempts) VALUES ('q', '1', 2), ('q', '2', 2), ('q', '3', 1);
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 3);
INSERT INTO alkstore_retry(queue, job_id, attempt, error)
VALUES ('q', 1, 1, 'a' || char(0) || 'b'), ('q', 2, 1, char(0) || 'b'), ('q', 3, 1, 'é' || char(0))
RETURNING job_id;
--> 1
--> 2
--> 3
SELECT job_id, state, hex(retry_error), hex(last_error) FROM alkstore_jobs ORDER BY job_id;
--> 1|pending|61|
--> 2|pending||
--> 3|dead|C3A9|C3A9

-- [backoff] the delay is half to all of min(3600, base * 2^(attempt - 1)), whatever attempt and base
-- The payload of each job is the number of the attempt that it is in.
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40),
  a(attempt) AS (SELECT i FROM n UNION ALL VALUES (62), (63), (64), (1000), (2147483647)),
  b(base) AS (VALUES (1), (5), (2147483647))
INSERT INTO alkstore_enqueue(queue, payload, backoff_base_s)
SELECT 'q', attempt, base FROM a, b, n WHERE i <= 20;
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 5000);
UPDATE __alkstore_job SET attempts = CAST(payload AS INTEGER), max_attempts = 2147483648;
INSERT INTO alkstore_retry(queue, job_id, attempt) SELECT 'q', job_id, attempts FROM alkstore_jobs;
SELECT count(*) FROM alkstore_jobs WHERE state = 'pending';
--> 2700
WITH f(base, attempt, low, high) AS (VALUES
  (1, 1, 1, 1), (1, 2, 1, 2), (1, 3, 2, 4), (1, 4, 4, 8), (1, 5, 8, 16), (1, 6, 16, 32), (1, 7, 32, 64),
  (1, 8, 64, 128), (1, 9, 128, 256), (1, 10, 256, 512), (1, 11, 512, 1024), (1, 12, 1024, 2048),
  (5, 1, 3, 5), (5, 2, 5, 10), (5, 3, 10, 20), (5, 4, 20, 40), (5, 5, 40, 80), (5, 6, 80, 160), (5, 7, 160, 320),
  (5, 8, 320, 640), (5, 9, 640, 1280), (5, 10, 1280, 2560))
SELECT j.backoff_base_s, j.attempts, j.run_at - 1000000000
FROM alkstore_jobs j LEFT JOIN f ON f.base = j.backoff_base_s AND f.attempt = j.attempts
WHERE j.run_at - 1000000000 NOT BETWEEN coalesce(f.low, 1800) AND coalesce(f.high, 3600);
--> (no rows)

-- [backoff] every whole second of the range is drawn, both ends included
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
INSERT INTO alkstore_enqueue(queue, payload) SELECT 'q', '3' FROM n;
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 400);
UPDATE __alkstore_job SET attempts = 3, max_attempts = 4;
INSERT INTO alkstore_retry(queue, job_id, attempt) SELECT 'q', job_id, 3 FROM alkstore_jobs;
SELECT group_concat(delay) FROM (SELECT DISTINCT run_at - 1000000000 AS delay FROM alkstore_jobs ORDER BY 1);
--> 10,11,12,13,14,15,16,17,18,19,20

-- [backoff] an hour at most, spread evenly over its second half
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
INSERT INTO alkstore_enqueue(queue, payload, backoff_base_s) SELECT 'q', '1', 2147483647 FROM n;
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 2000);
INSERT INTO alkstore_retry(queue, job_id, attempt) SELECT 'q', job_id, 1 FROM alkstore_jobs;
SELECT min(delay) BETWEEN 1800 AND 1850, max(delay) BETWEEN 3550 AND 3600, avg(delay) BETWEEN 2600 AND 2800
FROM (SELECT run_at - 1000000000 AS delay FROM alkstore_jobs);
--> 1|1|1

-- [backoff] with base 0 there is no delay
INSERT INTO alkstore_enqueue(queue, payload, backoff_base_s) VALUES ('q', '1', 0);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_retry(queue, job_id, attempt) VALUES ('q', 1, 1);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
SELECT attempt, run_at FROM alkstore_claimed;
--> 2|1000000000

-- [backoff] released claims do not count
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('q', 1, 1);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('q', 1, 2);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_retry(queue, job_id, attempt) VALUES ('q', 1, 3);
SELECT attempts, run_at - 1000000000 BETWEEN 3 AND 5 FROM alkstore_jobs;
--> 3|1

-- [name] retry: a reserved queue is accepted
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE __alkstore_job SET queue = '__alkstore_q';
INSERT INTO alkstore_retry(queue, job_id, attempt) VALUES ('__alkstore_none', 1, 1) RETURNING job_id;
--> (no rows)
INSERT INTO alkstore_retry(queue, job_id, attempt) VALUES ('__alkstore_q', 1, 1) RETURNING job_id;
--> 1

-- [refusals] retry: a queue name that cannot exist is AK001
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_retry(queue, job_id, attempt) VALUES (NULL, 1, 1);
--! AK001
INSERT INTO alkstore_retry(queue, job_id, attempt) VALUES ('', 1, 1);
--! AK001
INSERT INTO alkstore_retry(queue, job_id, attempt) VALUES (replace(hex(zeroblob(128)), '00', 'é'), 1, 1);
--! AK001
INSERT INTO alkstore_retry(queue, job_id, attempt) VALUES (replace(hex(zeroblob(127)), '00', 'é') || 'e', 1, 1) RETURNING job_id;
--> (no rows)
INSERT INTO alkstore_retry(queue, job_id, attempt) VALUES ('q' || char(0), 1, 1);
--! AK001
INSERT INTO alkstore_retry(queue, job_id, attempt) VALUES (x'71', 1, 1);
--! AK001
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [refusals] retry: delay_s below 0 or beyond 32 bits is AK003, also when the claim is stale
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_retry(queue, job_id, attempt, delay_s) VALUES ('q', 1, 1, -1);
--! AK003
INSERT INTO alkstore_retry(queue, job_id, attempt, delay_s) VALUES ('q', 1, 1, 2147483648);
--! AK003
INSERT INTO alkstore_retry(queue, job_id, attempt, delay_s) VALUES ('q', 1, 1, 9223372036854775807);
--! AK003
INSERT INTO alkstore_retry(queue, job_id, attempt, delay_s) VALUES ('q', 1, 1, 1.5);
--! AK003
INSERT INTO alkstore_retry(queue, job_id, attempt, delay_s) VALUES ('q', 1, 1, '60');
--! AK003
INSERT INTO alkstore_retry(queue, job_id, attempt, delay_s) VALUES ('q', 1, 1, x'3630');
--! AK003
INSERT INTO alkstore_retry(queue, job_id, attempt, delay_s) VALUES ('q', 1, 9, -1);
--! AK003
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [idle] a refused retry writes nothing
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
CREATE TABLE before AS SELECT total_changes() AS changes;
INSERT INTO alkstore_retry(queue, job_id, attempt, error, delay_s) VALUES ('q', 1, 9, 'oops', 60);
SELECT total_changes() - changes FROM before;
--> 0

-- [error-text] an error given to retry as bytes becomes text, cut at the first NUL
INSERT INTO alkstore_enqueue(queue, payload, max_attempts) VALUES ('q', '1', 2);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_retry(queue, job_id, attempt, error, delay_s) VALUES ('q', 1, 1, x'626f6f6d00ff', 0);
SELECT retry_error, typeof(retry_error) FROM alkstore_jobs;
--> boom|text
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_retry(queue, job_id, attempt, error) VALUES ('q', 1, 2, x'62616e6700ff');
SELECT retry_error, typeof(retry_error), last_error, typeof(last_error) FROM alkstore_dead_jobs;
--> bang|text|bang|text
