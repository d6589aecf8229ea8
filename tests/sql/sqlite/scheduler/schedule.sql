-- [schedule] the first boundary is one interval from now
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 10s', 'q', '{"b":1, "a":[1.0]}')
RETURNING (SELECT next_run_at FROM alkstore_schedules s WHERE s.name = alkstore_schedule.name);
--> 1000000010
SELECT * FROM alkstore_schedules;
--> s|@every 10s|q|{"b":1, "a":[1.0]}|0|3|NULL|1000000010|NULL|1000000000

-- [schedule] an interval is a number of seconds, minutes, hours or days, at most 2147483647 seconds in all
INSERT INTO alkstore_schedule(name, spec, queue, payload)
SELECT value, value, 'q', '1'
FROM json_each('["@every 1s","@every 90m","@every 36h","@every 7d","@every 2147483647s","@every 35791394m","@every 596523h","@every 24855d"]');
SELECT spec, next_run_at FROM alkstore_schedules ORDER BY next_run_at;
--> @every 1s|1000000001
--> @every 90m|1000005400
--> @every 36h|1000129600
--> @every 7d|1000604800
--> @every 24855d|3147472000
--> @every 596523h|3147482800
--> @every 35791394m|3147483640
--> @every 2147483647s|3147483647

-- [refusals] schedule: any other spec is AK004
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', NULL, 'q', '1');
--! AK004 invalid_spec
INSERT INTO alkstore_schedule(name, queue, payload) VALUES ('s', 'q', '1');
--! AK004 invalid_spec
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '', 'q', '1');
--! AK004 invalid_spec
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every', 'q', '1');
--! AK004 invalid_spec
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every ', 'q', '1');
--! AK004 invalid_spec
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 5', 'q', '1');
--! AK004 invalid_spec
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every s', 'q', '1');
--! AK004 invalid_spec
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 0s', 'q', '1');
--! AK004 invalid_spec
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 05s', 'q', '1');
--! AK004 invalid_spec
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every +5s', 'q', '1');
--! AK004 invalid_spec
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every -1m', 'q', '1');
--! AK004 invalid_spec
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '-1m', 'q', '1');
--! AK004 invalid_spec
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '1.5h', 'q', '1');
--! AK004 invalid_spec
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 1.5h', 'q', '1');
--! AK004 invalid_spec
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '5 m', 'q', '1');
--! AK004 invalid_spec
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 5 m', 'q', '1');
--! AK004 invalid_spec
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every  5m', 'q', '1');
--! AK004 invalid_spec
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every5m', 'q', '1');
--! AK004 invalid_spec
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', ' @every 5m ', 'q', '1');
--! AK004 invalid_spec
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', ' @every 5m', 'q', '1');
--! AK004 invalid_spec
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 5m ', 'q', '1');
--! AK004 invalid_spec
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 5m' || char(10), 'q', '1');
--! AK004 invalid_spec
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every' || char(9) || '5m', 'q', '1');
--! AK004 invalid_spec
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@EVERY 5m', 'q', '1');
--! AK004 invalid_spec
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 5M', 'q', '1');
--! AK004 invalid_spec
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 5w', 'q', '1');
--! AK004 invalid_spec
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 5ms', 'q', '1');
--! AK004 invalid_spec
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 1h30m', 'q', '1');
--! AK004 invalid_spec
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '0 2 * * *', 'q', '1');
--! AK004 invalid_spec
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@daily', 'q', '1');
--! AK004 invalid_spec
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 123456789012s', 'q', '1');
--! AK004 invalid_spec
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 2147483648s', 'q', '1');
--! AK004 invalid_spec
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 35791395m', 'q', '1');
--! AK004 invalid_spec
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 596524h', 'q', '1');
--! AK004 invalid_spec
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 24856d', 'q', '1');
--! AK004 invalid_spec
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 9999999999d', 'q', '1');
--! AK004 invalid_spec
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every ٣s', 'q', '1');
--! AK004 invalid_spec
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 99999999999999999999999999999d', 'q', '1');
--! AK004 invalid_spec
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 5m' || char(0), 'q', '1');
--! AK004 invalid_spec
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 5m' || char(0) || 'm', 'q', '1');
--! AK004 invalid_spec
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', CAST('@every 5m' AS BLOB), 'q', '1');
--! AK004 invalid_spec
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', 5, 'q', '1');
--! AK004 invalid_spec
SELECT count(*) FROM alkstore_schedules;
--> 0

