-- One job, read from alkstore_jobs: what get_job is on PostgreSQL.

-- [get-job] a pending job, enqueued in this transaction
BEGIN;
INSERT INTO alkstore_enqueue(queue, payload, delay_s, priority, expires_s, max_attempts, visibility_timeout_s, backoff_base_s,
  dead_letter_retention_s)
VALUES ('q', '{"b":1, "a":[1.0,1e2]}', 5, -7, 1000, 4, 60, 9, 77);
SELECT * FROM alkstore_jobs WHERE queue = 'q' AND job_id = 1;
--> 1|q|pending|{"b":1, "a":[1.0,1e2]}|-7|0|4|60|9|77|NULL|1000000000|1000000005|1000001000|NULL|NULL|NULL|NULL|NULL|0
COMMIT;

-- [get-job] a processing job
INSERT INTO alkstore_enqueue(queue, payload, delay_s, priority, expires_s, max_attempts, visibility_timeout_s, backoff_base_s,
  dead_letter_retention_s)
VALUES ('q', '{"b":1, "a":[1.0,1e2]}', 5, -7, 1000, 4, 60, 9, 77);
UPDATE test_clock SET now = now + 10;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
SELECT * FROM alkstore_jobs WHERE queue = 'q' AND job_id = 1;
--> 1|q|processing|{"b":1, "a":[1.0,1e2]}|-7|1|4|60|9|77|w|1000000000|1000000005|1000001000|1000000010|1000000070|NULL|NULL|NULL|0

-- [get-job] a lapsed job is processing until somebody claims it
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 301;
SELECT state, worker_id, attempts FROM alkstore_jobs WHERE queue = 'q' AND job_id = 1;
--> processing|w|1

-- [get-job] a dead job
INSERT INTO alkstore_enqueue(queue, payload, delay_s, priority, expires_s, max_attempts, visibility_timeout_s, backoff_base_s,
  dead_letter_retention_s)
VALUES ('q', '{"b":1, "a":[1.0,1e2]}', 5, -7, 1000, 4, 60, 9, 77);
UPDATE test_clock SET now = now + 10;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 61;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'v');
INSERT INTO alkstore_fail(queue, job_id, attempt, error) VALUES ('q', 1, 2, 'boom');
SELECT * FROM alkstore_jobs WHERE queue = 'q' AND job_id = 1;
--> 1|q|dead|{"b":1, "a":[1.0,1e2]}|-7|2|4|60|9|77|v|1000000000|1000000005|1000001000|1000000071|1000000131|NULL|boom|1000000071|0

-- [get-job] no row for an acked, a cancelled, an unknown, a NULL and another queue's job_id
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1'), ('q', '2'), ('q', '3');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('q', 1, 1);
INSERT INTO alkstore_cancel(queue, job_id) VALUES ('q', 2);
WITH ids(i) AS (VALUES (1), (2), (3), (99), (NULL))
SELECT i, (SELECT count(*) FROM alkstore_jobs WHERE queue = 'q' AND job_id = i) FROM ids;
--> 1|0
--> 2|0
--> 3|1
--> 99|0
--> NULL|0
SELECT * FROM alkstore_jobs WHERE queue = 'other' AND job_id = 3;
--> (no rows)

-- [get-job] a name that cannot exist has no jobs, and is not refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
WITH names(name) AS (VALUES (NULL), (''), (hex(zeroblob(128))), ('__alkstore_q'), ('q'))
SELECT substr(name, 1, 3), (SELECT count(*) FROM alkstore_jobs WHERE queue = name AND job_id = 1) FROM names;
--> NULL|0
--> |0
--> 000|0
--> __a|0
--> q|1

-- [get-job] a read writes nothing
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
CREATE TABLE before AS SELECT total_changes() AS changes;
SELECT count(*) FROM alkstore_jobs WHERE queue = 'q' AND job_id = 1;
--> 1
SELECT count(*) FROM alkstore_jobs WHERE queue = 'q' AND job_id = 99;
--> 0
SELECT total_changes() - changes FROM before;
--> 0

-- [no-redrive] there is no call that brings back a dead job
SELECT name FROM sqlite_schema
WHERE name LIKE '%redrive%' OR name LIKE '%revive%' OR name LIKE '%requeue%' OR name LIKE '%replay%'
  OR name LIKE '%resurrect%' OR name LIKE '%restore%';
--> (no rows)

-- [no-redrive] the recipe: a dead job is read and its payload enqueued again, as another job
INSERT INTO alkstore_enqueue(queue, payload, priority) VALUES ('q', '{"b":1, "a":[1.0,1e2]}', 7);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_fail(queue, job_id, attempt, error) VALUES ('q', 1, 1, 'boom');
INSERT INTO alkstore_enqueue(queue, payload, priority)
SELECT queue, payload, priority FROM alkstore_jobs WHERE queue = 'q' AND job_id = 1;
SELECT job_id, state, payload, priority, attempts, last_error FROM alkstore_jobs ORDER BY job_id;
--> 1|dead|{"b":1, "a":[1.0,1e2]}|7|1|boom
--> 2|pending|{"b":1, "a":[1.0,1e2]}|7|0|NULL
