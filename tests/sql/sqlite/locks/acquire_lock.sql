-- [lock] acquire: a free lock is taken
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES ('l', 'a', 60) RETURNING name;
--> l
SELECT * FROM alkstore_locks;
--> l|a|1000000000|1000000060

-- [lock] acquire: a held lock is refused up to the very second of its deadline
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES ('l', 'a', 60);
UPDATE test_clock SET now = now + 60;
CREATE TABLE before AS SELECT total_changes() AS changes;
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES ('l', 'b', 60) RETURNING name;
--> (no rows)
SELECT total_changes() - changes FROM before;
--> 0
SELECT * FROM alkstore_locks;
--> l|a|1000000000|1000000060

-- [lock] acquire: a lapsed lock is taken by anyone
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES ('l', 'a', 60);
UPDATE test_clock SET now = now + 61;
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES ('l', 'b', 5) RETURNING name;
--> l
SELECT * FROM alkstore_locks;
--> l|b|1000000061|1000000066

-- [lock] acquire: the owner of a lapsed lock takes it anew
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES ('l', 'a', 60);
UPDATE test_clock SET now = now + 61;
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES ('l', 'a', 5) RETURNING name;
--> l
SELECT * FROM alkstore_locks;
--> l|a|1000000061|1000000066

-- [lock] acquire: the owner renews, to ttl_s from now and not added
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES ('l', 'a', 60);
UPDATE test_clock SET now = now + 60;
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES ('l', 'a', 5) RETURNING name;
--> l
SELECT * FROM alkstore_locks;
--> l|a|1000000000|1000000065

-- [lock] acquire: names and owners that differ in a byte are different
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES ('l', 'a', 60), ('L', 'b', 60), ('l ', 'c', 60), ('l', 'A', 60)
RETURNING name || '.';
--> l.
--> L.
--> l .
SELECT name, owner FROM alkstore_locks ORDER BY name;
--> L|b
--> l|a
--> l |c

-- [name] acquire: a lock's name that cannot exist, or is reserved, is refused
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES (NULL, 'a', 60);
--! AK001 invalid_name: name
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES ('', 'a', 60);
--! AK001 invalid_name: name
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES (printf('%.256c', 'x'), 'a', 60);
--! AK001 invalid_name: name
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES (replace(printf('%.128c', 'x'), 'x', 'é'), 'a', 60);
--! AK001 invalid_name: name
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES ('__alkstore_', 'a', 60);
--! AK001 invalid_name: name
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES ('__alkstore_x', 'a', 60);
--! AK001 invalid_name: name
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES ('l' || char(0), 'a', 60);
--! AK001 invalid_name: name
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES (x'6c', 'a', 60);
--! AK001 invalid_name: name
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES (replace(printf('%.127c', 'x'), 'x', 'é'), 'a', 60) RETURNING name;
--> ééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééé

-- [name] acquire: an owner's name has 1 to 255 bytes, and may start with anything
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES ('l', NULL, 60);
--! AK001 invalid_name: owner
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES ('l', '', 60);
--! AK001 invalid_name: owner
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES ('l', printf('%.256c', 'x'), 60);
--! AK001 invalid_name: owner
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES ('l', replace(printf('%.128c', 'x'), 'x', 'é'), 60);
--! AK001 invalid_name: owner
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES ('l', 'a' || char(0), 60);
--! AK001 invalid_name: owner
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES ('l', 7, 60);
--! AK001 invalid_name: owner
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES ('l', '__alkstore_x', 60) RETURNING name;
--> l

-- [refusals] acquire: ttl_s is required, from 1 to 2147483647
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES ('l', 'a', 60);
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES ('l', 'a', NULL);
--! AK003 invalid_option: ttl_s
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES ('l', 'a', 0);
--! AK003 invalid_option: ttl_s
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES ('l', 'a', -1);
--! AK003 invalid_option: ttl_s
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES ('l', 'a', 2147483648);
--! AK003 invalid_option: ttl_s
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES ('l', 'a', '60');
--! AK003 invalid_option: ttl_s
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES ('l', 'a', 60.0);
--! AK003 invalid_option: ttl_s
INSERT INTO alkstore_acquire_lock(name, owner) VALUES ('l', 'a');
--! AK003 invalid_option: ttl_s
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES ('l', 'b', 0);
--! AK003 invalid_option: ttl_s
SELECT * FROM alkstore_locks;
--> l|a|1000000000|1000000060

-- [refusals] acquire: name, owner and ttl_s are judged in this order
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES ('', '', 0);
--! AK001 invalid_name: name
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES ('l', '', 0);
--! AK001 invalid_name: owner
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES ('l', 'a', 0);
--! AK003 invalid_option: ttl_s
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES ('l', 'a', 2147483647) RETURNING name;
--> l
SELECT * FROM alkstore_locks;
--> l|a|1000000000|3147483647

-- [lock] acquire: it belongs to the caller's transaction
BEGIN;
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES ('l', 'a', 60);
ROLLBACK;
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES ('l', 'b', 60) RETURNING name;
--> l
