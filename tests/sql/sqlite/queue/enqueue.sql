-- [payload] JSON is kept byte for byte
CREATE TABLE payloads (id INTEGER PRIMARY KEY, payload TEXT);
INSERT INTO payloads(payload) VALUES
  ('{"b":1, "a":[1.0,1e2]}'), ('{"a":1,"a":2}'), ('1180591620717411303424'), ('9007199254740993'), ('1e400'), ('-0'), ('"\u0000"'),
  ('"\ud800"'), ('"\u00e9é😀"'), ('"a\/b"'), ('null'), ('true'), ('""'), ('[]'), ('{}'),
  (char(32, 9, 13, 10) || '[ 1 ,2 ]' || char(10)), ('"' || char(127) || '"'), ('"' || printf('%.1048576c', 'x') || '"');
INSERT INTO alkstore_enqueue(queue, payload) SELECT 'q', payload FROM payloads ORDER BY id;
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 99);
SELECT count(*), sum(c.payload = p.payload), group_concat(DISTINCT typeof(c.payload))
FROM alkstore_claimed c JOIN payloads p ON p.id = c.job_id;
--> 18|18|text
SELECT count(*), sum(value->>'payload' = p.payload) FROM alkstore_claimed_json, json_each(jobs) JOIN payloads p ON p.id = value->>'job_id';
--> 18|18

-- [payload] what is not JSON is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '');
--! AK002 invalid_payload
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', ' ');
--! AK002 invalid_payload
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', 'nul');
--! AK002 invalid_payload
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', 'TRUE');
--! AK002 invalid_payload
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '''a''');
--! AK002 invalid_payload
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', 'NaN');
--! AK002 invalid_payload
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '-Infinity');
--! AK002 invalid_payload
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '01');
--! AK002 invalid_payload
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '+1');
--! AK002 invalid_payload
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1.');
--! AK002 invalid_payload
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '.5');
--! AK002 invalid_payload
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '0x1');
--! AK002 invalid_payload
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1e');
--! AK002 invalid_payload
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '[1,]');
--! AK002 invalid_payload
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '[1 2]');
--! AK002 invalid_payload
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '{"a":1,}');
--! AK002 invalid_payload
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '{a:1}');
--! AK002 invalid_payload
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '{1:2}');
--! AK002 invalid_payload
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '"a');
--! AK002 invalid_payload
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', 'a"');
--! AK002 invalid_payload
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '"' || char(9) || '"');
--! AK002 invalid_payload
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '"' || char(1) || '"');
--! AK002 invalid_payload
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '"\x"');
--! AK002 invalid_payload
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '"\u12"');
--! AK002 invalid_payload
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1 2');
--! AK002 invalid_payload
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '[1');
--! AK002 invalid_payload
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '// c');
--! AK002 invalid_payload
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', char(0xfeff) || '1');
--! AK002 invalid_payload
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', char(0xa0) || '1');
--! AK002 invalid_payload
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', char(12) || '1');
--! AK002 invalid_payload

-- [payload] NULL is refused, the JSON value null is not
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', NULL);
--! AK002 invalid_payload
INSERT INTO alkstore_enqueue(queue) VALUES ('q');
--! AK002 invalid_payload
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', 'null') RETURNING job_id;
--> 1
SELECT payload FROM alkstore_jobs;
--> null

-- [payload] a blob is refused, whatever is in it
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', x'31');
--! AK002 invalid_payload
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', CAST('{}' AS BLOB));
--! AK002 invalid_payload

-- [payload] text with a NUL byte is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1' || char(0));
--! AK002 invalid_payload
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '{}' || char(0) || 'x');
--! AK002 invalid_payload
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '"a' || char(0) || 'b"');
--! AK002 invalid_payload

-- [payload] bytes in a string that are not UTF-8 come back as they went in
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '"' || CAST(x'80feff' AS TEXT) || '"');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
SELECT hex(payload) FROM alkstore_claimed;
--> 2280FEFF22

