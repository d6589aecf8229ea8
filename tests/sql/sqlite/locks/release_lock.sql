-- [lock] release: the owner gives the lock back, once, and another may take it at once
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES ('l', 'a', 60), ('m', 'a', 60);
UPDATE test_clock SET now = now + 60;
INSERT INTO alkstore_release_lock(name, owner) VALUES ('l', 'a') RETURNING name;
--> l
INSERT INTO alkstore_release_lock(name, owner) VALUES ('l', 'a') RETURNING name;
--> (no rows)
SELECT name FROM alkstore_locks;
--> m
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES ('l', 'b', 60) RETURNING name;
--> l

-- [lock] release: who has lapsed has nothing to release
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES ('l', 'a', 60);
UPDATE test_clock SET now = now + 61;
CREATE TABLE before AS SELECT total_changes() AS changes;
INSERT INTO alkstore_release_lock(name, owner) VALUES ('l', 'a') RETURNING name;
--> (no rows)
SELECT total_changes() - changes FROM before;
--> 0

-- [idle] release: another's lock, or one that is free, is left alone
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES ('l', 'a', 60);
CREATE TABLE before AS SELECT total_changes() AS changes;
INSERT INTO alkstore_release_lock(name, owner) VALUES ('l', 'b'), ('l', 'A'), ('L', 'a'), ('none', 'a') RETURNING name;
--> (no rows)
SELECT total_changes() - changes FROM before;
--> 0

-- [name] release: a lock's name that cannot exist, or is reserved, is refused
INSERT INTO alkstore_release_lock(name, owner) VALUES (NULL, 'a');
--! AK001 invalid_name: name
INSERT INTO alkstore_release_lock(name, owner) VALUES ('', 'a');
--! AK001 invalid_name: name
INSERT INTO alkstore_release_lock(name, owner) VALUES (printf('%.256c', 'x'), 'a');
--! AK001 invalid_name: name
INSERT INTO alkstore_release_lock(name, owner) VALUES (replace(printf('%.128c', 'x'), 'x', 'é'), 'a');
--! AK001 invalid_name: name
INSERT INTO alkstore_release_lock(name, owner) VALUES ('__alkstore_', 'a');
--! AK001 invalid_name: name
INSERT INTO alkstore_release_lock(name, owner) VALUES ('__alkstore_x', 'a');
--! AK001 invalid_name: name
INSERT INTO alkstore_release_lock(name, owner) VALUES ('l' || char(0), 'a');
--! AK001 invalid_name: name
INSERT INTO alkstore_release_lock(name, owner) VALUES (x'6c', 'a');
--! AK001 invalid_name: name
INSERT INTO alkstore_release_lock(name, owner) VALUES (replace(printf('%.127c', 'x'), 'x', 'é'), 'a') RETURNING name;
--> (no rows)

-- [name] release: an owner's name has 1 to 255 bytes, and may start with anything
INSERT INTO alkstore_release_lock(name, owner) VALUES ('l', NULL);
--! AK001 invalid_name: owner
INSERT INTO alkstore_release_lock(name, owner) VALUES ('l', '');
--! AK001 invalid_name: owner
INSERT INTO alkstore_release_lock(name, owner) VALUES ('l', printf('%.256c', 'x'));
--! AK001 invalid_name: owner
INSERT INTO alkstore_release_lock(name, owner) VALUES ('l', replace(printf('%.128c', 'x'), 'x', 'é'));
--! AK001 invalid_name: owner
INSERT INTO alkstore_release_lock(name, owner) VALUES ('l', 'a' || char(0));
--! AK001 invalid_name: owner
INSERT INTO alkstore_release_lock(name, owner) VALUES ('l', 7);
--! AK001 invalid_name: owner
INSERT INTO alkstore_release_lock(name, owner) VALUES ('l', '__alkstore_x') RETURNING name;
--> (no rows)
