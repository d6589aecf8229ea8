-- [lock] locks: its columns, in order
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES ('l', 'a', 60);
SELECT name FROM pragma_table_info('alkstore_locks') ORDER BY cid;
--> name
--> owner
--> acquired_at
--> expires_at

-- [lock] locks: those held now, the leadership among them
INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES ('short', 'a', 10), ('long', 'b', 60), ('released', 'c', 60);
INSERT INTO alkstore_lead_schedules(owner, ttl_s) VALUES ('d', 10);
INSERT INTO alkstore_release_lock(name, owner) VALUES ('released', 'c');
UPDATE test_clock SET now = now + 10;
SELECT * FROM alkstore_locks ORDER BY name;
--> __alkstore_scheduler|d|1000000000|1000000010
--> long|b|1000000000|1000000060
--> short|a|1000000000|1000000010
UPDATE test_clock SET now = now + 1;
SELECT * FROM alkstore_locks;
--> long|b|1000000000|1000000060
