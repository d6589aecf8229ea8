-- The outbox: column outbox in place of queue

-- [outbox] a message is a job of a reserved queue
INSERT INTO alkstore_enqueue(outbox, payload) VALUES ('mail', '{"b":1, "a":[1.0]}') RETURNING job_id;
--> 1
SELECT job_id, queue, payload, state FROM alkstore_jobs;
--> 1|__alkstore_outbox_mail|{"b":1, "a":[1.0]}|pending

-- [outbox] a message has the default stamps
INSERT INTO alkstore_enqueue(outbox, payload) VALUES ('mail', '1');
SELECT visibility_timeout_s, max_attempts, backoff_base_s, dead_letter_retention_s FROM alkstore_jobs;
--> 300|3|5|NULL

-- [outbox] stamps cannot be given with an outbox
INSERT INTO alkstore_enqueue(outbox, payload, visibility_timeout_s) VALUES ('mail', '1', 60);
--! AK003
INSERT INTO alkstore_enqueue(outbox, payload, backoff_base_s) VALUES ('mail', '1', 60);
--! AK003
INSERT INTO alkstore_enqueue(outbox, payload, dead_letter_retention_s) VALUES ('mail', '1', 60);
--! AK003
SELECT count(*) FROM alkstore_jobs;
--> 0

-- [outbox] delay_s, run_at, priority, expires_s and max_attempts are given per message
INSERT INTO alkstore_enqueue(outbox, payload, delay_s, run_at, priority, expires_s, max_attempts)
VALUES ('mail', '1', 7, NULL, -2, 60, 9), ('mail', '2', NULL, 1000000050, NULL, NULL, NULL);
SELECT run_at, priority, expires_at, max_attempts FROM alkstore_jobs ORDER BY job_id;
--> 1000000007|-2|1000000060|9
--> 1000000050|0|NULL|3

-- [outbox] outboxes and queues of one name share no job
INSERT INTO alkstore_enqueue(outbox, payload) VALUES ('mail', '1'), ('post', '2');
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('mail', '3');
INSERT INTO alkstore_claim(outbox, worker_id, n) VALUES ('mail', 'w', 9);
SELECT job_id, queue, attempt, worker_id FROM alkstore_claimed;
--> 1|__alkstore_outbox_mail|1|w
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('mail', 'w', 9);
SELECT job_id, queue FROM alkstore_claimed;
--> 3|mail

-- [outbox] a claim is settled by the queue's calls, with the queue that the claim returned
INSERT INTO alkstore_enqueue(outbox, payload) VALUES ('mail', '1'), ('mail', '2'), ('mail', '3'), ('mail', '4'), ('mail', '5');
INSERT INTO alkstore_claim(outbox, worker_id, n) VALUES ('mail', 'w', 5);
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('__alkstore_outbox_mail', 1, 1) RETURNING job_id;
--> 1
INSERT INTO alkstore_retry(queue, job_id, attempt, error, delay_s) VALUES ('__alkstore_outbox_mail', 2, 1, 'later', 30) RETURNING job_id;
--> 2
INSERT INTO alkstore_fail(queue, job_id, attempt, error) VALUES ('__alkstore_outbox_mail', 3, 1, 'never') RETURNING job_id;
--> 3
INSERT INTO alkstore_heartbeat(queue, job_id, attempt, extend_s) VALUES ('__alkstore_outbox_mail', 4, 1, 500) RETURNING job_id;
--> 4
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('__alkstore_outbox_mail', 5, 1) RETURNING job_id;
--> 5
SELECT job_id, state, retry_error, last_error, claim_expires_at, released FROM alkstore_jobs ORDER BY job_id;
--> 2|pending|later|NULL|NULL|0
--> 3|dead|NULL|never|1000000300|0
--> 4|processing|NULL|NULL|1000000500|0
--> 5|pending|NULL|NULL|NULL|1

-- [outbox] a dead message can be read, by its own outbox only
INSERT INTO alkstore_enqueue(outbox, payload) VALUES ('mail', '1');
INSERT INTO alkstore_claim(outbox, worker_id) VALUES ('mail', 'w');
INSERT INTO alkstore_fail(queue, job_id, attempt, error) VALUES ('__alkstore_outbox_mail', 1, 1, 'never');
SELECT job_id, state, last_error FROM alkstore_jobs WHERE queue = '__alkstore_outbox_mail' AND job_id = 1;
--> 1|dead|never
SELECT job_id FROM alkstore_jobs WHERE queue = '__alkstore_outbox_post' AND job_id = 1;
--> (no rows)

-- [outbox] the queue behind an outbox is refused by enqueue, claim, cancel and sweep_expired
INSERT INTO alkstore_enqueue(outbox, payload) VALUES ('mail', '1');
CREATE TABLE before AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('__alkstore_outbox_mail', '1');
--! AK001
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('__alkstore_outbox_mail', 'w');
--! AK001
INSERT INTO alkstore_cancel(queue, job_id) VALUES ('__alkstore_outbox_mail', 1);
--! AK001
INSERT INTO alkstore_sweep_expired(queue) VALUES ('__alkstore_outbox_mail');
--! AK001
SELECT * FROM __alkstore_job EXCEPT SELECT * FROM before;
--> (no rows)

