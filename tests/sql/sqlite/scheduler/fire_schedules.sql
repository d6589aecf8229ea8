-- [fire] nothing fires before its boundary
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 10s', 'q', '{"a":1}');
UPDATE test_clock SET now = now + 9;
INSERT INTO alkstore_fire_schedules DEFAULT VALUES;
SELECT * FROM alkstore_fired;
--> (no rows)
SELECT next_run_at FROM alkstore_schedules;
--> 1000000010

-- [fire] at its boundary a schedule fires one job and moves on
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 10s', 'q', '{"a":1}');
UPDATE test_clock SET now = now + 10;
INSERT INTO alkstore_fire_schedules DEFAULT VALUES;
SELECT * FROM alkstore_fired;
--> s|q|1|1000000010
SELECT queue, state, payload, run_at, created_at FROM alkstore_jobs;
--> q|pending|{"a":1}|1000000010|1000000010
SELECT next_run_at FROM alkstore_schedules;
--> 1000000020

-- [fire] what has fired does not fire again within the same second
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 10s', 'q', '{"a":1}');
UPDATE test_clock SET now = now + 10;
INSERT INTO alkstore_fire_schedules DEFAULT VALUES;
INSERT INTO alkstore_fire_schedules DEFAULT VALUES;
SELECT * FROM alkstore_fired;
--> (no rows)
INSERT INTO alkstore_fire_schedules(name) VALUES ('s');
SELECT * FROM alkstore_fired;
--> (no rows)
SELECT count(*) FROM alkstore_jobs;
--> 1

-- [fire] six missed boundaries give six jobs, oldest first
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 10s', 'q', '1');
UPDATE test_clock SET now = now + 65;
INSERT INTO alkstore_fire_schedules DEFAULT VALUES;
SELECT * FROM alkstore_fired;
--> s|q|1|1000000010
--> s|q|2|1000000020
--> s|q|3|1000000030
--> s|q|4|1000000040
--> s|q|5|1000000050
--> s|q|6|1000000060
SELECT job_id, run_at, created_at FROM alkstore_jobs ORDER BY job_id;
--> 1|1000000010|1000000065
--> 2|1000000020|1000000065
--> 3|1000000030|1000000065
--> 4|1000000040|1000000065
--> 5|1000000050|1000000065
--> 6|1000000060|1000000065
SELECT next_run_at FROM alkstore_schedules;
--> 1000000070
INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 10);
SELECT run_at FROM alkstore_claimed;
--> 1000000010
--> 1000000020
--> 1000000030
--> 1000000040
--> 1000000050
--> 1000000060

-- [fire] of 200 missed boundaries the oldest 64 fire and the rest is skipped
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 1s', 'q', '1');
UPDATE test_clock SET now = now + 200;
INSERT INTO alkstore_fire_schedules DEFAULT VALUES;
SELECT count(*), min(boundary), max(boundary) FROM alkstore_fired;
--> 64|1000000001|1000000064
SELECT next_run_at FROM alkstore_schedules;
--> 1000000201
SELECT count(*), count(DISTINCT run_at), min(run_at), max(run_at), min(run_at = 1000000000 + job_id) FROM alkstore_jobs;
--> 64|64|1000000001|1000000064|1
INSERT INTO alkstore_fire_schedules DEFAULT VALUES;
SELECT * FROM alkstore_fired;
--> (no rows)

-- [fire] a skipped boundary never comes back
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 1s', 'q', '1');
UPDATE test_clock SET now = now + 200;
INSERT INTO alkstore_fire_schedules DEFAULT VALUES;
UPDATE test_clock SET now = now + 3;
INSERT INTO alkstore_fire_schedules DEFAULT VALUES;
SELECT boundary FROM alkstore_fired;
--> 1000000201
--> 1000000202
--> 1000000203

