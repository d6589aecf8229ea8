-- [lock] renew: the owner renews up to the very second of the deadline, to ttl_s from now
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES ('l', 'a', 60);
UPDATE test_clock SET now = now + 60;
INSERT INTO alkstore_renew_lock(name, owner, ttl_s) VALUES ('l', 'a', 5) RETURNING name;
--> l
SELECT * FROM alkstore_locks;
--> l|a|1000000000|1000000065

-- [lock] renew: who has lapsed is refused even if nobody took the lock
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES ('l', 'a', 60);
UPDATE test_clock SET now = now + 61;
CREATE TABLE before AS SELECT total_changes() AS changes;
INSERT INTO alkstore_renew_lock(name, owner, ttl_s) VALUES ('l', 'a', 60) RETURNING name;
--> (no rows)
SELECT total_changes() - changes FROM before;
--> 0

-- [lock] renew: whose lock was taken is refused
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES ('l', 'a', 60);
UPDATE test_clock SET now = now + 61;
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES ('l', 'b', 60);
INSERT INTO alkstore_renew_lock(name, owner, ttl_s) VALUES ('l', 'a', 60) RETURNING name;
--> (no rows)
SELECT * FROM alkstore_locks;
--> l|b|1000000061|1000000121

-- [idle] renew: another's lock, or one that is free, is left alone
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES ('l', 'a', 60);
CREATE TABLE before AS SELECT total_changes() AS changes;
INSERT INTO alkstore_renew_lock(name, owner, ttl_s) VALUES ('l', 'b', 60), ('l', 'A', 60), ('L', 'a', 60), ('none', 'a', 60)
RETURNING name;
--> (no rows)
SELECT total_changes() - changes FROM before;
--> 0

-- [name] renew: a lock's name that cannot exist, or is reserved, is refused
INSERT INTO alkstore_renew_lock(name, owner, ttl_s) VALUES (NULL, 'a', 60);
--! AK001 invalid_name: name
INSERT INTO alkstore_renew_lock(name, owner, ttl_s) VALUES ('', 'a', 60);
--! AK001 invalid_name: name
INSERT INTO alkstore_renew_lock(name, owner, ttl_s) VALUES (printf('%.256c', 'x'), 'a', 60);
--! AK001 invalid_name: name
INSERT INTO alkstore_renew_lock(name, owner, ttl_s) VALUES (replace(printf('%.128c', 'x'), 'x', 'é'), 'a', 60);
--! AK001 invalid_name: name
INSERT INTO alkstore_renew_lock(name, owner, ttl_s) VALUES ('__alkstore_', 'a', 60);
--! AK001 invalid_name: name
INSERT INTO alkstore_renew_lock(name, owner, ttl_s) VALUES ('__alkstore_x', 'a', 60);
--! AK001 invalid_name: name
INSERT INTO alkstore_renew_lock(name, owner, ttl_s) VALUES ('l' || char(0), 'a', 60);
--! AK001 invalid_name: name
INSERT INTO alkstore_renew_lock(name, owner, ttl_s) VALUES (x'6c', 'a', 60);
--! AK001 invalid_name: name
INSERT INTO alkstore_renew_lock(name, owner, ttl_s) VALUES (replace(printf('%.127c', 'x'), 'x', 'é'), 'a', 60) RETURNING name;
--> (no rows)

-- [name] renew: an owner's name has 1 to 255 bytes, and may start with anything
INSERT INTO alkstore_renew_lock(name, owner, ttl_s) VALUES ('l', NULL, 60);
--! AK001 invalid_name: owner
INSERT INTO alkstore_renew_lock(name, owner, ttl_s) VALUES ('l', '', 60);
--! AK001 invalid_name: owner
INSERT INTO alkstore_renew_lock(name, owner, ttl_s) VALUES ('l', printf('%.256c', 'x'), 60);
--! AK001 invalid_name: owner
INSERT INTO alkstore_renew_lock(name, owner, ttl_s) VALUES ('l', replace(printf('%.128c', 'x'), 'x', 'é'), 60);
--! AK001 invalid_name: owner
INSERT INTO alkstore_renew_lock(name, owner, ttl_s) VALUES ('l', 'a' || char(0), 60);
--! AK001 invalid_name: owner
INSERT INTO alkstore_renew_lock(name, owner, ttl_s) VALUES ('l', 7, 60);
--! AK001 invalid_name: owner
INSERT INTO alkstore_renew_lock(name, owner, ttl_s) VALUES ('l', '__alkstore_x', 60) RETURNING name;
--> (no rows)

-- [refusals] renew: ttl_s is required, from 1 to 2147483647
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES ('l', 'a', 60);
INSERT INTO alkstore_renew_lock(name, owner, ttl_s) VALUES ('l', 'a', NULL);
--! AK003 invalid_option: ttl_s
INSERT INTO alkstore_renew_lock(name, owner, ttl_s) VALUES ('l', 'a', 0);
--! AK003 invalid_option: ttl_s
INSERT INTO alkstore_renew_lock(name, owner, ttl_s) VALUES ('l', 'a', -1);
--! AK003 invalid_option: ttl_s
INSERT INTO alkstore_renew_lock(name, owner, ttl_s) VALUES ('l', 'a', 2147483648);
--! AK003 invalid_option: ttl_s
INSERT INTO alkstore_renew_lock(name, owner, ttl_s) VALUES ('l', 'a', '60');
--! AK003 invalid_option: ttl_s
INSERT INTO alkstore_renew_lock(name, owner, ttl_s) VALUES ('l', 'a', 60.0);
--! AK003 invalid_option: ttl_s
INSERT INTO alkstore_renew_lock(name, owner) VALUES ('l', 'a');
--! AK003 invalid_option: ttl_s
INSERT INTO alkstore_renew_lock(name, owner, ttl_s) VALUES ('none', 'a', 0);
--! AK003 invalid_option: ttl_s
INSERT INTO alkstore_renew_lock(name, owner, ttl_s) VALUES ('l', 'a', 2147483647) RETURNING name;
--> l
SELECT * FROM alkstore_locks;
--> l|a|1000000000|3147483647
