-- [schedule] schedules: its columns, in order
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 90m', 'q', '1');
SELECT name FROM pragma_table_info('alkstore_schedules') ORDER BY cid;
--> name
--> spec
--> queue
--> payload
--> priority
--> max_attempts
--> expires_s
--> next_run_at
--> last_error
--> created_at

-- [schedule] schedules: every schedule with its next boundary
INSERT INTO alkstore_schedule(name, spec, queue, payload, priority, max_attempts, expires_s)
VALUES ('s', '@every 90m', 'q', '{"a":1}', 7, 5, 60);
UPDATE test_clock SET now = now + 3;
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('t', '@every 1s', 'r', '2');
SELECT * FROM alkstore_schedules ORDER BY name;
--> s|@every 90m|q|{"a":1}|7|5|60|1000005400|NULL|1000000000
--> t|@every 1s|r|2|0|3|NULL|1000000004|NULL|1000000003
