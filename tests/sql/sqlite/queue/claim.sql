-- [claim-once] a job is handed out once
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1'), ('q', '2'), ('q', '3');
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'a', 2);
SELECT payload, worker_id FROM alkstore_claimed;
--> 1|a
--> 2|a
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'b', 2);
SELECT payload, worker_id FROM alkstore_claimed;
--> 3|b
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'c', 2);
SELECT payload, worker_id FROM alkstore_claimed;
--> (no rows)

-- [claim-once] a claim hands out n jobs at most
INSERT INTO alkstore_enqueue(queue, payload, visibility_timeout_s) VALUES ('q', '0', 1);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
WITH RECURSIVE g(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM g WHERE value < 20)
INSERT INTO alkstore_enqueue(queue, payload, delay_s) SELECT 'q', value, value % 2 FROM g;
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 1);
SELECT count(*) FROM alkstore_claimed;
--> 1
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 5);
SELECT count(*) FROM alkstore_claimed;
--> 5
UPDATE test_clock SET now = now + 2;
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 1);
SELECT count(*) FROM alkstore_claimed;
--> 1
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 5);
SELECT count(*) FROM alkstore_claimed;
--> 5
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 99);
SELECT count(*) FROM alkstore_claimed;
--> 9

-- [claim-ready] a delayed job is not ready a second before its run_at
INSERT INTO alkstore_enqueue(queue, payload, delay_s) VALUES ('q', '1', 60);
UPDATE test_clock SET now = now + 59;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
SELECT payload FROM alkstore_claimed;
--> (no rows)

-- [claim-ready] a delayed job is ready at its run_at
INSERT INTO alkstore_enqueue(queue, payload, delay_s) VALUES ('q', '1', 60);
UPDATE test_clock SET now = now + 60;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
SELECT payload FROM alkstore_claimed;
--> 1

-- [claim-ready] a claim still holds at its claim_expires_at
INSERT INTO alkstore_enqueue(queue, payload, visibility_timeout_s) VALUES ('q', '1', 60);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 60;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
SELECT payload FROM alkstore_claimed;
--> (no rows)

-- [claim-ready] a second after its claim_expires_at the job is ready
INSERT INTO alkstore_enqueue(queue, payload, visibility_timeout_s) VALUES ('q', '1', 60);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 61;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
SELECT payload FROM alkstore_claimed;
--> 1

-- [claim-ready] a job is ready at its expires_at
INSERT INTO alkstore_enqueue(queue, payload, expires_s) VALUES ('q', '1', 60);
UPDATE test_clock SET now = now + 60;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
SELECT payload FROM alkstore_claimed;
--> 1

-- [claim-ready] a second after its expires_at a job is never ready
INSERT INTO alkstore_enqueue(queue, payload, expires_s) VALUES ('q', '1', 60);
UPDATE test_clock SET now = now + 61;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
SELECT payload FROM alkstore_claimed;
--> (no rows)

-- [claim-ready] a delayed job that expires before its run_at is never ready
INSERT INTO alkstore_enqueue(queue, payload, delay_s, expires_s) VALUES ('q', '1', 60, 60), ('q', '2', 60, 59);
UPDATE test_clock SET now = now + 60;
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 9);
SELECT payload FROM alkstore_claimed;
--> 1

-- [claim-ready] a lapsed claim on an expired job is not taken over
INSERT INTO alkstore_enqueue(queue, payload, visibility_timeout_s, expires_s) VALUES ('q', '1', 10, 11), ('q', '2', 10, 10);
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 2);
UPDATE test_clock SET now = now + 11;
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 9);
SELECT payload FROM alkstore_claimed;
--> 1

-- [claim-ready] when the clock steps back, jobs that had become due wait again
WITH RECURSIVE g(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM g WHERE value < 150)
INSERT INTO alkstore_enqueue(queue, payload, delay_s) SELECT 'q', value, 60 FROM g;
UPDATE test_clock SET now = now + 60;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
SELECT payload FROM alkstore_claimed;
--> 1
UPDATE test_clock SET now = now - 2;
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 9);
SELECT payload FROM alkstore_claimed;
--> (no rows)
INSERT INTO alkstore_enqueue(queue, payload, delay_s) VALUES ('q', '151', 1);
UPDATE test_clock SET now = now + 1;
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 9);
SELECT payload FROM alkstore_claimed;
--> 151
UPDATE test_clock SET now = now + 1;
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 2);
SELECT payload FROM alkstore_claimed;
--> 2
--> 3

