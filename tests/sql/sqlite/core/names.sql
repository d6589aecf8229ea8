-- [name] a queue's name has 1 to 255 bytes
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('', '1');
--! AK001 invalid_name: queue
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('x', '1') RETURNING job_id;
--> 1
INSERT INTO alkstore_enqueue(queue, payload) VALUES (printf('%.255c', 'x'), '1') RETURNING job_id;
--> 2
INSERT INTO alkstore_enqueue(queue, payload) VALUES (printf('%.256c', 'x'), '1');
--! AK001 invalid_name: queue
INSERT INTO alkstore_enqueue(queue, payload) VALUES (NULL, '1');
--! AK001 invalid_name: queue
INSERT INTO alkstore_enqueue(payload) VALUES ('1');
--! AK001 invalid_name: queue

-- [name] the limit counts bytes, not characters
INSERT INTO alkstore_enqueue(queue, payload) VALUES (replace(printf('%.127c', 'x'), 'x', 'é') || 'x', '1') RETURNING job_id;
--> 1
INSERT INTO alkstore_enqueue(queue, payload) VALUES (replace(printf('%.128c', 'x'), 'x', 'é'), '1');
--! AK001 invalid_name: queue
INSERT INTO alkstore_enqueue(queue, payload) VALUES (replace(printf('%.85c', 'x'), 'x', '€'), '1') RETURNING job_id;
--> 2
INSERT INTO alkstore_enqueue(queue, payload) VALUES (replace(printf('%.85c', 'x'), 'x', '€') || 'x', '1');
--! AK001 invalid_name: queue
INSERT INTO alkstore_enqueue(queue, payload) VALUES (replace(printf('%.63c', 'x'), 'x', '😀') || 'xyz', '1') RETURNING job_id;
--> 3
INSERT INTO alkstore_enqueue(queue, payload) VALUES (replace(printf('%.64c', 'x'), 'x', '😀'), '1');
--! AK001 invalid_name: queue

-- [name] a worker's name has 1 to 255 bytes, and may start with anything
INSERT INTO alkstore_enqueue(queue, payload) SELECT 'q', '1' FROM (VALUES (1), (2), (3), (4), (5));
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', '');
--! AK001 invalid_name: worker_id
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', NULL);
--! AK001 invalid_name: worker_id
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', printf('%.256c', 'x'));
--! AK001 invalid_name: worker_id
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', replace(printf('%.128c', 'x'), 'x', 'é'));
--! AK001 invalid_name: worker_id
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'x');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', replace(printf('%.127c', 'x'), 'x', 'é') || 'x');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', '__alkstore_w');
SELECT job_id, substr(worker_id, 1, 12), length(worker_id) FROM alkstore_jobs WHERE worker_id IS NOT NULL ORDER BY job_id;
--> 1|x|1
--> 2|éééééééééééé|128
--> 3|__alkstore_w|12

-- [name] a name is text without NUL
INSERT INTO alkstore_enqueue(queue, payload) VALUES (x'61', '1');
--! AK001 invalid_name: queue
INSERT INTO alkstore_enqueue(queue, payload) VALUES (7, '1');
--! AK001 invalid_name: queue
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('a' || char(0), '1');
--! AK001 invalid_name: queue
INSERT INTO alkstore_enqueue(queue, payload) VALUES (char(0) || 'a', '1');
--! AK001 invalid_name: queue
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', x'61');
--! AK001 invalid_name: worker_id
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 7);
--! AK001 invalid_name: worker_id
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'a' || char(0) || 'b');
--! AK001 invalid_name: worker_id
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('a' || char(0), 1, 1);
--! AK001 invalid_name: queue

