-- plpgsql_check, with all its warnings, on every function
SELECT NOT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'plpgsql_check') AS missing,
  current_setting('server_version') AS version \gset
\if :missing
\echo '1..0 # SKIP no plpgsql_check in this PostgreSQL' :version
\quit
\endif

BEGIN;
SELECT plan(3);

SET LOCAL client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS plpgsql_check SCHEMA tap;

CREATE TEMPORARY TABLE checked AS
SELECT p.proname AS name, complaint
FROM pg_proc p
JOIN pg_language l ON l.oid = p.prolang AND l.lanname = 'plpgsql'
LEFT JOIN LATERAL tap.plpgsql_check_function(
  p.oid, fatal_errors => false, all_warnings => true, anycompatibletype => 'text') complaint ON true
WHERE p.pronamespace = 'alkstore'::regnamespace;

-- Wrong ones, and why.
CREATE TEMPORARY TABLE excused AS
SELECT * FROM (VALUES
  -- It locks rows, which a STABLE function may not.
  ('_pick_with_due'::name, 'performance:00000:routine is marked as VOLATILE, should be STABLE')
) e (name, complaint);

SELECT cmp_ok(count(DISTINCT name), '>', 40::bigint, '[lint] plpgsql_check: it sees the functions') FROM checked;
SELECT is(
  ARRAY(
    SELECT concat_ws(': ', c.name, c.complaint) FROM checked c
    WHERE c.complaint IS NOT NULL AND c.complaint !~ '^(Detail|Hint|Context):'
      AND NOT EXISTS (SELECT FROM excused e WHERE e.name = c.name AND e.complaint = c.complaint)
    ORDER BY 1),
  '{}', '[lint] plpgsql_check: no complaint about any function');
SELECT is(
  ARRAY(
    SELECT concat_ws(': ', e.name, e.complaint) FROM excused e
    WHERE NOT EXISTS (SELECT FROM checked c WHERE e.name = c.name AND e.complaint = c.complaint)),
  '{}', '[lint] plpgsql_check: every excuse is needed');

SELECT * FROM finish();
ROLLBACK;