-- [claim-ready] when the clock steps back, claims that had lapsed hold again
WITH RECURSIVE g(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM g WHERE value < 150)
INSERT INTO alkstore_enqueue(queue, payload, visibility_timeout_s) SELECT 'q', value, 60 FROM g;
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 150);
UPDATE test_clock SET now = now + 61;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'v');
SELECT payload, attempt FROM alkstore_claimed;
--> 1|2
UPDATE test_clock SET now = now - 1;
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'v', 9);
SELECT payload FROM alkstore_claimed;
--> (no rows)
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('q', 2, 1) RETURNING job_id;
--> 2
INSERT INTO alkstore_heartbeat(queue, job_id, attempt, extend_s) VALUES ('q', 3, 1, 2) RETURNING job_id;
--> 3
UPDATE test_clock SET now = now + 1;
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'v', 2);
SELECT payload, attempt FROM alkstore_claimed;
--> 4|2
--> 5|2
UPDATE test_clock SET now = now + 2;
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'v', 2);
SELECT payload, attempt FROM alkstore_claimed;
--> 3|2
--> 6|2

-- [claim-order] the highest priority first
INSERT INTO alkstore_enqueue(queue, payload, priority) VALUES ('q', '0', 0), ('q', '5', 5), ('q', '1', 1), ('q', '9', 9);
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 4);
SELECT priority FROM alkstore_claimed;
--> 9
--> 5
--> 1
--> 0

-- [claim-order] priorities rank over all of their range
INSERT INTO alkstore_enqueue(queue, payload, priority)
SELECT 'q', '1', column1 FROM (VALUES (0), (-2147483648), (2147483647), (-1), (-2147483647), (2147483646), (1));
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 9);
SELECT priority FROM alkstore_claimed;
--> 2147483647
--> 2147483646
--> 1
--> 0
--> -1
--> -2147483647
--> -2147483648

-- [claim-order] then the earliest run_at, then the lowest id
INSERT INTO alkstore_enqueue(queue, payload, priority, run_at)
SELECT 'q', '1', column1, 1000000000 - column2 FROM (VALUES (0, 0), (0, 20), (0, 10), (1, 10), (0, 20), (1, 10), (0, 0));
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 9);
SELECT job_id FROM alkstore_claimed;
--> 4
--> 6
--> 2
--> 5
--> 3
--> 1
--> 7
SELECT value->>'job_id' FROM alkstore_claimed_json, json_each(jobs);
--> 4
--> 6
--> 2
--> 5
--> 3
--> 1
--> 7

-- [claim-order] the order is the same one job at a time
INSERT INTO alkstore_enqueue(queue, payload, priority, run_at)
SELECT 'q', '1', column1, 1000000000 - column2 FROM (VALUES (0, 0), (0, 20), (0, 10), (1, 10), (0, 20), (1, 10), (0, 0));
INSERT INTO alkstore_claim(queue, worker_id)
VALUES ('q', '1'), ('q', '2'), ('q', '3'), ('q', '4'), ('q', '5'), ('q', '6'), ('q', '7'), ('q', '8');
SELECT job_id FROM alkstore_jobs ORDER BY worker_id;
--> 4
--> 6
--> 2
--> 5
--> 3
--> 1
--> 7

-- [claim-order] delayed jobs and lapsed claims rank among the others
INSERT INTO alkstore_enqueue(queue, payload, priority, visibility_timeout_s) VALUES ('q', '"lapsed"', 1, 5);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_enqueue(queue, payload, priority, delay_s)
VALUES ('q', '"ready"', 1, 0), ('q', '"ready, last"', -1, 0), ('q', '"delayed"', 1, 6), ('q', '"delayed, first"', 2, 6),
  ('q', '"delayed, of low priority"', 0, 1);
UPDATE test_clock SET now = now + 6;
INSERT INTO alkstore_enqueue(queue, payload, priority) VALUES ('q', '"new"', 1);
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 2);
SELECT payload FROM alkstore_claimed;
--> "delayed, first"
--> "lapsed"
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 9);
SELECT payload FROM alkstore_claimed;
--> "ready"
--> "delayed"
--> "new"
--> "delayed, of low priority"
--> "ready, last"