-- [payload] 1000 levels are kept
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', printf('%.1000c', '[') || printf('%.1000c', ']'));
INSERT INTO alkstore_enqueue(queue, payload)
VALUES ('q', replace(printf('%.1000c', '{'), '{', '{"a":') || '1' || printf('%.1000c', '}'));
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 2);
SELECT substr(payload, 1, 6), length(payload) FROM alkstore_claimed;
--> [[[[[[|2000
--> {"a":{|6001

-- [payload] what is too deep to read is refused
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', printf('%.1000000c', '['));
--! AK002 invalid_payload
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', printf('%.100000c', '[') || printf('%.100000c', ']'));
--! AK002 invalid_payload

-- [payload] a number is taken as its text
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', 7), ('q', 1.5);
SELECT payload, typeof(payload) FROM alkstore_jobs ORDER BY job_id;
--> 7|text
--> 1.5|text
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', 1e400);
--! AK002 invalid_payload

-- [options] the defaults
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '"a"');
SELECT * FROM alkstore_jobs;
--> 1|q|pending|"a"|0|0|3|300|5|NULL|NULL|1000000000|1000000000|NULL|NULL|NULL|NULL|NULL|NULL|0

-- [options] NULL means the default
INSERT INTO alkstore_enqueue(job_id, queue, payload, delay_s, run_at, priority, expires_s, max_attempts, visibility_timeout_s,
  backoff_base_s, dead_letter_retention_s)
VALUES (NULL, 'q', '"a"', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
SELECT * FROM alkstore_jobs;
--> 1|q|pending|"a"|0|0|3|300|5|NULL|NULL|1000000000|1000000000|NULL|NULL|NULL|NULL|NULL|NULL|0

-- [options] delay_s is 0 to 2147483647
INSERT INTO alkstore_enqueue(queue, payload, delay_s) VALUES ('q', '1', -1);
--! AK003 invalid_option: delay_s
INSERT INTO alkstore_enqueue(queue, payload, delay_s) VALUES ('q', '1', 2147483648);
--! AK003 invalid_option: delay_s
INSERT INTO alkstore_enqueue(queue, payload, delay_s) VALUES ('q', '1', -9223372036854775808);
--! AK003 invalid_option: delay_s
INSERT INTO alkstore_enqueue(queue, payload, delay_s) VALUES ('q', '1', 0), ('q', '1', 2147483647);
SELECT run_at FROM alkstore_jobs ORDER BY job_id;
--> 1000000000
--> 3147483647

-- [options] priority is -2147483648 to 2147483647
INSERT INTO alkstore_enqueue(queue, payload, priority) VALUES ('q', '1', -2147483649);
--! AK003 invalid_option: priority
INSERT INTO alkstore_enqueue(queue, payload, priority) VALUES ('q', '1', 2147483648);
--! AK003 invalid_option: priority
INSERT INTO alkstore_enqueue(queue, payload, priority) VALUES ('q', '1', -2147483648), ('q', '1', 2147483647);
SELECT priority FROM alkstore_jobs ORDER BY job_id;
--> -2147483648
--> 2147483647

-- [options] expires_s is 1 to 2147483647
INSERT INTO alkstore_enqueue(queue, payload, expires_s) VALUES ('q', '1', -1);
--! AK003 invalid_option: expires_s
INSERT INTO alkstore_enqueue(queue, payload, expires_s) VALUES ('q', '1', 0);
--! AK003 invalid_option: expires_s
INSERT INTO alkstore_enqueue(queue, payload, expires_s) VALUES ('q', '1', 2147483648);
--! AK003 invalid_option: expires_s
INSERT INTO alkstore_enqueue(queue, payload, expires_s) VALUES ('q', '1', 1), ('q', '1', 2147483647);
SELECT expires_at FROM alkstore_jobs ORDER BY job_id;
--> 1000000001
--> 3147483647

-- [options] max_attempts is 1 to 2147483647
INSERT INTO alkstore_enqueue(queue, payload, max_attempts) VALUES ('q', '1', -1);
--! AK003 invalid_option: max_attempts
INSERT INTO alkstore_enqueue(queue, payload, max_attempts) VALUES ('q', '1', 0);
--! AK003 invalid_option: max_attempts
INSERT INTO alkstore_enqueue(queue, payload, max_attempts) VALUES ('q', '1', 2147483648);
--! AK003 invalid_option: max_attempts
INSERT INTO alkstore_enqueue(queue, payload, max_attempts) VALUES ('q', '1', 1), ('q', '1', 32767), ('q', '1', 32768), ('q', '1', 2147483647);
SELECT max_attempts FROM alkstore_jobs ORDER BY job_id;
--> 1
--> 32767
--> 32768
--> 2147483647

-- [options] visibility_timeout_s is 1 to 2147483647
INSERT INTO alkstore_enqueue(queue, payload, visibility_timeout_s) VALUES ('q', '1', -1);
--! AK003 invalid_option: visibility_timeout_s
INSERT INTO alkstore_enqueue(queue, payload, visibility_timeout_s) VALUES ('q', '1', 0);
--! AK003 invalid_option: visibility_timeout_s
INSERT INTO alkstore_enqueue(queue, payload, visibility_timeout_s) VALUES ('q', '1', 2147483648);
--! AK003 invalid_option: visibility_timeout_s
INSERT INTO alkstore_enqueue(queue, payload, visibility_timeout_s) VALUES ('q', '1', 1), ('q', '1', 2147483647);
SELECT visibility_timeout_s FROM alkstore_jobs ORDER BY job_id;
--> 1
--> 2147483647

-- [options] backoff_base_s is 0 to 2147483647
INSERT INTO alkstore_enqueue(queue, payload, backoff_base_s) VALUES ('q', '1', -1);
--! AK003 invalid_option: backoff_base_s
INSERT INTO alkstore_enqueue(queue, payload, backoff_base_s) VALUES ('q', '1', 2147483648);
--! AK003 invalid_option: backoff_base_s
INSERT INTO alkstore_enqueue(queue, payload, backoff_base_s) VALUES ('q', '1', 0), ('q', '1', 2147483647);
SELECT backoff_base_s FROM alkstore_jobs ORDER BY job_id;
--> 0
--> 2147483647

-- [options] dead_letter_retention_s is 0 to 2147483647
INSERT INTO alkstore_enqueue(queue, payload, dead_letter_retention_s) VALUES ('q', '1', -1);
--! AK003 invalid_option: dead_letter_retention_s
INSERT INTO alkstore_enqueue(queue, payload, dead_letter_retention_s) VALUES ('q', '1', 2147483648);
--! AK003 invalid_option: dead_letter_retention_s
INSERT INTO alkstore_enqueue(queue, payload, dead_letter_retention_s) VALUES ('q', '1', 0), ('q', '1', 2147483647);
SELECT dead_letter_retention_s FROM alkstore_jobs ORDER BY job_id;
--> 0
--> 2147483647

-- [options] run_at lies in the years 1 to 9999
INSERT INTO alkstore_enqueue(queue, payload, run_at) VALUES ('q', '1', -62135596801);
--! AK003 invalid_option: run_at
INSERT INTO alkstore_enqueue(queue, payload, run_at) VALUES ('q', '1', 253402300800);
--! AK003 invalid_option: run_at
INSERT INTO alkstore_enqueue(queue, payload, run_at) VALUES ('q', '1', 9223372036854775807);
--! AK003 invalid_option: run_at
INSERT INTO alkstore_enqueue(queue, payload, run_at) VALUES ('q', '1', -62135596800), ('q', '1', 253402300799);
SELECT run_at FROM alkstore_jobs ORDER BY job_id;
--> -62135596800
--> 253402300799

-- [options] what is no whole number is refused
INSERT INTO alkstore_enqueue(queue, payload, delay_s) VALUES ('q', '1', 1.5);
--! AK003 invalid_option: delay_s
INSERT INTO alkstore_enqueue(queue, payload, delay_s) VALUES ('q', '1', 1.0);
--! AK003 invalid_option: delay_s
INSERT INTO alkstore_enqueue(queue, payload, delay_s) VALUES ('q', '1', '60');
--! AK003 invalid_option: delay_s
INSERT INTO alkstore_enqueue(queue, payload, delay_s) VALUES ('q', '1', x'3630');
--! AK003 invalid_option: delay_s
INSERT INTO alkstore_enqueue(queue, payload, delay_s) VALUES ('q', '1', 9223372036854775808);
--! AK003 invalid_option: delay_s
INSERT INTO alkstore_enqueue(queue, payload, run_at) VALUES ('q', '1', 1.5);
--! AK003 invalid_option: run_at
INSERT INTO alkstore_enqueue(queue, payload, run_at) VALUES ('q', '1', 1.0);
--! AK003 invalid_option: run_at
INSERT INTO alkstore_enqueue(queue, payload, run_at) VALUES ('q', '1', '60');
--! AK003 invalid_option: run_at
INSERT INTO alkstore_enqueue(queue, payload, run_at) VALUES ('q', '1', x'3630');
--! AK003 invalid_option: run_at
INSERT INTO alkstore_enqueue(queue, payload, run_at) VALUES ('q', '1', 9223372036854775808);
--! AK003 invalid_option: run_at
INSERT INTO alkstore_enqueue(queue, payload, priority) VALUES ('q', '1', 1.5);
--! AK003 invalid_option: priority
INSERT INTO alkstore_enqueue(queue, payload, priority) VALUES ('q', '1', 1.0);
--! AK003 invalid_option: priority
INSERT INTO alkstore_enqueue(queue, payload, priority) VALUES ('q', '1', '60');
--! AK003 invalid_option: priority
INSERT INTO alkstore_enqueue(queue, payload, priority) VALUES ('q', '1', x'3630');
--! AK003 invalid_option: priority
INSERT INTO alkstore_enqueue(queue, payload, priority) VALUES ('q', '1', 9223372036854775808);
--! AK003 invalid_option: priority
INSERT INTO alkstore_enqueue(queue, payload, expires_s) VALUES ('q', '1', 1.5);
--! AK003 invalid_option: expires_s
INSERT INTO alkstore_enqueue(queue, payload, expires_s) VALUES ('q', '1', 1.0);
--! AK003 invalid_option: expires_s
INSERT INTO alkstore_enqueue(queue, payload, expires_s) VALUES ('q', '1', '60');
--! AK003 invalid_option: expires_s
INSERT INTO alkstore_enqueue(queue, payload, expires_s) VALUES ('q', '1', x'3630');
--! AK003 invalid_option: expires_s
INSERT INTO alkstore_enqueue(queue, payload, expires_s) VALUES ('q', '1', 9223372036854775808);
--! AK003 invalid_option: expires_s
INSERT INTO alkstore_enqueue(queue, payload, max_attempts) VALUES ('q', '1', 1.5);
--! AK003 invalid_option: max_attempts
INSERT INTO alkstore_enqueue(queue, payload, max_attempts) VALUES ('q', '1', 1.0);
--! AK003 invalid_option: max_attempts
INSERT INTO alkstore_enqueue(queue, payload, max_attempts) VALUES ('q', '1', '60');
--! AK003 invalid_option: max_attempts
INSERT INTO alkstore_enqueue(queue, payload, max_attempts) VALUES ('q', '1', x'3630');
--! AK003 invalid_option: max_attempts
INSERT INTO alkstore_enqueue(queue, payload, max_attempts) VALUES ('q', '1', 9223372036854775808);
--! AK003 invalid_option: max_attempts
INSERT INTO alkstore_enqueue(queue, payload, visibility_timeout_s) VALUES ('q', '1', 1.5);
--! AK003 invalid_option: visibility_timeout_s
INSERT INTO alkstore_enqueue(queue, payload, visibility_timeout_s) VALUES ('q', '1', 1.0);
--! AK003 invalid_option: visibility_timeout_s
INSERT INTO alkstore_enqueue(queue, payload, visibility_timeout_s) VALUES ('q', '1', '60');
--! AK003 invalid_option: visibility_timeout_s
INSERT INTO alkstore_enqueue(queue, payload, visibility_timeout_s) VALUES ('q', '1', x'3630');
--! AK003 invalid_option: visibility_timeout_s
INSERT INTO alkstore_enqueue(queue, payload, visibility_timeout_s) VALUES ('q', '1', 9223372036854775808);
--! AK003 invalid_option: visibility_timeout_s
INSERT INTO alkstore_enqueue(queue, payload, backoff_base_s) VALUES ('q', '1', 1.5);
--! AK003 invalid_option: backoff_base_s
INSERT INTO alkstore_enqueue(queue, payload, backoff_base_s) VALUES ('q', '1', 1.0);
--! AK003 invalid_option: backoff_base_s
INSERT INTO alkstore_enqueue(queue, payload, backoff_base_s) VALUES ('q', '1', '60');
--! AK003 invalid_option: backoff_base_s
INSERT INTO alkstore_enqueue(queue, payload, backoff_base_s) VALUES ('q', '1', x'3630');
--! AK003 invalid_option: backoff_base_s
INSERT INTO alkstore_enqueue(queue, payload, backoff_base_s) VALUES ('q', '1', 9223372036854775808);
--! AK003 invalid_option: backoff_base_s
INSERT INTO alkstore_enqueue(queue, payload, dead_letter_retention_s) VALUES ('q', '1', 1.5);
--! AK003 invalid_option: dead_letter_retention_s
INSERT INTO alkstore_enqueue(queue, payload, dead_letter_retention_s) VALUES ('q', '1', 1.0);
--! AK003 invalid_option: dead_letter_retention_s
INSERT INTO alkstore_enqueue(queue, payload, dead_letter_retention_s) VALUES ('q', '1', '60');
--! AK003 invalid_option: dead_letter_retention_s
INSERT INTO alkstore_enqueue(queue, payload, dead_letter_retention_s) VALUES ('q', '1', x'3630');
--! AK003 invalid_option: dead_letter_retention_s
INSERT INTO alkstore_enqueue(queue, payload, dead_letter_retention_s) VALUES ('q', '1', 9223372036854775808);
--! AK003 invalid_option: dead_letter_retention_s
SELECT * FROM alkstore_jobs;
--> (no rows)

-- [options] delay_s wins over run_at
INSERT INTO alkstore_enqueue(queue, payload, delay_s, run_at)
VALUES ('q', '1', 60, 2000000000), ('q', '2', 0, 2000000000), ('q', '3', NULL, 2000000000);
SELECT payload, run_at FROM alkstore_jobs ORDER BY job_id;
--> 1|1000000060
--> 2|1000000000
--> 3|2000000000

-- [options] expires_s counts from now, not from run_at
INSERT INTO alkstore_enqueue(queue, payload, delay_s, expires_s) VALUES ('q', '1', 60, 10);
SELECT run_at, expires_at FROM alkstore_jobs;
--> 1000000060|1000000010

-- [options] a run_at in the past is kept and makes the job ready at once
INSERT INTO alkstore_enqueue(queue, payload, run_at) VALUES ('q', '1', 999999999), ('q', '2', -62135596800);
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 2);
SELECT payload, run_at FROM alkstore_claimed;
--> 2|-62135596800
--> 1|999999999

-- [options] a job's id is the queue's to choose
INSERT INTO alkstore_enqueue(job_id, queue, payload) VALUES (7, 'q', '1');
--! AK003 invalid_option: job_id
INSERT INTO alkstore_enqueue(job_id, queue, payload) VALUES (0, 'q', '1');
--! AK003 invalid_option: job_id
INSERT INTO alkstore_enqueue(job_id, queue, payload) VALUES (-1, 'q', '1');
--! AK003 invalid_option: job_id
INSERT INTO alkstore_enqueue(job_id, queue, payload) VALUES (-2, 'q', '1');
--! AK003 invalid_option: job_id
INSERT INTO alkstore_enqueue(job_id, queue, payload) VALUES (9223372036854775807, 'q', '1');
--! AK003 invalid_option: job_id
INSERT INTO alkstore_enqueue(rowid, queue, payload) VALUES (9223372036854775807, 'q', '1');
--! AK003 invalid_option: job_id
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1') RETURNING job_id;
--> 1

-- [stamps] each job keeps the options that it was enqueued with
INSERT INTO alkstore_enqueue(queue, payload, max_attempts, visibility_timeout_s, backoff_base_s, dead_letter_retention_s)
VALUES ('q', '1', 1, 2, 3, 4), ('q', '2', 5, 60, 7, 8);
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 2);
SELECT payload, max_attempts, visibility_timeout_s, backoff_base_s, dead_letter_retention_s, claim_expires_at
FROM alkstore_jobs ORDER BY job_id;
--> 1|1|2|3|4|1000000002
--> 2|5|60|7|8|1000000060

-- [stamps] instants are resolved at enqueue, with one clock read
INSERT INTO alkstore_enqueue(queue, payload, delay_s, expires_s) VALUES ('q', '1', 7, 11);
UPDATE test_clock SET now = now + 8;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
SELECT created_at, run_at, expires_at FROM alkstore_jobs;
--> 1000000000|1000000007|1000000011

-- [refusals] a refused call changes nothing
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
CREATE TABLE before_calls AS SELECT * FROM __alkstore_job;
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('', '1');
--! AK001
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('__alkstore_x', '1');
--! AK001
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', 'x');
--! AK002
INSERT INTO alkstore_enqueue(queue, payload, priority) VALUES ('q', '1', 2147483648);
--! AK003
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1'), ('q', '[1,2');
--! AK002
INSERT INTO alkstore_enqueue(queue, payload, delay_s) VALUES ('q', '1', 0), ('q', '2', -1);
--! AK003
INSERT INTO alkstore_enqueue(job_id, queue, payload) VALUES (NULL, 'q', '1'), (-1, 'q', '1');
--! AK003
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('', 'w');
--! AK001
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', '');
--! AK001
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 'x');
--! AK003
SELECT * FROM __alkstore_job EXCEPT SELECT * FROM before_calls;
--> (no rows)
SELECT count(*) FROM __alkstore_job;
--> 1

-- [refusals] the caller's conflict clause changes nothing about a refusal
INSERT OR IGNORE INTO alkstore_enqueue(queue, payload) VALUES ('q', '1'), ('q', 'x');
--! AK002
INSERT OR REPLACE INTO alkstore_enqueue(queue, payload) VALUES ('q', '1'), ('', '1');
--! AK001
INSERT OR FAIL INTO alkstore_enqueue(queue, payload, priority) VALUES ('q', '1', 0), ('q', '1', 'x');
--! AK003
BEGIN;
INSERT OR ROLLBACK INTO alkstore_enqueue(queue, payload) VALUES ('q', '1'), ('q', 'x');
--! AK002
INSERT OR IGNORE INTO alkstore_claim(queue, worker_id) VALUES ('q', '');
--! AK001
COMMIT;
SELECT * FROM alkstore_jobs;
--> (no rows)
INSERT OR IGNORE INTO alkstore_enqueue(queue, payload) VALUES ('q', '1') RETURNING job_id;
--> 1
INSERT OR REPLACE INTO alkstore_enqueue(queue, payload) VALUES ('q', '2') RETURNING job_id;
--> 2

-- [refusals] a refusal has a code and says what is wrong
INSERT INTO alkstore_enqueue(queue, payload) VALUES (printf('%.256c', 'x'), '1');
--! AK001 invalid_name: queue must be text of 1 to 255 bytes without NUL
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('__alkstore_x', '1');
--! AK001 invalid_name: queue must not start with the reserved prefix __alkstore_
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '[1,');
--! AK002 invalid_payload: the payload is not JSON text
INSERT INTO alkstore_enqueue(queue, payload, delay_s) VALUES ('q', '1', -1);
--! AK003 invalid_option: delay_s must be a whole number from 0 to 2147483647

-- [refusals] a call that no longer applies is no error
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> (no rows)
INSERT INTO alkstore_ack_batch(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> (no rows)
INSERT INTO alkstore_retry(queue, job_id, attempt, error) VALUES ('q', 1, 1, 'e') RETURNING job_id;
--> (no rows)
INSERT INTO alkstore_release(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> (no rows)
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> (no rows)
INSERT INTO alkstore_heartbeat(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> (no rows)
INSERT INTO alkstore_cancel(queue, job_id) VALUES ('q', 1) RETURNING job_id;
--> (no rows)
SELECT * FROM alkstore_jobs WHERE queue = 'q' AND job_id = 1;
--> (no rows)
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w') RETURNING (SELECT jobs FROM alkstore_claimed_json);
--> []

-- [refusals] a refusal in a transaction undoes its own statement only
CREATE TABLE orders (id INTEGER PRIMARY KEY);
BEGIN;
INSERT INTO orders VALUES (1);
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '2'), ('q', 'x');
--! AK002
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', '');
--! AK001
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '3');
COMMIT;
SELECT id FROM orders;
--> 1
SELECT payload FROM alkstore_jobs ORDER BY job_id;
--> 1
--> 3

-- [tx-enqueue] rolled back to a savepoint, neither the job nor the caller's row is there
CREATE TABLE orders (id INTEGER PRIMARY KEY);
BEGIN;
SAVEPOINT before_order;
INSERT INTO orders VALUES (1);
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
ROLLBACK TO before_order;
COMMIT;
SELECT * FROM orders;
--> (no rows)
SELECT job_id FROM alkstore_jobs;
--> (no rows)
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
SELECT * FROM alkstore_claimed;
--> (no rows)

-- [tx-enqueue] the transaction itself sees its job and its row
CREATE TABLE orders (id INTEGER PRIMARY KEY);
BEGIN;
INSERT INTO orders VALUES (2);
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '2');
SELECT * FROM orders;
--> 2
SELECT payload FROM alkstore_jobs WHERE queue = 'q' AND job_id = last_insert_rowid();
--> 2
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
SELECT payload FROM alkstore_claimed;
--> 2
ROLLBACK;
SELECT * FROM orders;
--> (no rows)
SELECT * FROM alkstore_jobs;
--> (no rows)

-- [tx-enqueue] a batch gives one id for each payload, in input order
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '"c"'), ('q', '"a"'), ('q', '"b"') RETURNING job_id, payload;
--> 1|"c"
--> 2|"a"
--> 3|"b"
SELECT last_insert_rowid();
--> 3
SELECT job_id, payload FROM alkstore_jobs ORDER BY job_id;
--> 1|"c"
--> 2|"a"
--> 3|"b"
SELECT * FROM alkstore_enqueue;
--> (no rows)
