-- alkstore_cancel

-- [cancel] a pending and a processing job are deleted, and no other
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1'), ('q', '2'), ('q', '3');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_cancel(queue, job_id) VALUES ('q', 2) RETURNING job_id;
--> 2
INSERT INTO alkstore_cancel(queue, job_id) VALUES ('q', 1) RETURNING job_id;
--> 1
SELECT job_id, state FROM alkstore_jobs;
--> 3|pending

-- [cancel] so are a delayed, an expired and a lapsed job
INSERT INTO alkstore_enqueue(queue, payload, delay_s, expires_s, priority)
VALUES ('q', '1', 100, NULL, 0), ('q', '2', NULL, 10, 0), ('q', '3', NULL, NULL, 1);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 301;
INSERT INTO alkstore_cancel(queue, job_id) VALUES ('q', 1), ('q', 2), ('q', 3) RETURNING job_id;
--> 1
--> 2
--> 3
SELECT count(*) FROM alkstore_jobs;
--> 0

-- [cancel] a dead job stays
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES ('q', 1, 1);
CREATE TABLE before AS SELECT * FROM __alkstore_dead_job;
INSERT INTO alkstore_cancel(queue, job_id) VALUES ('q', 1) RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_dead_job;
--> (no rows)

-- [cancel] another queue's, a cancelled, an unknown and a NULL job_id are refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1'), ('q', '2');
INSERT INTO alkstore_cancel(queue, job_id) VALUES ('q', 2);
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_cancel(queue, job_id) VALUES ('other', 1), ('q', 2), ('q', 99), ('q', NULL) RETURNING job_id;
--> (no rows)
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [cancel] the id of a cancelled job is not used again
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1'), ('q', '2');
INSERT INTO alkstore_cancel(queue, job_id) VALUES ('q', 2);
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '3') RETURNING job_id;
--> 3

-- [name] cancel: a reserved queue is refused
INSERT INTO alkstore_cancel(queue, job_id) VALUES ('__alkstore_q', 1);
--! AK001

-- [refusals] cancel: a queue name that cannot exist is AK001
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_cancel(queue, job_id) VALUES (NULL, 1);
--! AK001
INSERT INTO alkstore_cancel(queue, job_id) VALUES ('', 1);
--! AK001
INSERT INTO alkstore_cancel(queue, job_id) VALUES (replace(hex(zeroblob(128)), '00', 'é'), 1);
--! AK001
INSERT INTO alkstore_cancel(queue, job_id) VALUES (replace(hex(zeroblob(127)), '00', 'é') || 'e', 1) RETURNING job_id;
--> (no rows)
INSERT INTO alkstore_cancel(queue, job_id) VALUES ('q' || char(0), 1);
--! AK001
INSERT INTO alkstore_cancel(queue, job_id) VALUES (x'71', 1);
--! AK001
SELECT * FROM before EXCEPT SELECT * FROM __alkstore_job;
--> (no rows)

-- [idle] a refused cancel writes nothing
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
CREATE TABLE before AS SELECT total_changes() AS changes;
INSERT INTO alkstore_cancel(queue, job_id) VALUES ('q', 99);
SELECT total_changes() - changes FROM before;
--> 0