-- [name] names that differ in a byte are different queues
CREATE TABLE names (name TEXT PRIMARY KEY);
INSERT INTO names VALUES
  ('A'), ('a'), ('a '), (' a'), ('a/b'), ('ÜX-日本-😀'), (char(0xe9)), ('e' || char(0x301)), ('q"''%I$$;--'), ('%'), ('_'), ('\'),
  (' '), (char(9)), (char(10)), (char(13, 10)), (char(1)), ('NULL'), ('1'), ('01'), ('1.0'), ('__alkstore'), ('__ALKSTORE_x'),
  ('x__alkstore_'), ('__alkstorex_'), (printf('%.62c', 'n')), (printf('%.63c', 'n')), (printf('%.64c', 'n')),
  (printf('%.63c', 'n') || 'm'), (printf('%.254c', 'n')), (printf('%.255c', 'n')), (printf('%.254c', 'n') || 'm');
INSERT INTO alkstore_enqueue(queue, payload) SELECT name, json_quote(name) FROM names;
INSERT INTO alkstore_claim(queue, worker_id, n) SELECT name, name, 2 FROM names;
SELECT count(*), min(payload = json_quote(queue)), min(attempts), max(attempts) FROM alkstore_jobs WHERE worker_id = queue;
--> 32|1|1|1
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q"''%I$$;--', json_quote('ÜX-日本-😀' || char(1, 10)));
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q"''%I$$;--', 'w' || char(1, 9) || '"\é😀');
SELECT job->>'queue' = 'q"''%I$$;--', job->>'worker_id' = 'w' || char(1, 9) || '"\é😀',
  job->>'payload' = json_quote('ÜX-日本-😀' || char(1, 10))
FROM (SELECT value AS job FROM alkstore_claimed_json, json_each(jobs));
--> 1|1|1

-- [name] every call takes any name
CREATE TABLE names (name TEXT PRIMARY KEY);
INSERT INTO names VALUES
  ('A'), ('a'), ('a '), (' a'), ('a/b'), ('ÜX-日本-😀'), (char(0xe9)), ('e' || char(0x301)), ('q"''%I$$;--'), ('%'), ('_'), ('\'),
  (' '), (char(9)), (char(10)), (char(13, 10)), (char(1)), ('NULL'), ('1'), ('01'), ('1.0'), ('__alkstore'), ('__ALKSTORE_x'),
  ('x__alkstore_'), ('__alkstorex_'), (printf('%.62c', 'n')), (printf('%.63c', 'n')), (printf('%.64c', 'n')),
  (printf('%.63c', 'n') || 'm'), (printf('%.254c', 'n')), (printf('%.255c', 'n')), (printf('%.254c', 'n') || 'm');
INSERT INTO alkstore_enqueue(queue, payload, max_attempts) SELECT name, '1', 1 FROM names;
INSERT INTO alkstore_claim(queue, worker_id) SELECT name, 'w' FROM names;
UPDATE test_clock SET now = now + 1;
INSERT INTO alkstore_heartbeat(queue, job_id, attempt) SELECT queue, job_id, 1 FROM alkstore_jobs;
SELECT claim_expires_at, count(*) FROM alkstore_jobs GROUP BY 1;
--> 1000000301|32
INSERT INTO alkstore_release(queue, job_id, attempt) SELECT queue, job_id, 1 FROM alkstore_jobs;
INSERT INTO alkstore_claim(queue, worker_id) SELECT name, 'w' FROM names;
INSERT INTO alkstore_retry(queue, job_id, attempt, error) SELECT queue, job_id, 2, 'e' FROM alkstore_jobs;
SELECT last_error, count(*) FROM alkstore_jobs GROUP BY 1;
--> e|32
INSERT INTO alkstore_enqueue(queue, payload) SELECT name, column1 FROM names, (VALUES ('2'), ('3'));
INSERT INTO alkstore_claim(queue, worker_id, n) SELECT name, 'w', 2 FROM names;
INSERT INTO alkstore_ack(queue, job_id, attempt) SELECT queue, job_id, 1 FROM alkstore_jobs WHERE payload = '2';
INSERT INTO alkstore_fail(queue, job_id, attempt) SELECT queue, job_id, 1 FROM alkstore_jobs WHERE payload = '3';
SELECT last_error, payload, count(*) FROM alkstore_jobs GROUP BY 1, 2;
--> e|1|32
--> failed|3|32
INSERT INTO alkstore_enqueue(queue, payload) SELECT name, '4' FROM names;
SELECT next_due, count(*) FROM alkstore_next_due WHERE queue IN (SELECT name FROM names) GROUP BY 1;
--> 1000000001|32
INSERT INTO alkstore_cancel(queue, job_id) SELECT queue, job_id FROM alkstore_jobs WHERE payload = '4';
INSERT INTO alkstore_enqueue(queue, payload) SELECT name, '5' FROM names;
INSERT INTO alkstore_claim(queue, worker_id) SELECT name, 'w' FROM names;
INSERT INTO alkstore_ack_batch(queue, job_id, attempt) SELECT queue, job_id, 1 FROM alkstore_jobs WHERE payload = '5';
INSERT INTO alkstore_sweep_expired(queue) SELECT name FROM names;
SELECT j.last_error, count(*) FROM names n JOIN alkstore_jobs j ON j.queue = n.name GROUP BY 1;
--> e|32
--> failed|32

-- [name] queues of the reserved prefix are refused by the calls of users
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('__alkstore_x', '1');
--! AK001 invalid_name: queue
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('__alkstore_x', 'w');
--! AK001 invalid_name: queue
INSERT INTO alkstore_cancel(queue, job_id) VALUES ('__alkstore_x', 1);
--! AK001 invalid_name: queue
INSERT INTO alkstore_sweep_expired(queue) VALUES ('__alkstore_x');
--! AK001 invalid_name: queue
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('__alkstore_', '1');
--! AK001 invalid_name: queue

-- [name] the calls on a claim take a reserved queue
INSERT INTO alkstore_enqueue(queue, payload)
VALUES ('q', '"ack"'), ('q', '"ack_batch"'), ('q', '"retry"'), ('q', '"release"'), ('q', '"fail"'), ('q', '"heartbeat"');
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 6);
UPDATE __alkstore_job SET queue = '__alkstore_x';
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('__alkstore_x', 1, 1) RETURNING job_id;
--> 1
INSERT INTO alkstore_ack_batch(queue, job_id, attempt) VALUES ('__alkstore_x', 2, 1) RETURNING job_id;
--> 2
INSERT INTO alkstore_retry(queue, job_id, attempt, error) VALUES ('__alkstore_x', 3, 1, 'e') RETURNING job_id;
--> 3
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('__alkstore_x', 4, 1) RETURNING job_id;
--> 4
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES ('__alkstore_x', 5, 1) RETURNING job_id;
--> 5
INSERT INTO alkstore_heartbeat(queue, job_id, attempt) VALUES ('__alkstore_x', 6, 1) RETURNING job_id;
--> 6

-- [name] reads never refuse
SELECT * FROM alkstore_jobs WHERE queue IN ('', '__alkstore_x', printf('%.256c', 'x')) OR queue IS NULL;
--> (no rows)
SELECT * FROM alkstore_next_due WHERE queue IN ('', '__alkstore_x', printf('%.256c', 'x')) OR queue IS NULL;
--> (no rows)

-- [name] every other call refuses a queue that cannot exist
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('', 'w');
--! AK001 invalid_name: queue
INSERT INTO alkstore_claim(queue, worker_id) VALUES (printf('%.256c', 'x'), 'w');
--! AK001 invalid_name: queue
INSERT INTO alkstore_claim(queue, worker_id) VALUES (NULL, 'w');
--! AK001 invalid_name: queue
INSERT INTO alkstore_cancel(queue, job_id) VALUES ('', 1);
--! AK001 invalid_name: queue
INSERT INTO alkstore_cancel(queue, job_id) VALUES (printf('%.256c', 'x'), 1);
--! AK001 invalid_name: queue
INSERT INTO alkstore_cancel(queue, job_id) VALUES (NULL, 1);
--! AK001 invalid_name: queue
INSERT INTO alkstore_sweep_expired(queue) VALUES ('');
--! AK001 invalid_name: queue
INSERT INTO alkstore_sweep_expired(queue) VALUES (printf('%.256c', 'x'));
--! AK001 invalid_name: queue
INSERT INTO alkstore_sweep_expired(queue) VALUES (NULL);
--! AK001 invalid_name: queue
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('', 1, 1);
--! AK001 invalid_name: queue
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES (printf('%.256c', 'x'), 1, 1);
--! AK001 invalid_name: queue
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES (NULL, 1, 1);
--! AK001 invalid_name: queue
INSERT INTO alkstore_ack_batch(queue, job_id) VALUES ('', 1);
--! AK001 invalid_name: queue
INSERT INTO alkstore_ack_batch(queue, job_id) VALUES (printf('%.256c', 'x'), 1);
--! AK001 invalid_name: queue
INSERT INTO alkstore_ack_batch(queue, job_id) VALUES (NULL, 1);
--! AK001 invalid_name: queue
INSERT INTO alkstore_retry(queue, job_id, attempt, error) VALUES ('', 1, 1, 'e');
--! AK001 invalid_name: queue
INSERT INTO alkstore_retry(queue, job_id, attempt, error) VALUES (printf('%.256c', 'x'), 1, 1, 'e');
--! AK001 invalid_name: queue
INSERT INTO alkstore_retry(queue, job_id, attempt, error) VALUES (NULL, 1, 1, 'e');
--! AK001 invalid_name: queue
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('', 1, 1);
--! AK001 invalid_name: queue
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES (printf('%.256c', 'x'), 1, 1);
--! AK001 invalid_name: queue
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES (NULL, 1, 1);
--! AK001 invalid_name: queue
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES ('', 1, 1);
--! AK001 invalid_name: queue
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES (printf('%.256c', 'x'), 1, 1);
--! AK001 invalid_name: queue
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES (NULL, 1, 1);
--! AK001 invalid_name: queue
INSERT INTO alkstore_heartbeat(queue, job_id, attempt) VALUES ('', 1, 1);
--! AK001 invalid_name: queue
INSERT INTO alkstore_heartbeat(queue, job_id, attempt) VALUES (printf('%.256c', 'x'), 1, 1);
--! AK001 invalid_name: queue
INSERT INTO alkstore_heartbeat(queue, job_id, attempt) VALUES (NULL, 1, 1);
--! AK001 invalid_name: queue

-- [scope] a job of another queue is not found
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1'), ('q', '2');
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 2);
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES ('q', 2, 1);
CREATE TABLE changes (total);
INSERT INTO changes VALUES (total_changes());
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('Q', 1, 1) RETURNING job_id;
--> (no rows)
INSERT INTO alkstore_ack_batch(queue, job_id, attempt) VALUES ('Q', 1, 1), ('Q', 2, 1) RETURNING job_id;
--> (no rows)
INSERT INTO alkstore_ack_batch(queue, job_id) VALUES ('Q', 1), ('Q', 2) RETURNING job_id;
--> (no rows)
INSERT INTO alkstore_retry(queue, job_id, attempt, error) VALUES ('Q', 1, 1, 'e') RETURNING job_id;
--> (no rows)
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('Q', 1, 1) RETURNING job_id;
--> (no rows)
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES ('Q', 1, 1) RETURNING job_id;
--> (no rows)
INSERT INTO alkstore_heartbeat(queue, job_id, attempt) VALUES ('Q', 1, 1) RETURNING job_id;
--> (no rows)
INSERT INTO alkstore_cancel(queue, job_id) VALUES ('Q', 1) RETURNING job_id;
--> (no rows)
SELECT * FROM alkstore_jobs WHERE queue = 'Q';
--> (no rows)
SELECT total_changes() - total FROM changes;
--> 1