-- [outbox] a live message can be cancelled, once, by its own outbox; a dead one stays
INSERT INTO alkstore_enqueue(outbox, payload) VALUES ('mail', '1'), ('mail', '2');
INSERT INTO alkstore_claim(outbox, worker_id) VALUES ('mail', 'w');
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES ('__alkstore_outbox_mail', 1, 1);
INSERT INTO alkstore_cancel(outbox, job_id) VALUES ('post', 2) RETURNING job_id;
--> (no rows)
INSERT INTO alkstore_cancel(outbox, job_id) VALUES ('mail', 2) RETURNING job_id;
--> 2
INSERT INTO alkstore_cancel(outbox, job_id) VALUES ('mail', 2), ('mail', 1) RETURNING job_id;
--> (no rows)
SELECT job_id, state FROM alkstore_jobs;
--> 1|dead

-- [outbox] a sweep buries what is past its expiry, of its own outbox
INSERT INTO alkstore_enqueue(outbox, payload, expires_s) VALUES ('mail', '1', 5), ('post', '2', 5);
UPDATE test_clock SET now = now + 6;
INSERT INTO alkstore_sweep_expired(outbox) VALUES ('mail');
SELECT * FROM alkstore_swept;
--> 1|0
SELECT job_id, state, last_error FROM alkstore_jobs ORDER BY job_id;
--> 1|dead|expired
--> 2|pending|NULL

-- [outbox] queue and outbox together are refused
INSERT INTO alkstore_enqueue(queue, outbox, payload) VALUES ('q', 'mail', '1');
--! AK003
INSERT INTO alkstore_claim(queue, outbox, worker_id) VALUES ('q', 'mail', 'w');
--! AK003
INSERT INTO alkstore_cancel(queue, outbox, job_id) VALUES ('q', 'mail', 1);
--! AK003
INSERT INTO alkstore_sweep_expired(queue, outbox) VALUES ('q', 'mail');
--! AK003
SELECT count(*) FROM alkstore_jobs;
--> 0

-- [name] an outbox has at most 237 bytes
INSERT INTO alkstore_enqueue(outbox, payload) VALUES (printf('%.237c', 'x'), '1') RETURNING job_id;
--> 1
INSERT INTO alkstore_enqueue(outbox, payload) VALUES (printf('%.238c', 'x'), '1');
--! AK001
INSERT INTO alkstore_enqueue(outbox, payload) VALUES (replace(printf('%.118c', 'x'), 'x', 'é') || 'x', '1') RETURNING job_id;
--> 2
INSERT INTO alkstore_enqueue(outbox, payload) VALUES (replace(printf('%.119c', 'x'), 'x', 'é'), '1');
--! AK001

-- [name] every outbox call refuses an empty and a reserved outbox
INSERT INTO alkstore_enqueue(outbox, payload) VALUES ('', '1');
--! AK001
INSERT INTO alkstore_enqueue(outbox, payload) VALUES ('__alkstore_x', '1');
--! AK001
INSERT INTO alkstore_claim(outbox, worker_id) VALUES ('', 'w');
--! AK001
INSERT INTO alkstore_claim(outbox, worker_id) VALUES ('__alkstore_x', 'w');
--! AK001
INSERT INTO alkstore_cancel(outbox, job_id) VALUES ('', 1);
--! AK001
INSERT INTO alkstore_cancel(outbox, job_id) VALUES ('__alkstore_x', 1);
--! AK001
INSERT INTO alkstore_sweep_expired(outbox) VALUES ('');
--! AK001
INSERT INTO alkstore_sweep_expired(outbox) VALUES ('__alkstore_x');
--! AK001

-- [refusals] a wrong outbox is refused also where there is no such message
INSERT INTO alkstore_cancel(outbox, job_id) VALUES ('', 99);
--! AK001
INSERT INTO alkstore_cancel(outbox, job_id) VALUES ('mail', 99) RETURNING job_id;
--> (no rows)

-- [refusals] outbox: a wrong payload, option and worker are told apart
INSERT INTO alkstore_enqueue(outbox, payload) VALUES ('mail', 'no json');
--! AK002
INSERT INTO alkstore_enqueue(outbox, payload, delay_s) VALUES ('mail', '1', -1);
--! AK003
INSERT INTO alkstore_claim(outbox, worker_id) VALUES ('mail', '');
--! AK001
SELECT count(*) FROM alkstore_jobs;
--> 0

-- [idle] an outbox with nothing ready gives no rows and writes nothing
INSERT INTO alkstore_claim(outbox, worker_id) VALUES ('empty', 'w') RETURNING (SELECT jobs FROM alkstore_claimed_json);
--> []
SELECT count(*) FROM alkstore_jobs;
--> 0
