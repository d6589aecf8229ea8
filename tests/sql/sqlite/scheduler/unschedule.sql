-- [schedule] unschedule: no more boundaries, not even a missed one; jobs that fired stay
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 10s', 'q', '1'), ('t', '@every 10s', 'q', '2');
UPDATE test_clock SET now = now + 25;
INSERT INTO alkstore_fire_schedules DEFAULT VALUES;
UPDATE test_clock SET now = now + 10;
INSERT INTO alkstore_unschedule(name) VALUES ('s') RETURNING name;
--> s
SELECT name FROM alkstore_schedules;
--> t
INSERT INTO alkstore_fire_schedules DEFAULT VALUES;
SELECT name, boundary FROM alkstore_fired;
--> t|1000000030
SELECT job_id, payload FROM alkstore_jobs ORDER BY job_id;
--> 1|1
--> 2|1
--> 3|2
--> 4|2
--> 5|2

-- [schedule] unschedule: true once
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 10s', 'q', '1');
INSERT INTO alkstore_unschedule(name) VALUES ('s') RETURNING name;
--> s
INSERT INTO alkstore_unschedule(name) VALUES ('s') RETURNING name;
--> (no rows)

-- [idle] unschedule: a name that has no schedule writes nothing
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 10s', 'q', '1');
CREATE TABLE before AS SELECT total_changes() AS changes;
INSERT INTO alkstore_unschedule(name) VALUES ('S'), ('s '), ('ss'), ('q') RETURNING name;
--> (no rows)
SELECT total_changes() - changes FROM before;
--> 0

-- [refusals] unschedule: a name that cannot exist is AK001
INSERT INTO alkstore_unschedule(name) VALUES (NULL);
--! AK001 invalid_name: name
INSERT INTO alkstore_unschedule DEFAULT VALUES;
--! AK001 invalid_name: name
INSERT INTO alkstore_unschedule(name) VALUES ('');
--! AK001 invalid_name: name
INSERT INTO alkstore_unschedule(name) VALUES (printf('%.256c', 'x'));
--! AK001 invalid_name: name
INSERT INTO alkstore_unschedule(name) VALUES (replace(printf('%.128c', 'x'), 'x', 'é'));
--! AK001 invalid_name: name
INSERT INTO alkstore_unschedule(name) VALUES ('s' || char(0));
--! AK001 invalid_name: name
INSERT INTO alkstore_unschedule(name) VALUES (x'73');
--! AK001 invalid_name: name
INSERT INTO alkstore_unschedule(name) VALUES (replace(printf('%.127c', 'x'), 'x', 'é')) RETURNING name;
--> (no rows)

-- [name] unschedule: a reserved name is refused
INSERT INTO alkstore_unschedule(name) VALUES ('__alkstore_');
--! AK001 invalid_name: name
INSERT INTO alkstore_unschedule(name) VALUES ('__alkstore_scheduler');
--! AK001 invalid_name: name
INSERT INTO alkstore_unschedule(name) VALUES ('__alkstore') RETURNING name;
--> (no rows)

-- [schedule] unschedule: many at once are judged one by one
INSERT INTO alkstore_schedule(name, spec, queue, payload)
VALUES ('a', '@every 10s', 'q', '1'), ('b', '@every 10s', 'q', '1'), ('c', '@every 10s', 'q', '1');
INSERT INTO alkstore_unschedule(name) VALUES ('a'), ('x'), ('c') RETURNING name;
--> a
--> c
SELECT name FROM alkstore_schedules;
--> b