-- [scope] a claim hands out its own queue's jobs only
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1'), ('r', '2'), ('q', '3');
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('r', 'w', 9);
SELECT queue, payload FROM alkstore_claimed;
--> r|2

-- [scope] a claim buries its own queue's jobs only
INSERT INTO alkstore_enqueue(queue, payload, max_attempts) VALUES ('q', '1', 1), ('r', '2', 1);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w'), ('r', 'w');
UPDATE test_clock SET now = now + 301;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('r', 'w');
SELECT count(*) FROM alkstore_claimed;
--> 0
SELECT queue, state FROM alkstore_jobs ORDER BY queue;
--> q|processing
--> r|dead

-- [scope] a sweep takes its own queue's jobs only
INSERT INTO alkstore_enqueue(queue, payload, expires_s) VALUES ('q', '1', 1), ('r', '2', 1);
INSERT INTO alkstore_enqueue(queue, payload, dead_letter_retention_s) VALUES ('q', '3', 0), ('r', '4', 0);
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 2), ('r', 'w', 2);
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES ('q', 3, 1), ('r', 4, 1);
UPDATE test_clock SET now = now + 2;
INSERT INTO alkstore_sweep_expired(queue) VALUES ('r');
SELECT expired, pruned FROM alkstore_swept;
--> 1|1
SELECT queue, job_id, state FROM alkstore_jobs ORDER BY job_id;
--> q|1|processing
--> r|2|dead
--> q|3|dead

