"""Find the SQL, and make of its parts the one-file installers.

Run as a script with a folder as its argument, it writes them there.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

SCHEMA_VERSION = "0.1.0"
ENGINES = ("postgres", "sqlite")

_PACKAGED = Path(__file__).parent / "sql"
_CHECKOUT = Path(__file__).parents[2] / "sql"

# The schema's name: as an identifier, or as a literal that is a name. Other literals and comments
# are passed over.
_SCHEMA_NAME = re.compile(
    r"--[^\n]*|'alkstore'|'alkstore\.\w+'::reg\w+|'(?:[^']|'')*'|\balkstore\b(?=[.;]| FROM\b| IS\b)"
)

# The version that is installed is read and not called: the function could be anybody's.
_POSTGRES_BLOCK = """\
DO $alkstore_installer$
DECLARE
  body text := $alkstore_body$
{body}$alkstore_body$;
  caller_path text := pg_catalog.current_setting('search_path');
  target text;
  found text;
  mark text;
  hint text;
BEGIN
  SET LOCAL search_path = pg_catalog, pg_temp;
  PERFORM pg_advisory_xact_lock(7021796452613521);
  target := {target};
  found := (
    SELECT substring(p.prosrc FROM '^ SELECT ''([^'']+)'' $') FROM pg_catalog.pg_proc p
    WHERE p.oid = to_regprocedure(format('%I.version()', target)));
  IF found IS NULL THEN
    -- Marks and quotes become ones that the schema's name does not contain.
    mark := '@' || md5(target) || '@';
    body := replace(body, '@alkstore@', mark);
    body := replace(body, '$$', '$alkstore_' || md5(target) || '$');
    body := replace(body, '''' || mark, '''' || replace(quote_ident(target), '''', ''''''));
    BEGIN
      EXECUTE replace(body, mark, quote_ident(target));
    EXCEPTION WHEN OTHERS THEN  -- raised anew without its context, which is all of the above
      GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
      IF hint = '' THEN
        RAISE EXCEPTION USING ERRCODE = SQLSTATE, MESSAGE = SQLERRM;
      END IF;
      RAISE EXCEPTION USING ERRCODE = SQLSTATE, MESSAGE = SQLERRM, HINT = hint;
    END;
{otherwise}
  END IF;
  PERFORM set_config('search_path', caller_path, true);
END
$alkstore_installer$;
"""

_POSTGRES_INSTALLER = """\
-- alkstore {version} for PostgreSQL (14 or later), in one file. Run it with any client.
-- It installs into the schema alkstore, or into another:  SET alkstore.schema = 'jobs';
-- All or nothing; a second time is a no-op; any number may run at once.
{block}"""

_SQLITE_TITLE = """\
-- alkstore {version} for SQLite (3.38 or later), in one file. Run it with any client, while no
-- transaction is open."""

_ALREADY_INSTALLED = """\
  ELSIF found = '{version}' THEN
    RAISE NOTICE 'alkstore % is installed already', found;
  ELSE
    RAISE EXCEPTION 'alkstore % is installed in schema %; this installer brings {version}',
      found, target USING ERRCODE = 'object_not_in_prerequisite_state';"""

_POSTGRES_EXTENSION = """\
\\echo Use "CREATE EXTENSION alkstore" to load this file. \\quit
-- alkstore {version} as an extension: in the schema that CREATE EXTENSION names. The default is
-- usually public, which is everybody's: instead of it a schema alkstore is made.
{block}"""

# What a dump of the extension carries: the rows, for all else is CREATE EXTENSION's.
_EXTENSION_DATA = """\
    DECLARE
      data regclass;
    BEGIN
      FOR data IN
        SELECT c.oid FROM pg_catalog.pg_class c
        WHERE c.relnamespace = quote_ident(target)::regnamespace AND c.relkind IN ('r', 'S')
      LOOP
        PERFORM pg_extension_config_dump(data, '');
      END LOOP;
    END;
  ELSE
    RAISE EXCEPTION 'alkstore % is installed in schema % already, not as an extension',
      found, target USING ERRCODE = 'object_not_in_prerequisite_state';"""


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
    if engine == "sqlite":
        return _compose_sqlite(sql_root)
    target = "coalesce(nullif(current_setting('alkstore.schema', true), ''), 'alkstore')"
    otherwise = _ALREADY_INSTALLED.format(version=SCHEMA_VERSION)
    block = _postgres_block(_postgres_parts(sql_root), target, otherwise)
    return _POSTGRES_INSTALLER.format(version=SCHEMA_VERSION, block=block)


def compose_extension(sql_root: Path) -> str:
    """The script of the PostgreSQL extension: the same parts, run by CREATE EXTENSION."""
    target = """(SELECT CASE n.nspname WHEN 'public' THEN 'alkstore' ELSE n.nspname END
    FROM pg_catalog.pg_namespace n WHERE n.oid = '@extschema@'::regnamespace)"""
    schema, *rest = _postgres_parts(sql_root)
    # Two statements, since an error shows the statement: what can be refused is in the short one.
    blocks = [_postgres_block(parts, target, _EXTENSION_DATA) for parts in ([schema], rest)]
    return _POSTGRES_EXTENSION.format(version=SCHEMA_VERSION, block="\n".join(blocks))


def _postgres_parts(sql_root: Path) -> list[str]:
    table_of_contents = (sql_root / "postgres/install.sql").read_text(encoding="utf-8")
    names = re.findall(r"^\\ir (\S+)$", table_of_contents, re.MULTILINE)
    return [(sql_root / "postgres" / name).read_text(encoding="utf-8") for name in names]


def _postgres_block(parts: Sequence[str], target: str, otherwise: str) -> str:
    body = _mark_schema("\n".join(parts))
    return _POSTGRES_BLOCK.format(body=body, target=target, otherwise=otherwise)


def _compose_sqlite(sql_root: Path) -> str:
    table_of_contents = (sql_root / "sqlite/install.sql").read_text(encoding="utf-8")
    lines = [_SQLITE_TITLE.format(version=SCHEMA_VERSION)]
    for line in table_of_contents.splitlines()[1:]:  # the first line is for the shell
        if line.startswith(".read "):
            part = sql_root.parent / line.removeprefix(".read ")
            lines.append(part.read_text(encoding="utf-8"))
        elif not line.startswith("."):
            lines.append(line)
    return "\n".join(lines) + "\n"


def _mark_schema(sql: str) -> str:
    """Write `@alkstore@` wherever the schema's name stands."""

    def mark(match: re.Match[str]) -> str:
        is_name = match[0] in ("alkstore", "'alkstore'") or "'::reg" in match[0]
        return match[0].replace("alkstore", "@alkstore@", 1) if is_name else match[0]

    return _SCHEMA_NAME.sub(mark, sql)


def write_installers(folder: Path) -> None:
    """The one-file installers, and a folder with the files of the PostgreSQL extension."""
    files = {f"alkstore-{engine}.sql": compose(engine, _CHECKOUT) for engine in ENGINES}
    files |= {
        f"extension/alkstore--{SCHEMA_VERSION}.sql": compose_extension(_CHECKOUT),
        "extension/alkstore.control": (_CHECKOUT / "postgres/alkstore.control").read_text(),
        "extension/Makefile": (_CHECKOUT / "postgres/extension.mk").read_text(),
    }
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_installers(Path(sys.argv[1]))
