-- The installed version, and what refuses to go on where this installer must not.
-- SQLite raises errors of its own making only in triggers; a bad JSON path is an error that quotes a text.
SELECT json_extract('{}', 'alkstore needs SQLite 3.38 or later; this is SQLite ' || sqlite_version())
WHERE CAST(substr(sqlite_version(), 3) AS REAL) < 38;

SELECT json_extract('{}', 'alkstore needs a database in UTF-8; this one is in ' || encoding)
FROM pragma_encoding
WHERE encoding <> 'UTF-8';

SELECT json_extract('{}', 'another version of alkstore is installed; this installer brings 0.1.0. Installed is: ' || sql)
FROM sqlite_schema
WHERE name = 'alkstore_version' AND sql NOT LIKE '%''0.1.0''%';

-- alkstore_version: the version of the schema that is installed.
CREATE VIEW IF NOT EXISTS alkstore_version(version) AS SELECT '0.1.0';
