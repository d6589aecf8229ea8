-- [payload] a long one comes back as it went in, whatever becomes of its job
CREATE TABLE sent(id INTEGER PRIMARY KEY, payload);
INSERT INTO sent(payload) VALUES
  ('"' || substr(hex(zeroblob(1000)), 1, 1998) || '"'), ('"' || substr(hex(zeroblob(1000)), 1, 1999) || '"'),
  ('"' || replace(hex(zeroblob(50000)), '00', '{é\u0000') || '"');
INSERT INTO alkstore_enqueue(queue, payload) SELECT 'q', payload FROM sent ORDER BY id;
SELECT j.job_id, length(s.payload), j.payload = s.payload FROM alkstore_jobs j JOIN sent s ON id = job_id ORDER BY job_id;
--> 1|2000|1
--> 2|2001|1
--> 3|400002|1
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 3);
SELECT c.job_id, c.payload = s.payload FROM alkstore_claimed c JOIN sent s ON id = job_id ORDER BY job_id;
--> 1|1
--> 2|1
--> 3|1
INSERT INTO alkstore_retry(queue, job_id, attempt, delay_s) SELECT 'q', job_id, 1, 0 FROM alkstore_claimed;
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 3)
RETURNING (SELECT group_concat(j.value ->> 'payload' = s.payload)
  FROM alkstore_claimed_json, json_each(jobs) j JOIN sent s ON s.id = j.value ->> 'job_id');
--> 1,1,1
INSERT INTO alkstore_fail(queue, job_id, attempt) SELECT 'q', job_id, 2 FROM alkstore_claimed;
SELECT d.job_id, d.payload = s.payload FROM alkstore_dead_jobs d JOIN sent s ON id = job_id ORDER BY job_id;
--> 1|1
--> 2|1
--> 3|1

-- [payload] nothing is left of a long one when its job is acked, cancelled or pruned
INSERT INTO alkstore_enqueue(queue, payload, dead_letter_retention_s)
SELECT 'q', '"' || hex(zeroblob(5000)) || '"', 10 FROM (VALUES (1), (2), (3), (4), (5));
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 3);
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('q', 1, 1);
INSERT INTO alkstore_ack_batch(queue, job_id) VALUES ('q', 2);
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES ('q', 3, 1);
INSERT INTO alkstore_cancel(queue, job_id) VALUES ('q', 4);
UPDATE test_clock SET now = now + 11;
INSERT INTO alkstore_sweep_expired(queue) VALUES ('q');
SELECT id FROM __alkstore_payload;
--> 5
SELECT job_id, length(payload) FROM alkstore_jobs;
--> 5|10002
