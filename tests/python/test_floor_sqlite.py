"""The installer on a SQLite that is too old, as SQLite itself tells its version.

On a SQLite that is really too old: make matrix-sqlite.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing

import apsw
import pytest

from alkstore._sql import installer


def connect(version: str) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.create_function("sqlite_version", 0, lambda: version)
    return connection


@pytest.mark.parametrize("version", ["3.8.11.1", "3.9.2", "3.35.5", "3.37.2"])
def test_below_the_floor_both_versions_are_named_and_nothing_is_made(version: str) -> None:
    with closing(connect(version)) as connection:
        told = f"alkstore needs SQLite 3.38 or later; this is SQLite {version}"
        with pytest.raises(sqlite3.OperationalError, match=told):
            connection.executescript(installer("sqlite"))
        assert connection.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (0,)


@pytest.mark.parametrize("version", ["3.38.0", "3.38.5", "3.40.1", "3.54.1", "3.100.0"])
def test_from_the_floor_on_it_installs(version: str) -> None:
    with closing(connect(version)) as connection:
        connection.executescript(installer("sqlite"))
        assert connection.execute("SELECT count(*) FROM alkstore_jobs").fetchone() == (0,)


def test_a_new_sqlite_runs_the_calls_of_a_schema_that_it_does_not_trust() -> None:
    with closing(apsw.Connection("")) as connection:
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute(installer("sqlite"))
        connection.execute("INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '{}')")
        claim = """
            INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'w')
            RETURNING (SELECT json_array_length(jobs) FROM alkstore_claimed_json)"""
        assert connection.execute(claim).fetchall() == [(1,)]