-- [fire] 64 missed boundaries fire all
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 10s', 'q', '1');
UPDATE test_clock SET now = now + 649;
INSERT INTO alkstore_fire_schedules DEFAULT VALUES;
SELECT count(*), max(boundary) FROM alkstore_fired;
--> 64|1000000640
SELECT next_run_at FROM alkstore_schedules;
--> 1000000650

-- [fire] of 65 missed boundaries the last is skipped
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 10s', 'q', '1');
UPDATE test_clock SET now = now + 650;
INSERT INTO alkstore_fire_schedules DEFAULT VALUES;
SELECT count(*), max(boundary) FROM alkstore_fired;
--> 64|1000000640
SELECT next_run_at FROM alkstore_schedules;
--> 1000000660

-- [fire] the schedule's options go onto the job; it expires expires_s after the firing
INSERT INTO alkstore_schedule(name, spec, queue, payload, priority, max_attempts, expires_s) VALUES ('s', '@every 10s', 'q', '1', -7, 9, 60);
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('t', '@every 10s', 'q', '2');
UPDATE test_clock SET now = now + 25;
INSERT INTO alkstore_fire_schedules DEFAULT VALUES;
SELECT job_id, priority, max_attempts, expires_at, visibility_timeout_s, backoff_base_s, dead_letter_retention_s
FROM alkstore_jobs ORDER BY job_id;
--> 1|-7|9|1000000085|300|5|NULL
--> 2|-7|9|1000000085|300|5|NULL
--> 3|0|3|NULL|300|5|NULL
--> 4|0|3|NULL|300|5|NULL

-- [fire] all that are due fire, ordered by first boundary and name
INSERT INTO alkstore_schedule(name, spec, queue, payload)
VALUES ('b', '@every 10s', 'q', '1'), ('a', '@every 15s', 'r', '2'), ('c', '@every 10s', 'r', '3'), ('d', '@every 99s', 'r', '4');
UPDATE test_clock SET now = now + 30;
INSERT INTO alkstore_fire_schedules DEFAULT VALUES;
SELECT * FROM alkstore_fired;
--> b|q|1|1000000010
--> b|q|2|1000000020
--> b|q|3|1000000030
--> c|r|4|1000000010
--> c|r|5|1000000020
--> c|r|6|1000000030
--> a|r|7|1000000015
--> a|r|8|1000000030
SELECT name, next_run_at FROM alkstore_schedules ORDER BY name;
--> a|1000000045
--> b|1000000040
--> c|1000000040
--> d|1000000099

-- [fire] by name only that one fires, by NULL all
INSERT INTO alkstore_schedule(name, spec, queue, payload)
VALUES ('s', '@every 10s', 'q', '1'), ('t', '@every 10s', 'q', '2'), ('u', '@every 11s', 'q', '3');
UPDATE test_clock SET now = now + 10;
INSERT INTO alkstore_fire_schedules(name) VALUES ('t');
SELECT * FROM alkstore_fired;
--> t|q|1|1000000010
SELECT name, next_run_at FROM alkstore_schedules ORDER BY name;
--> s|1000000010
--> t|1000000020
--> u|1000000011
INSERT INTO alkstore_fire_schedules(name) VALUES (NULL);
SELECT * FROM alkstore_fired;
--> s|q|2|1000000010

-- [fire] by a name that is not due, or that there is not, nothing fires
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 10s', 'q', '1'), ('t', '@every 11s', 'q', '2');
UPDATE test_clock SET now = now + 10;
INSERT INTO alkstore_fire_schedules(name) VALUES ('t'), ('S'), (''), ('__alkstore_x');
SELECT * FROM alkstore_fired;
--> (no rows)
SELECT name, next_run_at FROM alkstore_schedules ORDER BY name;
--> s|1000000010
--> t|1000000011
SELECT count(*) FROM alkstore_jobs;
--> 0