-- [schedule] the same spec again keeps the next boundary and replaces queue, payload and options
INSERT INTO alkstore_schedule(name, spec, queue, payload, priority, max_attempts, expires_s) VALUES ('s', '@every 10s', 'q', '1', 7, 5, 60);
UPDATE test_clock SET now = now + 4;
INSERT INTO alkstore_schedule(name, spec, queue, payload, priority, max_attempts, expires_s) VALUES ('s', '@every 10s', 'r', '2', -1, 6, 61)
RETURNING (SELECT next_run_at FROM alkstore_schedules s WHERE s.name = alkstore_schedule.name);
--> 1000000010
SELECT * FROM alkstore_schedules;
--> s|@every 10s|r|2|-1|6|61|1000000010|NULL|1000000000
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 10s', 'r', '2')
RETURNING (SELECT next_run_at FROM alkstore_schedules s WHERE s.name = alkstore_schedule.name);
--> 1000000010
SELECT * FROM alkstore_schedules;
--> s|@every 10s|r|2|0|3|NULL|1000000010|NULL|1000000000

-- [schedule] a changed spec starts anew
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 60s', 'q', '1');
UPDATE test_clock SET now = now + 4;
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 61s', 'q', '1')
RETURNING (SELECT next_run_at FROM alkstore_schedules s WHERE s.name = alkstore_schedule.name);
--> 1000000065
SELECT spec, next_run_at, created_at FROM alkstore_schedules;
--> @every 61s|1000000065|1000000000

-- [schedule] the same interval in another spelling is a changed spec
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 60s', 'q', '1');
UPDATE test_clock SET now = now + 4;
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 1m', 'q', '1')
RETURNING (SELECT next_run_at FROM alkstore_schedules s WHERE s.name = alkstore_schedule.name);
--> 1000000064

-- [schedule] the same spec again keeps boundaries that were missed
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 10s', 'q', '1');
UPDATE test_clock SET now = now + 35;
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 10s', 'q', '2')
RETURNING (SELECT next_run_at FROM alkstore_schedules s WHERE s.name = alkstore_schedule.name);
--> 1000000010
INSERT INTO alkstore_fire_schedules DEFAULT VALUES;
SELECT boundary FROM alkstore_fired;
--> 1000000010
--> 1000000020
--> 1000000030
SELECT job_id, payload FROM alkstore_jobs ORDER BY job_id;
--> 1|2
--> 2|2
--> 3|2

-- [schedule] registered again every 20 s, a schedule fires every minute
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 60s', 'q', '1');
UPDATE test_clock SET now = now + 20;
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 60s', 'q', '1');
INSERT INTO alkstore_fire_schedules DEFAULT VALUES;
UPDATE test_clock SET now = now + 20;
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 60s', 'q', '1');
INSERT INTO alkstore_fire_schedules DEFAULT VALUES;
SELECT count(*) FROM alkstore_jobs;
--> 0
UPDATE test_clock SET now = now + 20;
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 60s', 'q', '1');
INSERT INTO alkstore_fire_schedules DEFAULT VALUES;
SELECT boundary FROM alkstore_fired;
--> 1000000060
UPDATE test_clock SET now = now + 20;
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 60s', 'q', '1');
INSERT INTO alkstore_fire_schedules DEFAULT VALUES;
SELECT boundary FROM alkstore_fired;
--> (no rows)
UPDATE test_clock SET now = now + 20;
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 60s', 'q', '1');
INSERT INTO alkstore_fire_schedules DEFAULT VALUES;
SELECT boundary FROM alkstore_fired;
--> (no rows)
UPDATE test_clock SET now = now + 20;
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 60s', 'q', '1');
INSERT INTO alkstore_fire_schedules DEFAULT VALUES;
SELECT boundary FROM alkstore_fired;
--> 1000000120
UPDATE test_clock SET now = now + 20;
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 60s', 'q', '1');
INSERT INTO alkstore_fire_schedules DEFAULT VALUES;
SELECT run_at FROM alkstore_jobs ORDER BY job_id;
--> 1000000060
--> 1000000120

