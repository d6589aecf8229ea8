-- [leader] who asks first leads, under the reserved name
INSERT INTO alkstore_lead_schedules(owner, ttl_s) VALUES ('a', 30) RETURNING owner;
--> a
SELECT * FROM alkstore_locks;
--> __alkstore_scheduler|a|1000000000|1000000030

-- [leader] nobody else leads up to the very second of the deadline
INSERT INTO alkstore_lead_schedules(owner, ttl_s) VALUES ('a', 30);
UPDATE test_clock SET now = now + 30;
CREATE TABLE before AS SELECT total_changes() AS changes;
INSERT INTO alkstore_lead_schedules(owner, ttl_s) VALUES ('b', 30) RETURNING owner;
--> (no rows)
SELECT total_changes() - changes FROM before;
--> 0
SELECT owner, acquired_at, expires_at FROM alkstore_locks;
--> a|1000000000|1000000030

-- [leader] when the leader has lapsed, who asks first leads
INSERT INTO alkstore_lead_schedules(owner, ttl_s) VALUES ('a', 30);
UPDATE test_clock SET now = now + 31;
INSERT INTO alkstore_lead_schedules(owner, ttl_s) VALUES ('b', 20) RETURNING owner;
--> b
INSERT INTO alkstore_lead_schedules(owner, ttl_s) VALUES ('a', 30) RETURNING owner;
--> (no rows)
SELECT owner, acquired_at, expires_at FROM alkstore_locks;
--> b|1000000031|1000000051

-- [leader] the leader renews by asking again
INSERT INTO alkstore_lead_schedules(owner, ttl_s) VALUES ('a', 30);
UPDATE test_clock SET now = now + 10;
INSERT INTO alkstore_lead_schedules(owner, ttl_s) VALUES ('a', 5) RETURNING owner;
--> a
SELECT owner, acquired_at, expires_at FROM alkstore_locks;
--> a|1000000000|1000000015

-- [leader] a lapsed leader may lead anew
INSERT INTO alkstore_lead_schedules(owner, ttl_s) VALUES ('a', 30);
UPDATE test_clock SET now = now + 31;
INSERT INTO alkstore_lead_schedules(owner, ttl_s) VALUES ('a', 30) RETURNING owner;
--> a
SELECT owner, acquired_at, expires_at FROM alkstore_locks;
--> a|1000000031|1000000061

-- [leader] the leader resigns, once, and another may lead at once
INSERT INTO alkstore_lead_schedules(owner, ttl_s) VALUES ('a', 30);
CREATE TABLE before AS SELECT total_changes() AS changes;
INSERT INTO alkstore_resign_schedules(owner) VALUES ('b') RETURNING owner;
--> (no rows)
SELECT total_changes() - changes FROM before;
--> 0
INSERT INTO alkstore_resign_schedules(owner) VALUES ('a') RETURNING owner;
--> a
INSERT INTO alkstore_resign_schedules(owner) VALUES ('a') RETURNING owner;
--> (no rows)
INSERT INTO alkstore_lead_schedules(owner, ttl_s) VALUES ('b', 30) RETURNING owner;
--> b

-- [leader] who has lapsed has nothing to resign
INSERT INTO alkstore_lead_schedules(owner, ttl_s) VALUES ('a', 30);
UPDATE test_clock SET now = now + 31;
CREATE TABLE before AS SELECT total_changes() AS changes;
INSERT INTO alkstore_resign_schedules(owner) VALUES ('a') RETURNING owner;
--> (no rows)
SELECT total_changes() - changes FROM before;
--> 0

