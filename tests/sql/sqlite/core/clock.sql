-- [clock] the instants of a live job come from the one clock
INSERT INTO alkstore_enqueue(queue, payload, expires_s, dead_letter_retention_s) VALUES ('q', '1', 5000, 100);
UPDATE test_clock SET now = now + 10;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 10;
INSERT INTO alkstore_heartbeat(queue, job_id, attempt, extend_s) VALUES ('q', 1, 1, 50);
SELECT created_at, run_at, expires_at, claimed_at, claim_expires_at FROM alkstore_jobs;
--> 1000000000|1000000000|1000005000|1000000010|1000000070

-- [clock] the instants of a dead job come from the one clock
INSERT INTO alkstore_enqueue(queue, payload, expires_s, dead_letter_retention_s) VALUES ('q', '1', 5000, 100);
UPDATE test_clock SET now = now + 10;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
UPDATE test_clock SET now = now + 10;
INSERT INTO alkstore_heartbeat(queue, job_id, attempt, extend_s) VALUES ('q', 1, 1, 50);
UPDATE test_clock SET now = now + 10;
INSERT INTO alkstore_fail(queue, job_id, attempt) VALUES ('q', 1, 1);
SELECT created_at, run_at, expires_at, claimed_at, claim_expires_at, died_at FROM alkstore_jobs;
--> 1000000000|1000000000|1000005000|1000000010|1000000070|1000000030

-- [clock] nothing else reads the time
SELECT name FROM sqlite_schema
WHERE name <> '__alkstore_clock'
  AND (sql LIKE '%unixepoch%' OR sql LIKE '%strftime%' OR sql LIKE '%julianday%' OR sql LIKE '%datetime%' OR sql LIKE '%timediff%'
    OR sql LIKE '%current\_date%' ESCAPE '\' OR sql LIKE '%current\_time%' ESCAPE '\' OR sql LIKE '%''now''%');
--> (no rows)