-- [fire] an aborted firing leaves neither job nor advance, and the boundaries fire once after it
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 10s', 'q', '1');
UPDATE test_clock SET now = now + 25;
BEGIN;
INSERT INTO alkstore_fire_schedules DEFAULT VALUES;
ROLLBACK;
SELECT next_run_at FROM alkstore_schedules;
--> 1000000010
SELECT job_id FROM alkstore_jobs;
--> (no rows)
INSERT INTO alkstore_fire_schedules DEFAULT VALUES;
SELECT boundary FROM alkstore_fired;
--> 1000000010
--> 1000000020
INSERT INTO alkstore_fire_schedules DEFAULT VALUES;
SELECT count(*) FROM alkstore_jobs;
--> 2

-- [fire] a fired job is claimed and acked like any other
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 1s', 'q', '1');
UPDATE test_clock SET now = now + 1;
INSERT INTO alkstore_fire_schedules DEFAULT VALUES;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('q', 1, 1) RETURNING job_id;
--> 1

-- [fire] when a fired job is gone the next boundary still comes
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 1s', 'q', '1');
UPDATE test_clock SET now = now + 1;
INSERT INTO alkstore_fire_schedules DEFAULT VALUES;
INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w');
INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('q', 1, 1);
UPDATE test_clock SET now = now + 1;
INSERT INTO alkstore_fire_schedules DEFAULT VALUES;
SELECT * FROM alkstore_fired;
--> s|q|2|1000000002
SELECT job_id, state FROM alkstore_jobs;
--> 2|pending

-- [fire] one schedule that cannot enqueue does not stop the others
-- The call as a whole fails and changes nothing; by name each of the others fires.
CREATE TEMP TRIGGER forbid BEFORE INSERT ON __alkstore_job WHEN NEW.payload LIKE '%bad%'
BEGIN SELECT RAISE(ABORT, 'at most 4 bytes are allowed'); END;
INSERT INTO alkstore_schedule(name, spec, queue, payload)
VALUES ('a', '@every 10s', 'q', '1'), ('b', '@every 10s', 'q', '"bad"'), ('c', '@every 10s', 'q', '3');
UPDATE test_clock SET now = now + 10;
INSERT INTO alkstore_fire_schedules DEFAULT VALUES;
--! at most 4 bytes are allowed
SELECT count(*) FROM alkstore_jobs;
--> 0
SELECT DISTINCT next_run_at FROM alkstore_schedules;
--> 1000000010
INSERT INTO alkstore_fire_schedules(name) VALUES ('a');
SELECT name, boundary FROM alkstore_fired;
--> a|1000000010
INSERT INTO alkstore_fire_schedules(name) VALUES ('b');
--! at most 4 bytes are allowed
INSERT INTO alkstore_fire_schedules(name) VALUES ('c');
SELECT name, boundary FROM alkstore_fired;
--> c|1000000010
SELECT payload FROM alkstore_jobs ORDER BY job_id;
--> 1
--> 3

-- [fire] its error stands in last_error and its boundary is kept
-- SQLite catches nothing inside a call: who made it tells the error.
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('a', '@every 10s', 'q', '1'), ('b', '@every 10s', 'q', '"bad"');
UPDATE test_clock SET now = now + 10;
INSERT INTO alkstore_fire_schedules(name) VALUES ('a');
INSERT INTO __alkstore_schedule_failed(name, error) VALUES ('b', 'at most 4 bytes are allowed'), ('x', 'there is none');
SELECT name, next_run_at, last_error FROM alkstore_schedules ORDER BY name;
--> a|1000000020|NULL
--> b|1000000010|at most 4 bytes are allowed
INSERT INTO __alkstore_schedule_failed(name, error) VALUES ('b', printf('%.70000c', 'e'));
SELECT length(last_error) FROM alkstore_schedules WHERE name = 'b';
--> 65536

