-- alkstore_jobs

-- [get-job] the columns of jobs, in order
SELECT name FROM pragma_table_info('alkstore_jobs') ORDER BY cid;
--> job_id
--> queue
--> state
--> payload
--> priority
--> attempts
--> max_attempts
--> visibility_timeout_s
--> backoff_base_s
--> dead_letter_retention_s
--> worker_id
--> created_at
--> run_at
--> expires_at
--> claimed_at
--> claim_expires_at
--> retry_error
--> last_error
--> died_at
--> released

-- [get-job] one job has the columns of jobs
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
SELECT * FROM alkstore_jobs WHERE queue = 'q' AND job_id = 1;
--> 1|q|pending|1|0|0|3|300|5|NULL|NULL|1000000000|1000000000|NULL|NULL|NULL|NULL|NULL|NULL|0

-- [get-job] jobs shows every job of every queue, live and dead, once
INSERT INTO alkstore_enqueue(queue, payload, delay_s, expires_s, max_attempts)
VALUES ('q', '1', NULL, NULL, NULL), ('p', '2', NULL, NULL, NULL), ('q', '3', 60, NULL, NULL), ('q', '4', NULL, NULL, NULL),
  ('q', '5', NULL, NULL, NULL), ('q', '6', NULL, 10, NULL), ('q', '7', NULL, NULL, 1), ('q', '8', NULL, NULL, NULL);
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 3);
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES ('q', 1, 1);
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('q', 4, 1);
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 2);
INSERT INTO alkstore_cancel(queue, job_id) VALUES ('q', 8);
UPDATE test_clock SET now = now + 11;
SELECT job_id, queue, state FROM alkstore_jobs ORDER BY job_id;
--> 1|q|dead
--> 2|p|pending
--> 3|q|pending
--> 5|q|processing
--> 6|q|processing
--> 7|q|processing

-- [get-job] jobs shows a lapsed claim without attempts left as it is until a claim buries it
INSERT INTO alkstore_enqueue(queue, payload, max_attempts) VALUES ('q', '1', 1);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 301;
SELECT state, worker_id, last_error FROM alkstore_jobs;
--> processing|w|NULL

-- [get-job] to look at jobs writes nothing
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
CREATE TABLE before AS SELECT total_changes() AS changes;
SELECT count(*) FROM alkstore_jobs;
--> 1
SELECT total_changes() - changes FROM before;
--> 0