-- [claim-order] hundreds that became due at once rank among the others
WITH RECURSIVE g(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM g WHERE value < 60)
INSERT INTO alkstore_enqueue(queue, payload, priority, visibility_timeout_s) SELECT 'q', '"lapsed"', value % 5, 10 FROM g;
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 60);
WITH RECURSIVE g(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM g WHERE value < 150)
INSERT INTO alkstore_enqueue(queue, payload, priority, delay_s) SELECT 'q', '"delayed"', value % 7, 20 + value % 3 FROM g;
WITH RECURSIVE g(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM g WHERE value < 10)
INSERT INTO alkstore_enqueue(queue, payload, priority, delay_s, expires_s) SELECT 'q', '"expired"', 9, 20, 50 FROM g;
UPDATE test_clock SET now = now + 60;
WITH RECURSIVE g(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM g WHERE value < 50)
INSERT INTO alkstore_enqueue(queue, payload, priority) SELECT 'q', '"ready"', value % 6 FROM g;
WITH RECURSIVE g(value) AS (SELECT 0 UNION ALL SELECT value + 1 FROM g WHERE value < 40)
INSERT INTO alkstore_claim(queue, worker_id, n) SELECT 'q', CAST(value AS TEXT), 7 FROM g;
SELECT count(*), sum(worker_id = CAST((position - 1) / 7 AS TEXT)) FROM (
  SELECT *, row_number() OVER (ORDER BY priority DESC, run_at, job_id) AS position
  FROM alkstore_jobs WHERE expires_at IS NULL);
--> 260|260

-- [claim-order] six of 2,000, the statistics being fresh
WITH RECURSIVE g(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM g WHERE value < 2000)
INSERT INTO alkstore_enqueue(queue, payload, priority, run_at)
SELECT 'q', '1', value * 37 % 101, 1000000000 - value * 41 % 103 FROM g;
ANALYZE;
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 6);
SELECT count(*), sum(c.job_id = j.job_id) FROM
  (SELECT job_id, row_number() OVER () AS position FROM alkstore_claimed) c JOIN
  (SELECT job_id, row_number() OVER (ORDER BY priority DESC, run_at, job_id) AS position FROM alkstore_jobs) j USING (position);
--> 6|6

-- [claim-order] a retried job ranks by its new run_at, a released one by its old
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1'), ('q', '2'), ('q', '3');
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 2);
UPDATE test_clock SET now = now + 10;
INSERT INTO alkstore_retry(queue, job_id, attempt, error, delay_s) VALUES ('q', 1, 1, 'e', 0);
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('q', 2, 1);
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 3);
SELECT job_id, run_at FROM alkstore_claimed;
--> 2|1000000000
--> 3|1000000000
--> 1|1000000010

-- [claim-n] n of 0 or less gives no rows and changes nothing
INSERT INTO alkstore_enqueue(queue, payload, max_attempts) VALUES ('q', '1', 1), ('q', '2', 3), ('q', '3', 3);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 301;
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('other', '4');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('other', 'w');
CREATE TABLE before_calls AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_claim(queue, worker_id, n)
VALUES ('q', 'w', 0), ('q', 'w', -1), ('q', 'w', -2147483648), ('q', 'w', -9223372036854775808)
RETURNING (SELECT jobs FROM alkstore_claimed_json);
--> []
--> []
--> []
--> []
SELECT payload FROM alkstore_claimed;
--> (no rows)
SELECT * FROM __alkstore_job EXCEPT SELECT * FROM before_calls;
--> (no rows)
SELECT count(*) FROM __alkstore_job;
--> 4

-- [claim-n] NULL and no n are one
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1'), ('q', '2'), ('q', '3');
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', NULL);
SELECT payload FROM alkstore_claimed;
--> 1
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
SELECT count(*) FROM alkstore_claimed;
--> 1
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 5);
SELECT payload FROM alkstore_claimed;
--> 3

-- [claim-n] n has 64 bits
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1'), ('q', '2'), ('q', '3');
INSERT INTO alkstore_enqueue(queue, payload, delay_s) VALUES ('due', '4', 1), ('due', '5', 1), ('due', '6', 1);
UPDATE test_clock SET now = now + 1;
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 2147483647);
SELECT payload FROM alkstore_claimed;
--> 1
--> 2
--> 3
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('due', 'w', 9223372036854775807);
SELECT payload FROM alkstore_claimed;
--> 4
--> 5
--> 6

