"""What docs/postgres.md shows is run, in the order of the page, by an ordinary owner."""

from __future__ import annotations

import itertools
import os
import re
from pathlib import Path

import psycopg
from psycopg import sql

from alkstore._sql import installer

PAGE = (Path(__file__).parents[2] / "docs/postgres.md").read_text(encoding="utf-8")
ROLES = ("alkstore_owner", "shop", "mailer", "cron", "dba")
INSTALL = "-- here one of the installers below\n"

_numbers = itertools.count(1)


def test_every_statement_runs(empty_pg_url: str) -> None:
    blocks = re.findall(r"^```sql\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert sum(block.count(INSTALL) for block in blocks) == 1
    # Roles belong to the whole server: each run takes its own.
    number = f"{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(empty_pg_url, autocommit=True) as connection:
        database = sql.Identifier(connection.info.dbname).as_string()
        try:
            for block in blocks:
                text = block.replace("DATABASE app", f"DATABASE {database}")
                text = re.sub(rf"\b({'|'.join(ROLES)})\b", rf"\1_{number}", text)
                connection.execute(text.replace(INSTALL, installer("postgres")).encode())
            for role, call in (("shop", "enqueue('q', '1')"), ("mailer", "claim('q', 'w')")):
                connection.execute(f"SET ROLE {role}_{number}".encode())
                assert connection.execute(f"SELECT alkstore.{call}".encode()).rowcount == 1
            connection.execute(f"SET ROLE dba_{number}".encode())
            stats = connection.execute("SELECT queue, processing FROM alkstore.queue_stats")
            assert stats.fetchall() == [("q", 1)]
            connection.execute("RESET ROLE")
            owner = connection.execute(
                "SELECT nspowner::regrole::text FROM pg_namespace WHERE nspname = 'alkstore'"
            )
            assert owner.fetchall() == [(f"alkstore_owner_{number}",)]
        finally:
            connection.execute("RESET ROLE")
            for role in ROLES:
                connection.execute(f"DROP OWNED BY {role}_{number} CASCADE".encode())
                connection.execute(f"DROP ROLE {role}_{number}".encode())


def test_the_commands_and_files_are_there() -> None:
    root = Path(__file__).parents[2]
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"`make ([a-z-]+)", PAGE):
        assert re.search(rf"^(\w+ )*{target}( \w+)*:", makefile, re.MULTILINE), target
    for name in re.findall(r"`((?:sql|tests|bench)/[\w/.]+)`", PAGE):
        assert (root / name).exists(), name
