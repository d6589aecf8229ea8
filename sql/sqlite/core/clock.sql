-- The one clock, unix seconds. Tests replace this view; nothing else reads the time.
CREATE VIEW IF NOT EXISTS __alkstore_clock(now) AS SELECT unixepoch();