-- [claim-n] what is no whole number is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 1.5);
--! AK003 invalid_option: n
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 'x');
--! AK003 invalid_option: n
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', '1');
--! AK003 invalid_option: n
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', x'31');
--! AK003 invalid_option: n
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 9223372036854775808);
--! AK003 invalid_option: n
SELECT state FROM alkstore_jobs;
--> pending

-- [claim-n] no row when nothing is ready
INSERT INTO alkstore_enqueue(queue, payload, delay_s) VALUES ('q', '1', 1), ('other', '2', 0);
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 9) RETURNING (SELECT jobs FROM alkstore_claimed_json);
--> []
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('empty', 'w', 9) RETURNING (SELECT jobs FROM alkstore_claimed_json);
--> []
SELECT * FROM alkstore_claimed;
--> (no rows)

-- [claim-stamps] the columns of a claim
SELECT group_concat(name, ' ') FROM pragma_table_info('alkstore_claimed');
--> job_id queue payload attempt claim_expires_at priority max_attempts worker_id claimed_at run_at expires_at created_at
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
SELECT group_concat(job.key, ' ') FROM alkstore_claimed_json, json_each(jobs) jobs, json_each(jobs.value) job;
--> job_id queue payload attempt claim_expires_at priority max_attempts worker_id claimed_at run_at expires_at created_at

-- [claim-stamps] a claim returns the job as claimed
INSERT INTO alkstore_enqueue(queue, payload, delay_s, priority, expires_s, max_attempts, visibility_timeout_s)
VALUES ('q', '{"a": 1}', 5, 2, 900, 4, 60);
UPDATE test_clock SET now = now + 10;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w') RETURNING (SELECT jobs FROM alkstore_claimed_json);
--> [{"job_id":1,"queue":"q","payload":"{\"a\": 1}","attempt":1,"claim_expires_at":1000000070,"priority":2,"max_attempts":4,"worker_id":"w","claimed_at":1000000010,"run_at":1000000005,"expires_at":1000000900,"created_at":1000000000}]
SELECT * FROM alkstore_claimed;
--> 1|q|{"a": 1}|1|1000000070|2|4|w|1000000010|1000000005|1000000900|1000000000

-- [claim-stamps] the job is processing, its attempt counted
INSERT INTO alkstore_enqueue(queue, payload, visibility_timeout_s) VALUES ('q', '1', 60);
UPDATE test_clock SET now = now + 10;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
SELECT state, attempts, worker_id, claimed_at, claim_expires_at, released FROM alkstore_jobs;
--> processing|1|w|1000000010|1000000070|0

-- [claim-stamps] each job runs out by its own visibility_timeout_s
INSERT INTO alkstore_enqueue(queue, payload, visibility_timeout_s) VALUES ('q', '1', 1), ('q', '2', 2147483647);
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 2);
SELECT payload, claim_expires_at FROM alkstore_claimed;
--> 1|1000000001
--> 2|3147483647

-- [claim-stamps] attempt numbers go on past 2^31
INSERT INTO alkstore_enqueue(queue, payload, max_attempts) VALUES ('q', '1', 2147483647);
UPDATE __alkstore_job SET attempts = 2147483646;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
SELECT attempt FROM alkstore_claimed;
--> 2147483647
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('q', 1, 2147483647) RETURNING job_id;
--> 1
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
SELECT attempt FROM alkstore_claimed;
--> 2147483648
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('q', 1, 2147483648) RETURNING job_id;
--> 1

-- [reclaim] a lapse changes nothing
INSERT INTO alkstore_enqueue(queue, payload, visibility_timeout_s) VALUES ('q', '1', 60);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 61;
SELECT state, attempts, worker_id, claimed_at, claim_expires_at, last_error FROM alkstore_jobs;
--> processing|1|w|1000000000|1000000060|NULL

-- [reclaim] taking over a lapsed claim costs an attempt
INSERT INTO alkstore_enqueue(queue, payload, visibility_timeout_s) VALUES ('q', '1', 60);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 61;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'v');
SELECT payload, attempt, worker_id, claimed_at, claim_expires_at, run_at FROM alkstore_claimed;
--> 1|2|v|1000000061|1000000121|1000000000

-- [reclaim] the same worker's name makes no difference
INSERT INTO alkstore_enqueue(queue, payload, visibility_timeout_s) VALUES ('q', '1', 60);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'v');
UPDATE test_clock SET now = now + 61;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'v');
SELECT payload, attempt, worker_id FROM alkstore_claimed;
--> 1|2|v

