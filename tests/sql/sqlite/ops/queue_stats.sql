-- alkstore_queue_stats

-- [queue-stats] the columns of queue_stats, in order
SELECT name FROM pragma_table_info('alkstore_queue_stats') ORDER BY cid;
--> queue
--> ready
--> delayed
--> processing
--> lapsed
--> expired
--> dead
--> oldest_ready_at

-- [queue-stats] no row where there is no job
SELECT * FROM alkstore_queue_stats;
--> (no rows)

-- [queue-stats] each job counts once, and the oldest ready one is told
-- Jobs of each kind, and of each kind past their expiry, in numbers that tell them apart.
INSERT INTO alkstore_enqueue(queue, payload, priority, visibility_timeout_s, expires_s) VALUES
  ('q', '1', 9, 100, NULL), ('q', '2', 9, 100, NULL),
  ('q', '3', 9, 99, NULL), ('q', '4', 9, 99, NULL), ('q', '5', 9, 99, NULL),
  ('q', '6', 9, 100, 99), ('q', '7', 9, 99, 99),
  ('q', '8', 9, 1, NULL), ('q', '9', 9, 1, NULL), ('q', '10', 9, 1, NULL), ('q', '11', 9, 1, NULL), ('q', '12', 9, 1, NULL),
  ('q', '13', 9, 1, NULL);
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 13);
INSERT INTO alkstore_fail(queue, job_id, attempt) SELECT queue, job_id, 1 FROM alkstore_jobs WHERE job_id >= 8;
INSERT INTO alkstore_enqueue(queue, payload, run_at, delay_s, expires_s) VALUES
  ('q', '14', 1000000005, NULL, NULL), ('q', '15', 1000000005, NULL, NULL), ('q', '16', 1000000005, NULL, NULL),
  ('q', '17', 1000000005, NULL, NULL), ('q', '18', NULL, 100, 100), ('q', '19', 999999999, NULL, 99),
  ('q', '20', NULL, 101, 200), ('q', '21', NULL, 101, 200), ('q', '22', NULL, 101, 200), ('q', '23', NULL, 101, 200),
  ('q', '24', NULL, 101, 200), ('q', '25', NULL, 101, 200), ('q', '26', NULL, 101, 200), ('q', '27', NULL, 101, 99),
  ('p', '28', NULL, 101, NULL), ('P', '29', NULL, NULL, NULL);
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('P', 'w');
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES ('P', 29, 1);
UPDATE test_clock SET now = now + 100;
SELECT * FROM alkstore_queue_stats ORDER BY queue;
--> P|0|0|0|0|0|1|NULL
--> p|0|1|0|0|0|0|NULL
--> q|5|7|2|3|4|6|1000000005

-- [queue-stats] the live jobs add up
INSERT INTO alkstore_enqueue(queue, payload, priority, visibility_timeout_s, expires_s, delay_s) VALUES
  ('q', '1', 9, 100, NULL, NULL), ('q', '2', 9, 99, NULL, NULL), ('q', '3', 9, 100, 99, NULL), ('q', '4', 9, 99, 99, NULL),
  ('q', '5', 0, NULL, NULL, NULL), ('q', '6', 0, NULL, 99, NULL), ('q', '7', 0, NULL, NULL, 101), ('q', '8', 0, NULL, 99, 101);
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 4);
UPDATE test_clock SET now = now + 100;
SELECT ready + delayed + processing + lapsed + expired FROM alkstore_queue_stats;
--> 8

-- [queue-stats] a lapsed job is lapsed until a claim takes it
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 102)
INSERT INTO alkstore_enqueue(queue, payload, visibility_timeout_s) SELECT 'q', '1', 10 FROM n;
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 102);
UPDATE test_clock SET now = now + 11;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'v');
SELECT ready, processing, lapsed FROM alkstore_queue_stats;
--> 0|1|101

-- [queue-stats] to look writes nothing
INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1');
CREATE TABLE before AS SELECT total_changes() AS changes;
SELECT count(*) FROM alkstore_queue_stats;
--> 1
SELECT total_changes() - changes FROM before;
--> 0
