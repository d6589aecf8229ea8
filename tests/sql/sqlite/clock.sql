-- The clock of a test, in place of the real one. It stands still at 2001-09-09 01:46:40 UTC until
-- the test moves it: UPDATE test_clock SET now = now + 301;

CREATE TABLE test_clock (now INTEGER NOT NULL);
INSERT INTO test_clock VALUES (1000000000);
DROP VIEW __alkstore_clock;
CREATE VIEW __alkstore_clock (now) AS SELECT now FROM test_clock;