-- [idle] fire: the same failure again writes nothing
CREATE TEMP TRIGGER forbid BEFORE INSERT ON __alkstore_job WHEN NEW.payload LIKE '%bad%'
BEGIN SELECT RAISE(ABORT, 'at most 4 bytes are allowed'); END;
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('b', '@every 10s', 'q', '"bad"');
UPDATE test_clock SET now = now + 10;
INSERT INTO __alkstore_schedule_failed(name, error) VALUES ('b', 'at most 4 bytes are allowed');
CREATE TABLE before AS SELECT * FROM __alkstore_schedule;
CREATE TABLE changes AS SELECT total_changes() AS changes;
INSERT INTO __alkstore_schedule_failed(name, error) VALUES ('b', 'at most 4 bytes are allowed');
SELECT total_changes() - changes FROM changes;
--> 0
INSERT INTO alkstore_fire_schedules(name) VALUES ('b');
--! at most 4 bytes are allowed
SELECT * FROM __alkstore_schedule EXCEPT SELECT * FROM before;
--> (no rows)

-- [fire] tried again, a good firing fires what was missed and clears the error
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('a', '@every 10s', 'q', '1'), ('b', '@every 10s', 'q', '2');
UPDATE test_clock SET now = now + 10;
INSERT INTO alkstore_fire_schedules(name) VALUES ('a');
INSERT INTO __alkstore_schedule_failed(name, error) VALUES ('b', 'at most 4 bytes are allowed');
UPDATE test_clock SET now = now + 10;
INSERT INTO alkstore_fire_schedules DEFAULT VALUES;
SELECT name, boundary FROM alkstore_fired;
--> b|1000000010
--> b|1000000020
--> a|1000000020
SELECT name, next_run_at, last_error FROM alkstore_schedules ORDER BY name;
--> a|1000000030|NULL
--> b|1000000030|NULL

-- [fire] when the third of five fails, the four others fire and the third keeps its boundaries
CREATE TEMP TRIGGER forbid BEFORE INSERT ON __alkstore_job WHEN NEW.payload LIKE '%bad%'
BEGIN SELECT RAISE(ABORT, 'at most 4 bytes are allowed'); END;
INSERT INTO alkstore_schedule(name, spec, queue, payload)
VALUES ('a', '@every 10s', 'q', '1'), ('b', '@every 10s', 'q', '1'), ('c', '@every 10s', 'q', '"bad"'), ('d', '@every 10s', 'q', '1'),
  ('e', '@every 10s', 'q', '1');
UPDATE test_clock SET now = now + 35;
INSERT INTO alkstore_fire_schedules DEFAULT VALUES;
--! at most 4 bytes are allowed
INSERT INTO alkstore_fire_schedules(name) VALUES ('a'), ('b'), ('d'), ('e');
INSERT INTO alkstore_fire_schedules(name) VALUES ('c');
--! at most 4 bytes are allowed
SELECT run_at, count(*) FROM alkstore_jobs GROUP BY run_at ORDER BY run_at;
--> 1000000010|4
--> 1000000020|4
--> 1000000030|4
SELECT name, next_run_at FROM alkstore_schedules ORDER BY name;
--> a|1000000040
--> b|1000000040
--> c|1000000010
--> d|1000000040
--> e|1000000040

-- [fire] no boundary is lost and none is doubled
CREATE TEMP TRIGGER forbid BEFORE INSERT ON __alkstore_job WHEN NEW.payload LIKE '%bad%'
BEGIN SELECT RAISE(ABORT, 'at most 4 bytes are allowed'); END;
INSERT INTO alkstore_schedule(name, spec, queue, payload)
VALUES ('a', '@every 10s', 'q', '1'), ('b', '@every 10s', 'q', '1'), ('c', '@every 10s', 'q', '"bad"'), ('d', '@every 10s', 'q', '1'),
  ('e', '@every 10s', 'q', '1');
UPDATE test_clock SET now = now + 35;
INSERT INTO alkstore_fire_schedules(name) VALUES ('a'), ('b'), ('d'), ('e');
INSERT INTO alkstore_fire_schedules(name) VALUES ('c');
--! at most 4 bytes are allowed
DROP TRIGGER forbid;
INSERT INTO alkstore_fire_schedules DEFAULT VALUES;
SELECT name, boundary FROM alkstore_fired;
--> c|1000000010
--> c|1000000020
--> c|1000000030
SELECT run_at, count(*) FROM alkstore_jobs GROUP BY run_at ORDER BY run_at;
--> 1000000010|5
--> 1000000020|5
--> 1000000030|5

