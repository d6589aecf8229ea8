-- alkstore_locks: locks that are held now; __alkstore_scheduler is the leadership of the schedule runners.
CREATE VIEW IF NOT EXISTS alkstore_locks AS
SELECT l.name, l.owner, l.acquired_at, l.expires_at
FROM __alkstore_lock l, __alkstore_clock c
WHERE l.expires_at >= c.now;
