-- alkstore_next_due. In a sub-select, since a queue without jobs may be a row with NULL or no row.

-- [next-due] NULL where there is no job
SELECT (SELECT next_due FROM alkstore_next_due WHERE queue = 'q');
--> NULL

-- [next-due] the earliest run_at of the queue's delayed jobs
INSERT INTO alkstore_enqueue(queue, payload, delay_s, priority)
VALUES ('q', '1', 50, 0), ('q', '2', 30, 0), ('q', '3', 40, 9), ('p', '4', 10, 0);
SELECT queue, next_due FROM alkstore_next_due ORDER BY queue;
--> p|1000000010
--> q|1000000030

-- [next-due] not in the future when a job is ready
INSERT INTO alkstore_enqueue(queue, payload, run_at, delay_s)
VALUES ('q', '1', 999999960, NULL), ('q', '2', NULL, 30), ('p', '3', -62135596800, NULL);
SELECT queue, next_due <= 1000000000 FROM alkstore_next_due ORDER BY queue;
--> p|1
--> q|1

-- [next-due] a claimed job is due one second past its claim_expires_at, when a claim takes it
INSERT INTO alkstore_enqueue(queue, payload, visibility_timeout_s) VALUES ('q', '1', 60), ('q', '2', 40);
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 2);
SELECT next_due FROM alkstore_next_due WHERE queue = 'q';
--> 1000000041
UPDATE test_clock SET now = now + 40;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'v');
SELECT job_id FROM alkstore_claimed;
--> (no rows)
UPDATE test_clock SET now = now + 1;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'v');
SELECT job_id FROM alkstore_claimed;
--> 2

-- [next-due] a heartbeat moves it
INSERT INTO alkstore_enqueue(queue, payload, visibility_timeout_s) VALUES ('q', '1', 60);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 41;
INSERT INTO alkstore_heartbeat(queue, job_id, attempt, extend_s) VALUES ('q', 1, 1, 10);
SELECT next_due FROM alkstore_next_due WHERE queue = 'q';
--> 1000000052

-- [next-due] a claimed job without attempts left counts too: a claim then buries it
INSERT INTO alkstore_enqueue(queue, payload, max_attempts) VALUES ('q', '1', 1);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
SELECT next_due FROM alkstore_next_due WHERE queue = 'q';
--> 1000000301
UPDATE test_clock SET now = now + 301;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
SELECT state, (SELECT next_due FROM alkstore_next_due WHERE queue = 'q') FROM alkstore_jobs;
--> dead|NULL

-- [next-due] a delayed job that expires before it is due does not count, one that expires then does
INSERT INTO alkstore_enqueue(queue, payload, delay_s, expires_s) VALUES ('q', '1', 30, 29);
SELECT (SELECT next_due FROM alkstore_next_due WHERE queue = 'q');
--> NULL
INSERT INTO alkstore_enqueue(queue, payload, delay_s, expires_s) VALUES ('q', '2', 40, 40);
SELECT (SELECT next_due FROM alkstore_next_due WHERE queue = 'q');
--> 1000000040

-- [next-due] a claimed job that expires before it lapses does not count, one that expires then does
INSERT INTO alkstore_enqueue(queue, payload, expires_s, visibility_timeout_s) VALUES ('q', '1', 60, 60);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
SELECT (SELECT next_due FROM alkstore_next_due WHERE queue = 'q');
--> NULL
INSERT INTO alkstore_enqueue(queue, payload, expires_s, visibility_timeout_s) VALUES ('q', '2', 61, 60);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
SELECT (SELECT next_due FROM alkstore_next_due WHERE queue = 'q');
--> 1000000061

-- [next-due] an expired job does not count
INSERT INTO alkstore_enqueue(queue, payload, expires_s, delay_s, visibility_timeout_s, priority)
VALUES ('q', '1', 10, NULL, NULL, 0), ('q', '2', 10, 5, NULL, 0), ('q', '3', 10, NULL, 5, 1);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 11;
SELECT (SELECT next_due FROM alkstore_next_due WHERE queue = 'q');
--> NULL

