-- what the catalogs say of every object
BEGIN;
SELECT plan(13);

CREATE TEMPORARY TABLE functions AS
SELECT p.oid, p.proname::text AS name, regexp_replace(p.prosrc, '--[^\n]*', '', 'g') AS source, p.provolatile AS volatility, p.prosecdef AS definer, p.proconfig AS settings,
  l.lanname AS language, left(p.proname, 1) = '_' AS private
FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
WHERE p.pronamespace = 'alkstore'::regnamespace;

SELECT is(
  ARRAY(SELECT name FROM functions WHERE NOT private AND 'search_path=pg_catalog, pg_temp' <> ALL (coalesce(settings, '{}')) ORDER BY 1),
  '{}', '[lint] every public function pins its search_path');
SELECT is(
  ARRAY(
    SELECT name FROM functions
    WHERE source ~* '\mexecute\M' AND (definer OR 'search_path=pg_catalog, pg_temp' <> ALL (coalesce(settings, '{}'))) ORDER BY 1),
  '{}', '[lint] what makes SQL at run time pins its search_path and is no definer');
SELECT is(
  ARRAY(SELECT name FROM functions WHERE private AND definer ORDER BY 1),
  '{}', '[lint] no private function is a definer');
SELECT is(
  ARRAY(SELECT name FROM functions WHERE language NOT IN ('sql', 'plpgsql') ORDER BY 1),
  '{}', '[lint] SQL and PL/pgSQL only');
SELECT is(
  ARRAY(SELECT name FROM functions WHERE strpos(source, '\') > 0 ORDER BY 1),
  '{}', '[lint] no body reads otherwise with standard_conforming_strings off');

SELECT is(
  ARRAY(
    SELECT name FROM functions WHERE NOT private AND obj_description(oid, 'pg_proc') IS NULL
    UNION ALL
    SELECT c.relname::text FROM pg_class c
    WHERE c.relnamespace = 'alkstore'::regnamespace AND c.relkind = 'v' AND obj_description(c.oid, 'pg_class') IS NULL
    UNION ALL
    SELECT t.typname::text FROM pg_type t JOIN pg_class c ON c.oid = t.typrelid
    WHERE t.typnamespace = 'alkstore'::regnamespace AND c.relkind = 'c' AND obj_description(t.oid, 'pg_type') IS NULL
    ORDER BY 1),
  '{}', '[lint] every public function, view and type has a comment');
SELECT is(
  obj_description('alkstore'::regnamespace), 'alkstore: a durable job queue. Start with the views jobs, dead_jobs and queue_stats.',
  '[lint] the schema has a comment');

-- i < s < v happens to be the order of their letters. A name of PostgreSQL's may stand for several functions: the least
-- volatile is meant.
CREATE TEMPORARY TABLE callable AS
SELECT 'alkstore.' || name AS name, max(volatility) AS volatility FROM functions GROUP BY 1
UNION ALL
SELECT p.proname, min(p.provolatile) FROM pg_proc p WHERE p.pronamespace = 'pg_catalog'::regnamespace GROUP BY 1;
SELECT is(
  ARRAY(
    SELECT DISTINCT f.name || ' calls ' || c.name
    FROM functions f
    CROSS JOIN LATERAL regexp_matches(f.source, '((?:alkstore\.)?\w+)\s*\(', 'g') m
    JOIN callable c ON c.name = m[1] AND c.volatility > f.volatility
    ORDER BY 1),
  '{}', '[lint] no function is marked as steadier than what it calls');
SELECT is(
  ARRAY(
    SELECT name FROM functions
    WHERE (volatility <> 'v' AND source ~* '\m(insert|update|delete|for (update|share|key share)|notify|setval|nextval)\M')
      OR (volatility = 'i' AND source ~* '\m(from|join)\s+alkstore\.')
    ORDER BY 1),
  '{}', '[lint] what writes is volatile, what reads tables is not immutable');

SELECT is(
  ARRAY(
    SELECT o.name || ': ' || a.privilege_type
    FROM (
      SELECT nspname, coalesce(nspacl, acldefault('n', nspowner)) FROM pg_namespace WHERE nspname = 'alkstore'
      UNION ALL
      SELECT proname, coalesce(proacl, acldefault('f', proowner)) FROM pg_proc WHERE pronamespace = 'alkstore'::regnamespace
      UNION ALL
      SELECT relname, coalesce(relacl, acldefault(CASE relkind WHEN 'S' THEN 's'::"char" ELSE 'r' END, relowner))
      FROM pg_class WHERE relnamespace = 'alkstore'::regnamespace AND relkind IN ('r', 'v', 'S')
      UNION ALL
      SELECT t.typname, coalesce(t.typacl, acldefault('T', t.typowner)) FROM pg_type t JOIN pg_class c ON c.oid = t.typrelid
      WHERE t.typnamespace = 'alkstore'::regnamespace AND c.relkind = 'c'
    ) o (name, acl), aclexplode(o.acl) a
    WHERE a.grantee = 0 ORDER BY 1),
  '{}', '[lint] nothing is granted to PUBLIC');

SELECT is(
  ARRAY(
    SELECT c.relname || '.' || a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE c.relnamespace = 'alkstore'::regnamespace AND c.relkind = 'r' AND a.attnum > 0
      AND a.atttypid = 'text'::regtype AND a.attcollation <> '"C"'::regcollation
    ORDER BY 1),
  '{}', '[lint] every text column is compared byte by byte');
SELECT is(
  ARRAY(
    SELECT c.relname FROM pg_class c
    WHERE c.relnamespace = 'alkstore'::regnamespace AND c.relkind = 'r'
      AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conrelid = c.oid AND k.contype = 'p')
    ORDER BY 1),
  '{}', '[lint] every table has a primary key');
SELECT is(
  ARRAY(
    SELECT c.relkind::text || ' ' || c.relname FROM pg_class c
    WHERE c.relnamespace = 'alkstore'::regnamespace AND c.relkind IN ('r', 'S', 'm', 'p', 'f') ORDER BY 1),
  ARRAY['S _job_id_seq', 'r _dead_job', 'r _job', 'r _lock', 'r _schedule'],
  '[lint] four tables and one sequence: what a dump has to keep');

SELECT * FROM finish();
ROLLBACK;
