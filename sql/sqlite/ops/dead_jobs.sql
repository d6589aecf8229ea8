-- alkstore_dead_jobs: jobs that will not run again, with last_error and died_at.
-- To run one again: read it, enqueue its payload.
CREATE VIEW IF NOT EXISTS alkstore_dead_jobs AS
SELECT * FROM alkstore_jobs WHERE state = 'dead';