-- [next-due] dead, acked and cancelled jobs do not count
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1'), ('q', '2'), ('q', '3');
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 2);
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES ('q', 1, 1);
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('q', 2, 1);
INSERT INTO alkstore_cancel(queue, job_id) VALUES ('q', 3);
SELECT (SELECT next_due FROM alkstore_next_due WHERE queue = 'q');
--> NULL

-- [next-due] a retried job is due after its delay, a released one at its old run_at
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_retry(queue, job_id, attempt, delay_s) VALUES ('q', 1, 1, 20);
SELECT next_due FROM alkstore_next_due WHERE queue = 'q';
--> 1000000020
UPDATE test_clock SET now = now + 20;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('q', 1, 2);
SELECT next_due FROM alkstore_next_due WHERE queue = 'q';
--> 1000000020

-- [next-due] after the clock stepped back: when the clock is there again
INSERT INTO alkstore_enqueue(queue, payload, delay_s) VALUES ('q', '1', NULL), ('q', '2', 5);
UPDATE test_clock SET now = now - 10;
SELECT next_due FROM alkstore_next_due WHERE queue = 'q';
--> 1000000000
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
SELECT count(*) FROM alkstore_claimed;
--> 0

-- [next-due] two hundred jobs of all kinds, against the definition
-- Asked again as time goes on and claims are made.
CREATE TEMP VIEW expected(due, now) AS
SELECT min(d.due), c.now
FROM __alkstore_clock c LEFT JOIN (
  SELECT CASE state WHEN 'pending' THEN run_at ELSE claim_expires_at + 1 END AS due, expires_at
  FROM alkstore_jobs WHERE state <> 'dead') d ON d.expires_at IS NULL OR d.expires_at >= max(d.due, c.now);
CREATE TEMP VIEW answer(verdict) AS
SELECT CASE WHEN max(a.due, e.now) IS max(e.due, e.now) THEN 'agree' ELSE a.due || ' not ' || e.due END
FROM expected e, (SELECT (SELECT next_due FROM alkstore_next_due WHERE queue = 'q') AS due) a;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
INSERT INTO alkstore_enqueue(queue, payload, delay_s, visibility_timeout_s, expires_s, max_attempts)
SELECT 'q', i, i * 37 % 100, i * 7 % 40 + 1, CASE WHEN i % 3 > 0 THEN i * 53 % 120 + 1 END, i % 2 + 1 FROM n;
SELECT verdict FROM answer;
--> agree
UPDATE test_clock SET now = now + 20;
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 30);
SELECT verdict FROM answer;
--> agree
UPDATE test_clock SET now = now + 1;
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 200);
SELECT verdict FROM answer;
--> agree
UPDATE test_clock SET now = now + 9;
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 200);
SELECT verdict FROM answer;
--> agree
UPDATE test_clock SET now = now + 50;
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 200);
SELECT verdict FROM answer;
--> agree
UPDATE test_clock SET now = now + 30;
SELECT verdict FROM answer;
--> agree
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 200);
SELECT verdict FROM answer;
--> agree
UPDATE test_clock SET now = now + 100;
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 200);
SELECT verdict FROM answer;
--> agree

-- [next-due] a name that cannot exist has none, and is not refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
WITH names(name) AS (VALUES (NULL), (''), (hex(zeroblob(128))), ('__alkstore_q'))
SELECT (SELECT next_due FROM alkstore_next_due WHERE queue = name) FROM names;
--> NULL
--> NULL
--> NULL
--> NULL

-- [next-due] a read writes nothing
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
CREATE TABLE before AS SELECT total_changes() AS changes;
SELECT next_due IS NOT NULL FROM alkstore_next_due WHERE queue = 'q';
--> 1
SELECT total_changes() - changes FROM before;
--> 0