-- [schedule] unscheduled and scheduled, it starts anew
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 60s', 'q', '1');
UPDATE test_clock SET now = now + 20;
INSERT INTO alkstore_unschedule(name) VALUES ('s');
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 60s', 'q', '1')
RETURNING (SELECT next_run_at FROM alkstore_schedules s WHERE s.name = alkstore_schedule.name);
--> 1000000080

-- [schedule] options are those of a job, NULL means the default
INSERT INTO alkstore_schedule(name, spec, queue, payload, priority, max_attempts, expires_s)
VALUES ('s', '@every 1s', 'q', '1', NULL, NULL, NULL), ('t', '@every 1s', 'q', '1', -2147483648, 1, 1),
  ('u', '@every 1s', 'q', '1', 2147483647, 2147483647, 2147483647);
SELECT name, priority, max_attempts, expires_s FROM alkstore_schedules ORDER BY name;
--> s|0|3|NULL
--> t|-2147483648|1|1
--> u|2147483647|2147483647|2147483647

-- [refusals] schedule: an option out of range is AK003
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 1s', 'q', '1');
INSERT INTO alkstore_schedule(name, spec, queue, payload, priority) VALUES ('s', '@every 1s', 'r', '1', -2147483649);
--! AK003 invalid_option: priority
INSERT INTO alkstore_schedule(name, spec, queue, payload, priority) VALUES ('s', '@every 1s', 'r', '1', 2147483648);
--! AK003 invalid_option: priority
INSERT INTO alkstore_schedule(name, spec, queue, payload, priority) VALUES ('s', '@every 1s', 'r', '1', '1');
--! AK003 invalid_option: priority
INSERT INTO alkstore_schedule(name, spec, queue, payload, max_attempts) VALUES ('s', '@every 1s', 'r', '1', 0);
--! AK003 invalid_option: max_attempts
INSERT INTO alkstore_schedule(name, spec, queue, payload, max_attempts) VALUES ('s', '@every 1s', 'r', '1', -1);
--! AK003 invalid_option: max_attempts
INSERT INTO alkstore_schedule(name, spec, queue, payload, max_attempts) VALUES ('s', '@every 1s', 'r', '1', 2147483648);
--! AK003 invalid_option: max_attempts
INSERT INTO alkstore_schedule(name, spec, queue, payload, expires_s) VALUES ('s', '@every 1s', 'r', '1', 0);
--! AK003 invalid_option: expires_s
INSERT INTO alkstore_schedule(name, spec, queue, payload, expires_s) VALUES ('s', '@every 1s', 'r', '1', -1);
--! AK003 invalid_option: expires_s
INSERT INTO alkstore_schedule(name, spec, queue, payload, expires_s) VALUES ('s', '@every 1s', 'r', '1', 2147483648);
--! AK003 invalid_option: expires_s
INSERT INTO alkstore_schedule(name, spec, queue, payload, expires_s) VALUES ('s', '@every 1s', 'r', '1', 1.5);
--! AK003 invalid_option: expires_s
SELECT * FROM alkstore_schedules;
--> s|@every 1s|q|1|0|3|NULL|1000000001|NULL|1000000000

