-- The dead letters: what failed for good, and why.
CREATE VIEW alkstore.dead_jobs AS
SELECT * FROM alkstore.jobs j WHERE j.state = 'dead';
COMMENT ON VIEW alkstore.dead_jobs IS
'Jobs that will not run again, with last_error and died_at. To run one again: read it, enqueue its payload.';
