"""Find the SQL, and make of its parts the one-file installers.

Run as a script with a folder as its argument, it writes them there.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

SCHEMA_VERSION = "0.1.0"
ENGINES = ("postgres", "sqlite")

_PACKAGED = Path(__file__).parent / "sql"
_CHECKOUT = Path(__file__).parents[2] / "sql"

# The schema's name as an identifier, also in a regclass literal; other literals and comments are passed over.
_SCHEMA_NAME = re.compile(
    r"--[^\n]*|'alkstore\.\w+'::regclass|'(?:[^']|'')*'|\balkstore\b(?=[.;]| FROM\b| IS\b)"
)

_POSTGRES_INSTALLER = """\
-- alkstore {version} for PostgreSQL (14 or later), in one file. Run it with any client.
-- It installs into the schema alkstore, or into another:  SET alkstore.schema = 'jobs';
-- All or nothing; a second time is a no-op; any number may run at once.
DO $alkstore_installer$
DECLARE
  target text := coalesce(nullif(current_setting('alkstore.schema', true), ''), 'alkstore');
  body text := $alkstore_body$
{body}$alkstore_body$;
  found text;
BEGIN
  PERFORM pg_catalog.pg_advisory_xact_lock(7021796452613521);
  IF pg_catalog.to_regprocedure(format('%I.version()', target)) IS NOT NULL THEN
    EXECUTE format('SELECT %I.version()', target) INTO found;
    IF found <> '{version}' THEN
      RAISE EXCEPTION 'alkstore % is installed in schema %; this installer brings {version}', found, target
        USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    RAISE NOTICE 'alkstore % is installed already', found;
    RETURN;
  END IF;
  -- The bodies' quotes become ones that no schema name can contain.
  body := replace(body, '$$', '$alkstore_' || md5(target) || '$');
  body := replace(body, '''@extschema@', '''' || replace(quote_ident(target), '''', ''''''));
  EXECUTE replace(body, '@extschema@', quote_ident(target));
END
$alkstore_installer$;
"""


def installer(engine: str) -> str:
    """The one-file installer of an engine, "postgres" or "sqlite": SQL without client commands.

    Raises ValueError for another engine.
    """
    if engine not in ENGINES:
        raise ValueError(f"no such engine: {engine!r} (there are {' and '.join(ENGINES)})")
    packaged = _PACKAGED / f"alkstore-{engine}.sql"
    if packaged.exists():
        return packaged.read_text(encoding="utf-8")
    return compose(engine, _CHECKOUT)


def compose(engine: str, sql_root: Path) -> str:
    """Put the parts that `install.sql` lists into one file."""
    table_of_contents = (sql_root / engine / "install.sql").read_text(encoding="utf-8")
    if engine == "sqlite":
        return _compose_sqlite(table_of_contents, sql_root.parent)
    parts = re.findall(r"^\\ir (\S+)$", table_of_contents, re.MULTILINE)
    body = "\n".join((sql_root / engine / part).read_text(encoding="utf-8") for part in parts)
    return _POSTGRES_INSTALLER.format(version=SCHEMA_VERSION, body=_mark_schema(body))


def _compose_sqlite(table_of_contents: str, checkout: Path) -> str:
    lines = []
    for line in table_of_contents.splitlines():
        if line.startswith(".read "):
            lines.append((checkout / line.removeprefix(".read ")).read_text(encoding="utf-8"))
        elif not line.startswith("."):
            lines.append(line)
    return "\n".join(lines) + "\n"


def _mark_schema(sql: str) -> str:
    """Write `@extschema@` for the schema's name, which is also what an extension script wants."""

    def mark(match: re.Match[str]) -> str:
        is_name = match[0] == "alkstore" or match[0].endswith("::regclass")
        return match[0].replace("alkstore", "@extschema@", 1) if is_name else match[0]

    return _SCHEMA_NAME.sub(mark, sql)


def write_installers(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for engine in ENGINES:
        text = compose(engine, _CHECKOUT)
        (folder / f"alkstore-{engine}.sql").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_installers(Path(sys.argv[1]))
