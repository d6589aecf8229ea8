"""The installed schema as text, docs/schema/{postgres,sqlite}.sql, so that a diff shows a change.

Type: make schema-dump

tests/python/test_schema_dump.py fails when they are not what the sources make.
"""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

from alkstore._sql import installer
from tests.harness import pgtap
from tests.harness.server import URL_VARIABLE

FOLDER = Path(__file__).resolve().parents[2] / "docs/schema"
HEAD = "-- What {} makes, written by `make schema-dump`. Not for installing.\n\n"
DATABASE = "alkstore_schema_dump"


def postgres(server: str) -> str:
    """By pg_dump, which is the server's own or a later one."""
    drop = ["-c", f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)"]
    pgtap.psql(*drop, "-c", f"CREATE DATABASE {DATABASE}", database=server)
    url = server.rpartition("/")[0] + "/" + DATABASE
    pgtap.psql("-f", pgtap.INSTALL, database=url)
    pg_dump = ["pg_dump", "--schema-only", "--no-owner", "-d", url]
    text = subprocess.check_output(pg_dump, text=True)
    pgtap.psql(*drop, database=server)
    return HEAD.format("sql/postgres/install.sql") + alike(text)


def alike(dump: str) -> str:
    """A dump with the same text from every version of PostgreSQL and pg_dump."""
    # What belongs to the dump and not to the schema, up to the first object.
    dump = dump[dump.index("CREATE SCHEMA") :]
    dump = re.sub(r"^(--.*|\\(un)?restrict .*|SET default_\w+ = .*)\n", "", dump, flags=re.M)
    # Since 16 a view's columns are shown without their table where there is one table only.
    dump = re.sub(r"^CREATE VIEW .*?;$", _unqualified, dump, flags=re.M | re.S)
    return re.sub(r"\n{3,}", "\n\n", dump).strip() + "\n"


def _unqualified(view: re.Match[str]) -> str:
    return re.sub(r"\b[a-z]\.(?=\w)", "", view[0])


def sqlite() -> str:
    """As sqlite_schema keeps it, in the order of making."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(installer("sqlite"))
        objects = connection.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")
        statements = [f"{sql};\n" for (sql,) in objects]
    return HEAD.format("sql/sqlite/install.sql") + "\n".join(statements)


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in (("postgres", postgres(os.environ[URL_VARIABLE])), ("sqlite", sqlite())):
        (FOLDER / f"{name}.sql").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