-- [fire] a schedule's missed boundaries fire all or none
CREATE TEMP TRIGGER forbid_third BEFORE INSERT ON __alkstore_job WHEN NEW.run_at = 1000000030
BEGIN SELECT RAISE(ABORT, 'not this one'); END;
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 10s', 'q', '1');
UPDATE test_clock SET now = now + 45;
INSERT INTO alkstore_fire_schedules(name) VALUES ('s');
--! not this one
SELECT * FROM alkstore_fired;
--> (no rows)
SELECT count(*) FROM alkstore_jobs;
--> 0
SELECT next_run_at FROM alkstore_schedules;
--> 1000000010

-- [fire] a clock that jumps an hour ahead fires what lies between
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 5m', 'q', '1');
UPDATE test_clock SET now = now + 3600;
INSERT INTO alkstore_fire_schedules DEFAULT VALUES;
SELECT count(*), max(boundary) FROM alkstore_fired;
--> 12|1000003600

-- [fire] a clock that jumps two hours back fires nothing twice
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 5m', 'q', '1');
UPDATE test_clock SET now = now + 3600;
INSERT INTO alkstore_fire_schedules DEFAULT VALUES;
UPDATE test_clock SET now = now - 7200;
INSERT INTO alkstore_fire_schedules DEFAULT VALUES;
SELECT * FROM alkstore_fired;
--> (no rows)
SELECT next_run_at FROM alkstore_schedules;
--> 1000003900

-- [fire] after a jump back nothing fires until the clock has caught up
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 5m', 'q', '1');
UPDATE test_clock SET now = now + 3600;
INSERT INTO alkstore_fire_schedules DEFAULT VALUES;
UPDATE test_clock SET now = now - 7200;
UPDATE test_clock SET now = now + 7499;
INSERT INTO alkstore_fire_schedules DEFAULT VALUES;
SELECT * FROM alkstore_fired;
--> (no rows)

-- [fire] when the clock has caught up the next boundary fires, once
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 5m', 'q', '1');
UPDATE test_clock SET now = now + 3600;
INSERT INTO alkstore_fire_schedules DEFAULT VALUES;
UPDATE test_clock SET now = now - 7200;
UPDATE test_clock SET now = now + 7500;
INSERT INTO alkstore_fire_schedules DEFAULT VALUES;
SELECT boundary FROM alkstore_fired;
--> 1000003900
SELECT count(*), count(DISTINCT run_at) FROM alkstore_jobs;
--> 13|13

-- [fire] the longest interval fires too
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 2147483647s', 'q', '1');
UPDATE test_clock SET now = now + 2 * 2147483647 + 10;
INSERT INTO alkstore_fire_schedules DEFAULT VALUES;
SELECT boundary FROM alkstore_fired;
--> 3147483647
--> 5294967294
SELECT next_run_at FROM alkstore_schedules;
--> 7442450941

-- [idle] fire: a firing with nothing due writes nothing
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 10s', 'q', '1');
UPDATE test_clock SET now = now + 9;
CREATE TABLE before AS SELECT total_changes() AS changes;
INSERT INTO alkstore_fire_schedules DEFAULT VALUES;
INSERT INTO alkstore_fire_schedules(name) VALUES ('s'), ('x');
SELECT total_changes() - changes FROM before;
--> 0

-- [fire] its rows are name, queue, job_id, boundary
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 10s', 'q', '1');
UPDATE test_clock SET now = now + 10;
INSERT INTO alkstore_fire_schedules DEFAULT VALUES;
SELECT name, typeof(name), queue, typeof(queue), job_id, typeof(job_id), boundary, typeof(boundary) FROM alkstore_fired;
--> s|text|q|text|1|integer|1000000010|integer
