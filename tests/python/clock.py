"""A clock for tests through the package: it stands still at START until a test moves it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg

START = datetime(2001, 9, 9, 1, 46, 40, tzinfo=UTC)  # 1000000000

_SQLITE_CLOCK = Path(__file__).parents[1] / "sql" / "sqlite" / "clock.sql"
_POSTGRES_CLOCK = """
    CREATE TABLE test_clock (now timestamptz NOT NULL);
    INSERT INTO test_clock VALUES ('2001-09-09 01:46:40+00');
    CREATE OR REPLACE FUNCTION alkstore._now() RETURNS timestamptz
    LANGUAGE sql VOLATILE AS 'SELECT now FROM public.test_clock'"""


def after(seconds: int) -> datetime:
    return START + timedelta(seconds=seconds)


class Clock:
    """Replaces the private clock of a database in which alkstore is installed."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._is_postgres = target.startswith("postgresql:")
        self._run(_POSTGRES_CLOCK if self._is_postgres else _SQLITE_CLOCK.read_text())

    def advance(self, seconds: int) -> None:
        step = f"make_interval(secs => {seconds})" if self._is_postgres else str(seconds)
        self._run(f"UPDATE test_clock SET now = now + {step}")

    def _run(self, script: str) -> None:
        if self._is_postgres:
            with psycopg.connect(self._target) as connection:
                connection.execute(script.encode())
        else:
            with closing(sqlite3.connect(self._target)) as connection:
                connection.executescript(script)
                connection.commit()
