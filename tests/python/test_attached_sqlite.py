"""What docs/sqlite.md says of attached databases; the SQL suite runs on one as a whole."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from alkstore._sql import installer

ENQUEUE = "INSERT INTO {}alkstore_enqueue(queue, payload) VALUES ('q', '1') RETURNING job_id"
CLAIM = """
    INSERT INTO jobs.alkstore_claim(queue, worker_id) VALUES ('q', 'w')
    RETURNING (SELECT jobs FROM {}alkstore_claimed_json)"""


def connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None, timeout=0)


def install(path: Path) -> None:
    with closing(connect(path)) as connection:
        connection.executescript(installer("sqlite"))


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """An application's database without alkstore, with one attached that has it."""
    install(tmp_path / "jobs.db")
    with closing(connect(tmp_path / "app.db")) as connection:
        connection.execute("ATTACH ? AS jobs", (str(tmp_path / "jobs.db"),))
        connection.execute("CREATE TABLE business (id INTEGER PRIMARY KEY)")
        yield connection


def value(connection: sqlite3.Connection, sql: str) -> Any:
    [(value,)] = connection.execute(sql).fetchall()
    return value


def claimed(connection: sqlite3.Connection, schema: str) -> list[int]:
    return [job["job_id"] for job in json.loads(value(connection, CLAIM.format(schema)))]


def test_names_find_the_only_database_that_has_them(connection: sqlite3.Connection) -> None:
    assert value(connection, ENQUEUE.format("")) == 1
    assert claimed(connection, "") == [1]


def test_with_alkstore_in_both_the_schema_s_name_tells_them_apart(
    connection: sqlite3.Connection,
) -> None:
    connection.executescript(installer("sqlite"))  # goes into main
    for job_id in (1, 2):
        assert value(connection, ENQUEUE.format("jobs.")) == job_id
    assert value(connection, "SELECT count(*) FROM main.alkstore_jobs") == 0
    assert claimed(connection, "jobs.") == [1]
    assert claimed(connection, "") == []  # claimed there, asked here
    assert value(connection, "SELECT job_id FROM jobs.alkstore_claimed") == 2


def test_only_a_temporary_trigger_enqueues_into_another_file(
    connection: sqlite3.Connection,
) -> None:
    trigger = "CREATE {} TRIGGER enqueue AFTER INSERT ON business BEGIN {}; END"
    insert = ENQUEUE.removesuffix(" RETURNING job_id")
    with pytest.raises(sqlite3.OperationalError, match="qualified table names are not allowed"):
        connection.execute(trigger.format("", insert.format("jobs.")))
    connection.execute(trigger.format("", insert.format("")))
    with pytest.raises(sqlite3.OperationalError, match=r"no such table: main\.alkstore_enqueue"):
        connection.execute("INSERT INTO business DEFAULT VALUES")
    connection.execute("DROP TRIGGER enqueue")
    connection.execute(trigger.format("TEMP", insert.format("")))
    connection.execute("INSERT INTO business DEFAULT VALUES")
    assert value(connection, "SELECT count(*) FROM jobs.alkstore_jobs") == 1


def test_one_transaction_holds_both_files(connection: sqlite3.Connection, tmp_path: Path) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO business DEFAULT VALUES")
    value(connection, ENQUEUE.format("jobs."))
    with (
        closing(connect(tmp_path / "jobs.db")) as other,
        pytest.raises(sqlite3.OperationalError, match="locked"),
    ):
        other.execute("BEGIN IMMEDIATE")
    connection.execute("ROLLBACK")
    both = "SELECT (SELECT count(*) FROM business) + (SELECT count(*) FROM jobs.alkstore_jobs)"
    assert value(connection, both) == 0


def test_the_attached_file_has_its_own_data_version(
    connection: sqlite3.Connection, tmp_path: Path
) -> None:
    before = (
        value(connection, "PRAGMA main.data_version"),
        value(connection, "PRAGMA jobs.data_version"),
    )
    with closing(connect(tmp_path / "jobs.db")) as other:
        value(other, ENQUEUE.format(""))
    assert value(connection, "PRAGMA main.data_version") == before[0]
    assert value(connection, "PRAGMA jobs.data_version") != before[1]