-- [exhausted] a spent job does not stand in the way
INSERT INTO alkstore_enqueue(queue, payload, max_attempts, priority) VALUES ('q', '1', 1, 9);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 301;
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '2');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'v');
SELECT payload FROM alkstore_claimed;
--> 2
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'v'), ('q', 'v');
SELECT payload FROM alkstore_claimed;
--> (no rows)
SELECT payload, state, last_error FROM alkstore_jobs ORDER BY job_id;
--> 1|dead|max attempts exceeded
--> 2|processing|NULL

-- [exhausted] not while the claim still holds
INSERT INTO alkstore_enqueue(queue, payload, max_attempts, visibility_timeout_s) VALUES ('q', '1', 1, 60);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 60;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'v');
SELECT count(*) FROM alkstore_claimed;
--> 0
SELECT state FROM alkstore_jobs;
--> processing

-- [exhausted] a second after its claim_expires_at a claim buries it, though it hands out nothing
INSERT INTO alkstore_enqueue(queue, payload, priority, expires_s, max_attempts, visibility_timeout_s, backoff_base_s,
  dead_letter_retention_s)
VALUES ('q', '{"b":1, "a":1e2}', 2, 900, 1, 60, 7, 8);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 61;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'v');
SELECT count(*) FROM alkstore_claimed;
--> 0
SELECT * FROM alkstore_jobs;
--> 1|q|dead|{"b":1, "a":1e2}|2|1|1|60|7|8|w|1000000000|1000000000|1000000900|1000000000|1000000060|NULL|max attempts exceeded|1000000061|0

-- [exhausted] no job runs max_attempts + 1 times
INSERT INTO alkstore_enqueue(queue, payload, visibility_timeout_s) VALUES ('q', '1', 1);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 2;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 2;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
SELECT attempt FROM alkstore_claimed;
--> 3
UPDATE test_clock SET now = now + 2;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
SELECT attempt FROM alkstore_claimed;
--> (no rows)
SELECT state, attempts, last_error FROM alkstore_jobs;
--> dead|3|max attempts exceeded

-- [exhausted] released claims do not count
INSERT INTO alkstore_enqueue(queue, payload, max_attempts, visibility_timeout_s) VALUES ('q', '1', 2, 1);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> 1
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('q', 1, 2) RETURNING job_id;
--> 1
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
SELECT attempt FROM alkstore_claimed;
--> 3
UPDATE test_clock SET now = now + 2;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
SELECT attempt FROM alkstore_claimed;
--> 4
UPDATE test_clock SET now = now + 2;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
SELECT attempt FROM alkstore_claimed;
--> (no rows)
SELECT state, attempts, released, last_error FROM alkstore_jobs;
--> dead|4|2|max attempts exceeded

-- [exhausted] one claim buries them all
WITH RECURSIVE g(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM g WHERE value < 150)
INSERT INTO alkstore_enqueue(queue, payload, max_attempts) SELECT 'q', value, 1 FROM g;
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 150);
UPDATE test_clock SET now = now + 301;
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '151');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'v');
SELECT payload FROM alkstore_claimed;
--> 151
SELECT state, last_error, count(*) FROM alkstore_jobs GROUP BY 1, 2 ORDER BY 1;
--> dead|max attempts exceeded|150
--> processing|NULL|1

-- [exhausted] a job that is past its expires_at too is buried by the claim
INSERT INTO alkstore_enqueue(queue, payload, max_attempts, visibility_timeout_s, expires_s) VALUES ('q', '1', 1, 10, 5);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 11;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'v');
SELECT count(*) FROM alkstore_claimed;
--> 0
SELECT last_error FROM alkstore_jobs;
--> max attempts exceeded

-- [idle] an empty claim changes nothing
INSERT INTO alkstore_enqueue(queue, payload, max_attempts) VALUES ('q', '"held"', 3), ('q', '"held, exhausted"', 1);
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 2);
INSERT INTO alkstore_enqueue(queue, payload, delay_s, expires_s)
VALUES ('q', '"expired"', 0, 1), ('q', '"expired while delayed"', 2, 1), ('q', '"delayed"', 9, NULL);
UPDATE test_clock SET now = now + 2;
-- Clears what the claim before handed out.
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('empty', 'w');
CREATE TABLE changes (total);
INSERT INTO changes VALUES (total_changes());
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 9), ('q', 'w', 1), ('empty', 'w', 1), ('q', 'w', 0);
SELECT total_changes() - total FROM changes;
--> 1