-- [scope] an id is never used again
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1'), ('q', '2'), ('q', '3');
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 2);
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('q', 1, 1);
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES ('q', 2, 1);
INSERT INTO alkstore_cancel(queue, job_id) VALUES ('q', 3);
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '4') RETURNING job_id;
--> 4

-- [scope] every call takes ids past 2^31
INSERT INTO sqlite_sequence(name, seq) VALUES ('alkstore_enqueue', 3000000000);
INSERT INTO alkstore_enqueue(queue, payload, dead_letter_retention_s)
VALUES ('q', '1', 0), ('q', '2', 0), ('q', '3', 0), ('q', '4', 0), ('q', '5', 0), ('q', '6', 0), ('q', '7', 0) RETURNING job_id;
--> 3000000001
--> 3000000002
--> 3000000003
--> 3000000004
--> 3000000005
--> 3000000006
--> 3000000007
SELECT last_insert_rowid();
--> 3000000007
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 7);
SELECT value->>'job_id' FROM alkstore_claimed_json, json_each(jobs);
--> 3000000001
--> 3000000002
--> 3000000003
--> 3000000004
--> 3000000005
--> 3000000006
--> 3000000007
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('q', 3000000001, 1) RETURNING job_id;
--> 3000000001
INSERT INTO alkstore_retry(queue, job_id, attempt, error) VALUES ('q', 3000000002, 1, 'e') RETURNING job_id;
--> 3000000002
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('q', 3000000003, 1) RETURNING job_id;
--> 3000000003
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES ('q', 3000000004, 1) RETURNING job_id;
--> 3000000004
INSERT INTO alkstore_heartbeat(queue, job_id, attempt) VALUES ('q', 3000000005, 1) RETURNING job_id;
--> 3000000005
INSERT INTO alkstore_cancel(queue, job_id) VALUES ('q', 3000000006) RETURNING job_id;
--> 3000000006
INSERT INTO alkstore_ack_batch(queue, job_id, attempt) VALUES ('q', 3000000005, 1), ('q', 3000000007, 1) RETURNING job_id;
--> 3000000005
--> 3000000007
SELECT job_id, state, last_error FROM alkstore_jobs ORDER BY job_id;
--> 3000000002|pending|NULL
--> 3000000003|pending|NULL
--> 3000000004|dead|failed