-- [name] lead and resign: an owner's name has 1 to 255 bytes, and may start with anything
INSERT INTO alkstore_lead_schedules(owner, ttl_s) VALUES (NULL, 30);
--! AK001 invalid_name: owner
INSERT INTO alkstore_lead_schedules(owner, ttl_s) VALUES ('', 30);
--! AK001 invalid_name: owner
INSERT INTO alkstore_lead_schedules(owner, ttl_s) VALUES (printf('%.256c', 'x'), 30);
--! AK001 invalid_name: owner
INSERT INTO alkstore_lead_schedules(owner, ttl_s) VALUES (replace(printf('%.128c', 'x'), 'x', 'é'), 30);
--! AK001 invalid_name: owner
INSERT INTO alkstore_lead_schedules(owner, ttl_s) VALUES ('a' || char(0), 30);
--! AK001 invalid_name: owner
INSERT INTO alkstore_lead_schedules(owner, ttl_s) VALUES (7, 30);
--! AK001 invalid_name: owner
INSERT INTO alkstore_lead_schedules(owner, ttl_s) VALUES ('__alkstore_x', 30) RETURNING owner;
--> __alkstore_x
INSERT INTO alkstore_resign_schedules(owner) VALUES (NULL);
--! AK001 invalid_name: owner
INSERT INTO alkstore_resign_schedules(owner) VALUES ('');
--! AK001 invalid_name: owner
INSERT INTO alkstore_resign_schedules(owner) VALUES (printf('%.256c', 'x'));
--! AK001 invalid_name: owner
INSERT INTO alkstore_resign_schedules(owner) VALUES (replace(printf('%.128c', 'x'), 'x', 'é'));
--! AK001 invalid_name: owner
INSERT INTO alkstore_resign_schedules(owner) VALUES ('a' || char(0));
--! AK001 invalid_name: owner
INSERT INTO alkstore_resign_schedules(owner) VALUES ('__alkstore_x') RETURNING owner;
--> __alkstore_x

-- [refusals] lead: ttl_s is required, from 1 to 2147483647
INSERT INTO alkstore_lead_schedules(owner, ttl_s) VALUES ('b', 30);
INSERT INTO alkstore_lead_schedules(owner, ttl_s) VALUES ('a', NULL);
--! AK003 invalid_option: ttl_s
INSERT INTO alkstore_lead_schedules(owner) VALUES ('a');
--! AK003 invalid_option: ttl_s
INSERT INTO alkstore_lead_schedules(owner, ttl_s) VALUES ('a', 0);
--! AK003 invalid_option: ttl_s
INSERT INTO alkstore_lead_schedules(owner, ttl_s) VALUES ('a', -1);
--! AK003 invalid_option: ttl_s
INSERT INTO alkstore_lead_schedules(owner, ttl_s) VALUES ('a', 2147483648);
--! AK003 invalid_option: ttl_s
INSERT INTO alkstore_lead_schedules(owner, ttl_s) VALUES ('a', '30');
--! AK003 invalid_option: ttl_s
INSERT INTO alkstore_lead_schedules(owner, ttl_s) VALUES ('a', 30.0);
--! AK003 invalid_option: ttl_s
SELECT owner, expires_at FROM alkstore_locks;
--> b|1000000030

-- [leader] the calls on locks do not reach the leadership
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES ('__alkstore_scheduler', 'a', 30);
--! AK001 invalid_name: name
INSERT INTO alkstore_renew_lock(name, owner, ttl_s) VALUES ('__alkstore_scheduler', 'a', 30);
--! AK001 invalid_name: name
INSERT INTO alkstore_release_lock(name, owner) VALUES ('__alkstore_scheduler', 'a');
--! AK001 invalid_name: name
INSERT INTO alkstore_lead_schedules(owner, ttl_s) VALUES ('a', 2147483647) RETURNING owner;
--> a

-- [leader] firing does not ask who leads
INSERT INTO alkstore_schedule(name, spec, queue, payload) VALUES ('s', '@every 10s', 'q', '1');
INSERT INTO alkstore_lead_schedules(owner, ttl_s) VALUES ('a', 30);
UPDATE test_clock SET now = now + 10;
INSERT INTO alkstore_fire_schedules DEFAULT VALUES;
SELECT * FROM alkstore_fired;
--> s|q|1|1000000010
