-- alkstore_dead_jobs

-- [dead-move] the columns of dead_jobs are those of jobs
SELECT cid, name FROM pragma_table_info('alkstore_dead_jobs') EXCEPT SELECT cid, name FROM pragma_table_info('alkstore_jobs');
--> (no rows)
SELECT (SELECT count(*) FROM pragma_table_info('alkstore_dead_jobs')), (SELECT count(*) FROM pragma_table_info('alkstore_jobs'));
--> 20|20

-- [dead-move] dead_jobs shows the dead of all queues, with last_error and died_at, and nobody else
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('p', '1');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('p', 'w');
INSERT INTO alkstore_fail(queue, job_id, attempt, error) VALUES ('p', 1, 1, 'boom');
INSERT INTO alkstore_enqueue(queue, payload, expires_s, max_attempts, delay_s)
VALUES ('q', '2', 10, NULL, NULL), ('q', '3', NULL, 1, NULL), ('q', '4', NULL, NULL, NULL), ('q', '5', NULL, NULL, 1000);
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 2);
UPDATE test_clock SET now = now + 301;
INSERT INTO alkstore_sweep_expired(queue) VALUES ('q');
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
SELECT * FROM alkstore_dead_jobs ORDER BY job_id;
--> 1|p|dead|1|0|1|3|300|5|NULL|w|1000000000|1000000000|NULL|1000000000|1000000300|NULL|boom|1000000000|0
--> 2|q|dead|2|0|1|3|300|5|NULL|w|1000000000|1000000000|1000000010|1000000000|1000000300|NULL|expired|1000000301|0
--> 3|q|dead|3|0|1|1|300|5|NULL|w|1000000000|1000000000|NULL|1000000000|1000000300|NULL|max attempts exceeded|1000000301|0