-- [refusals] schedule: a payload that is not JSON is AK002
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 1s', 'q', '1');
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 1s', 'r', NULL);
--! AK002 invalid_payload
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 1s', 'r', '');
--! AK002 invalid_payload
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 1s', 'r', '{');
--! AK002 invalid_payload
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 1s', 'r', 'NaN');
--! AK002 invalid_payload
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 1s', 'r', '1 2');
--! AK002 invalid_payload
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 1s', 'r', x'31');
--! AK002 invalid_payload
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 1s', 'r', '1' || char(0));
--! AK002 invalid_payload
SELECT * FROM alkstore_schedules;
--> s|@every 1s|q|1|0|3|NULL|1000000001|NULL|1000000000

-- [refusals] schedule: names are judged first, then spec, payload and options
INSERT INTO alkstore_schedule(name, spec, queue, payload, priority, max_attempts) VALUES ('', 'x', '', '{', 0, 0);
--! AK001 invalid_name: name
INSERT INTO alkstore_schedule(name, spec, queue, payload, priority, max_attempts) VALUES ('s', 'x', '', '{', 0, 0);
--! AK001 invalid_name: queue
INSERT INTO alkstore_schedule(name, spec, queue, payload, priority, max_attempts) VALUES ('s', 'x', 'q', '{', 0, 0);
--! AK004
INSERT INTO alkstore_schedule(name, spec, queue, payload, priority, max_attempts) VALUES ('s', '@every 9999999999d', 'q', '{', 0, 0);
--! AK004
INSERT INTO alkstore_schedule(name, spec, queue, payload, priority, max_attempts) VALUES ('s', '@every 1s', 'q', '{', 0, 0);
--! AK002 invalid_payload: the
INSERT INTO alkstore_schedule(name, spec, queue, payload, priority, max_attempts) VALUES ('s', '@every 1s', 'q', '1', 0, 0);
--! AK003 invalid_option: max_attempts

-- [name] schedule: its own name and its queue's name are refused alike
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES (NULL, '@every 1s', 'q', '1');
--! AK001 invalid_name: name
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('', '@every 1s', 'q', '1');
--! AK001 invalid_name: name
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES (printf('%.256c', 'x'), '@every 1s', 'q', '1');
--! AK001 invalid_name: name
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES (replace(printf('%.128c', 'x'), 'x', 'é'), '@every 1s', 'q', '1');
--! AK001 invalid_name: name
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('__alkstore_', '@every 1s', 'q', '1');
--! AK001 invalid_name: name
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('__alkstore_x', '@every 1s', 'q', '1');
--! AK001 invalid_name: name
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s' || char(0), '@every 1s', 'q', '1');
--! AK001 invalid_name: name
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES (x'73', '@every 1s', 'q', '1');
--! AK001 invalid_name: name
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 1s', NULL, '1');
--! AK001 invalid_name: queue
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 1s', '', '1');
--! AK001 invalid_name: queue
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 1s', printf('%.256c', 'x'), '1');
--! AK001 invalid_name: queue
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 1s', replace(printf('%.128c', 'x'), 'x', 'é'), '1');
--! AK001 invalid_name: queue
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 1s', '__alkstore_', '1');
--! AK001 invalid_name: queue
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 1s', '__alkstore_outbox_x', '1');
--! AK001 invalid_name: queue
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 1s', 'q' || char(0), '1');
--! AK001 invalid_name: queue
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 1s', x'71', '1');
--! AK001 invalid_name: queue
SELECT count(*) FROM alkstore_schedules;
--> 0

-- [name] schedules and queues whose names differ in a byte are different
CREATE TABLE names AS
SELECT value AS name FROM json_each('["a","A","a "," a","a/b","\u00e9","e\u0301","q\"''%I$$;--","%"," ","\t","\n","__ALKSTORE_x","__alkstore"]')
UNION ALL SELECT printf('%.255c', 'n') UNION ALL SELECT printf('%.254c', 'n') || 'm' UNION ALL SELECT replace(printf('%.127c', 'x'), 'x', 'é');
INSERT INTO alkstore_schedule(name, spec, queue, payload) SELECT name, '@every 1s', name, json_quote(name) FROM names;
SELECT count(*), min(queue = name AND payload = json_quote(name)) FROM names JOIN alkstore_schedules USING (name);
--> 17|1
UPDATE test_clock SET now = now + 1;
INSERT INTO alkstore_fire_schedules DEFAULT VALUES;
SELECT count(*), count(DISTINCT name), min(name = queue) FROM alkstore_fired;
--> 17|17|1
INSERT INTO alkstore_claim(queue, worker_id, n) SELECT name, 'w', 2 FROM names;
SELECT count(*), min(payload = json_quote(queue)) FROM alkstore_jobs WHERE state = 'processing';
--> 17|1
INSERT INTO alkstore_unschedule(name) SELECT name FROM names;
SELECT count(*) FROM alkstore_schedules;
--> 0

-- [payload] schedule: the payload reaches the job byte for byte, in a queue that nothing has used
INSERT INTO alkstore_schedule(name, spec, queue, payload)
VALUES ('s', '@every 1s', 'never used', '{"b":1, "a":[1.0,1e2], "a":18446744073709551617, "n":"\u0000"}');
UPDATE test_clock SET now = now + 1;
INSERT INTO alkstore_fire_schedules DEFAULT VALUES;
SELECT * FROM alkstore_fired;
--> s|never used|1|1000000001
SELECT payload FROM alkstore_jobs;
--> {"b":1, "a":[1.0,1e2], "a":18446744073709551617, "n":"\u0000"}

-- [schedule] it belongs to the caller's transaction
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 10s', 'q', '1');
BEGIN;
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 20s', 'r', '2');
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('t', '@every 20s', 'r', '2');
INSERT INTO alkstore_unschedule(name) VALUES ('s');
ROLLBACK;
SELECT name, spec, queue, payload, next_run_at FROM alkstore_schedules;
--> s|@every 10s|q|1|1000000010

-- [idle] schedule: to register what is registered writes nothing
INSERT INTO alkstore_schedule(name, spec, queue, payload, priority, max_attempts, expires_s)
VALUES ('s', '@every 10s', 'q', '1', 1, 2, 3), ('t', '@every 10s', 'q', '1', NULL, NULL, NULL);
UPDATE test_clock SET now = now + 5;
CREATE TABLE before AS SELECT total_changes() AS changes;
INSERT INTO alkstore_schedule(name, spec, queue, payload, priority, max_attempts, expires_s) VALUES ('s', '@every 10s', 'q', '1', 1, 2, 3)
RETURNING (SELECT next_run_at FROM alkstore_schedules s WHERE s.name = alkstore_schedule.name);
--> 1000000010
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('t', '@every 10s', 'q', '1')
RETURNING (SELECT next_run_at FROM alkstore_schedules s WHERE s.name = alkstore_schedule.name);
--> 1000000010
INSERT INTO alkstore_schedule(name, spec, queue, payload, priority, max_attempts, expires_s) VALUES ('t', '@every 10s', 'q', '1', 0, 3, NULL)
RETURNING (SELECT next_run_at FROM alkstore_schedules s WHERE s.name = alkstore_schedule.name);
--> 1000000010
SELECT total_changes() - changes FROM before;
--> 0

-- [schedule] a difference in any one argument is taken over
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('t', '@every 10s', 'q', '1');
UPDATE test_clock SET now = now + 5;
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('t', '@every 10s', 'r', '1');
SELECT queue, payload, priority, max_attempts, expires_s, next_run_at FROM alkstore_schedules;
--> r|1|0|3|NULL|1000000010
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('t', '@every 10s', 'r', '2');
SELECT queue, payload, priority, max_attempts, expires_s, next_run_at FROM alkstore_schedules;
--> r|2|0|3|NULL|1000000010
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('t', '@every 10s', 'r', ' 2');
SELECT queue, payload, priority, max_attempts, expires_s, next_run_at FROM alkstore_schedules;
--> r| 2|0|3|NULL|1000000010
INSERT INTO alkstore_schedule(name, spec, queue, payload, priority) VALUES ('t', '@every 10s', 'r', ' 2', 1);
SELECT queue, payload, priority, max_attempts, expires_s, next_run_at FROM alkstore_schedules;
--> r| 2|1|3|NULL|1000000010
INSERT INTO alkstore_schedule(name, spec, queue, payload, priority, max_attempts) VALUES ('t', '@every 10s', 'r', ' 2', 1, 2);
SELECT queue, payload, priority, max_attempts, expires_s, next_run_at FROM alkstore_schedules;
--> r| 2|1|2|NULL|1000000010
INSERT INTO alkstore_schedule(name, spec, queue, payload, priority, max_attempts, expires_s) VALUES ('t', '@every 10s', 'r', ' 2', 1, 2, 3);
SELECT queue, payload, priority, max_attempts, expires_s, next_run_at FROM alkstore_schedules;
--> r| 2|1|2|3|1000000010
INSERT INTO alkstore_schedule(name, spec, queue, payload, priority, max_attempts) VALUES ('t', '@every 10s', 'r', ' 2', 1, 2);
SELECT queue, payload, priority, max_attempts, expires_s, next_run_at FROM alkstore_schedules;
--> r| 2|1|2|NULL|1000000010
