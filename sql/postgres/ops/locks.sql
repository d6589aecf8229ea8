-- Who holds which lock now.
CREATE VIEW alkstore.locks AS
SELECT l.name, l.owner, l.acquired_at, l.expires_at
FROM alkstore._lock l
WHERE l.expires_at >= (SELECT alkstore._now());
COMMENT ON VIEW alkstore.locks IS 'Locks that are held now; __alkstore_scheduler is the leadership of the schedule runners.';
