"""Arbitrary values of arbitrary types: a code of ours or the engine's own error, and no change."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from random import Random

import psycopg
import pytest

from alkstore._sql import installer
from tests.model.bad_input import Engine, PostgresEngine, SqliteEngine, prepare
from tests.model.faces import Postgres, Sqlite

INPUTS = int(os.environ.get("INPUTS", "2000"))


def postgres(url: str, sql: str) -> Postgres:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql.encode())
    face = Postgres(url)
    face.script(face.STOPPED_CLOCK)
    prepare(face)
    return face


def sqlite(sql: str) -> Sqlite:
    face = Sqlite(":memory:")
    face.connection.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
    face.script(sql)
    face.script(face.STOPPED_CLOCK)
    prepare(face)
    return face


def complaints(engine: Engine, seed: str | None, inputs: int = INPUTS) -> Iterator[str]:
    rng = Random(seed)
    return (text for _ in range(inputs) if (text := engine.try_one(rng)))


def check(engine: Engine) -> None:
    """The same inputs each time, unless asked for more."""
    wrong = list(complaints(engine, None if "INPUTS" in os.environ else "the same"))
    print(f"{INPUTS} inputs on {engine.name}: {dict(engine.outcomes)}")
    assert not wrong, "\n".join([f"{len(wrong)} of {INPUTS}:", *wrong[:50]])
    assert {"AK001", "AK002", "AK003", "AK004", "native", "accepted"} <= engine.outcomes.keys()


def test_postgres(empty_pg_url: str) -> None:
    with closing(postgres(empty_pg_url, installer("postgres"))) as face:
        check(PostgresEngine(face))


def test_sqlite() -> None:
    with closing(sqlite(installer("sqlite"))) as face:
        check(SqliteEngine(face))


def test_a_missing_check_on_postgres_is_found(empty_pg_url: str) -> None:
    sql = without(installer("postgres"), "value NOT BETWEEN minimum AND 2147483647", "false")
    with closing(postgres(empty_pg_url, sql)) as face:
        assert "has max_attempts 4294967297" in found(PostgresEngine(face))


@pytest.mark.parametrize(
    ("right", "wrong", "complaint"),
    [
        (
            "CAST(NEW.error AS TEXT), 1, 65536), 'failed')",
            "NEW.error, 1, 9), '')",
            "has last_error b'",
        ),
        ("RAISE(ABORT, 'AK001 invalid_name: queue must be", "RAISE(FAIL, 'AK001 ", "the change"),
    ],
)
def test_a_missing_check_on_sqlite_is_found(right: str, wrong: str, complaint: str) -> None:
    with closing(sqlite(without(installer("sqlite"), right, wrong))) as face:
        assert complaint in found(SqliteEngine(face))


def found(engine: Engine) -> str:
    return "\n".join(complaints(engine, "the same", 2000))


def without(sql: str, right: str, wrong: str) -> str:
    assert sql.count(right) == 1, "the fault no longer fits the SQL"
    return sql.replace(right, wrong)
