"""[idle] A call that changes nothing writes nothing, so that idle consumers wake nobody."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from alkstore._sql import installer
from tests.python.clock import Clock

# -- SQLite ---------------------------------------------------------------------------------------


class Watched:
    """A database in which one connection makes the calls and another one looks for writes."""

    def __init__(self, path: Path, journal_mode: str) -> None:
        self._wal = path.with_name(path.name + "-wal")
        self.caller = sqlite3.connect(path, isolation_level=None)
        self.caller.execute(f"PRAGMA journal_mode = {journal_mode}")
        self.caller.executescript(installer("sqlite"))
        self.clock = Clock(str(path))
        self._watcher = sqlite3.connect(path, isolation_level=None)
        self.wrote()

    def wrote(self) -> bool:
        """Whether anything at all was written since the last look."""
        before = getattr(self, "_seen", None)
        (data_version,) = self._watcher.execute("PRAGMA data_version").fetchone()
        wal = self._wal.stat().st_size if self._wal.exists() else 0
        self._seen = (data_version, wal)
        return self._seen != before

    def call(self, call: str, columns: str, *values: Any) -> list[Any]:
        marks = ", ".join("?" * len(values))
        insert = f"INSERT INTO alkstore_{call}({columns}) VALUES ({marks}) RETURNING 1"
        return self.caller.execute(insert, values).fetchall()

    def close(self) -> None:
        self.caller.close()
        self._watcher.close()


@pytest.fixture(params=["wal", "delete"])
def db(request: pytest.FixtureRequest, sqlite_path: Path) -> Iterator[Watched]:
    with closing(Watched(sqlite_path, request.param)) as db:
        yield db


def fill(db: Watched) -> None:
    """One job in each condition in which a claim must leave it."""
    db.call("enqueue", "queue, payload", "q", '"held"')
    db.call("enqueue", "queue, payload, max_attempts", "q", '"held, its last attempt"', 1)
    db.call("claim", "queue, worker_id, n", "q", "w", 2)
    db.call("enqueue", "queue, payload, delay_s", "q", '"delayed"', 60)
    db.call("enqueue", "queue, payload, expires_s", "q", '"expired"', 1)
    db.call("enqueue", "queue, payload, delay_s, expires_s", "q", '"expired, delayed"', 2, 1)
    db.clock.advance(2)
    db.call("claim", "queue, worker_id", "empty", "w")
    db.wrote()


def test_sqlite_an_empty_claim_writes_nothing(db: Watched) -> None:
    for queue, n in (("empty", 1), ("q", None), ("q", 1), ("q", 9), ("q", 0), ("q", -1)):
        fill(db)
        db.call("claim", "queue, worker_id, n", queue, "w", n)
        assert not db.wrote(), (queue, n)


def test_sqlite_an_empty_claim_clears_the_claim_before_once(db: Watched) -> None:
    fill(db)
    db.call("enqueue", "queue, payload", "q", "1")
    assert db.wrote()
    db.call("claim", "queue, worker_id", "q", "w")
    assert db.wrote()
    db.call("claim", "queue, worker_id", "q", "w")
    assert db.wrote()
    db.call("claim", "queue, worker_id", "q", "w")
    assert not db.wrote()


def test_sqlite_a_call_that_no_longer_applies_writes_nothing(db: Watched) -> None:
    fill(db)
    claim = "queue, job_id, attempt"
    for call, columns, values in [
        ("ack", claim, ("q", 1, 2)),
        ("ack_batch", claim, ("q", 1, 2)),
        ("ack_batch", "queue, job_id", ("q", 99)),
        ("retry", claim + ", error", ("q", 1, 2, "e")),
        ("release", claim, ("q", 1, 2)),
        ("fail", claim + ", error", ("q", 1, 2, "e")),
        ("heartbeat", claim + ", extend_s", ("q", 1, 2, 60)),
        ("cancel", "queue, job_id", ("q", 99)),
    ]:
        assert db.call(call, columns, *values) == [], call
        assert not db.wrote(), call


def test_sqlite_a_refused_argument_writes_nothing(db: Watched) -> None:
    fill(db)
    claim = "queue, job_id, attempt"
    for call, columns, values in [
        ("enqueue", "queue, payload", ("", "1")),
        ("enqueue", "queue, payload", ("q", "{")),
        ("enqueue", "queue, payload, delay_s", ("q", "1", -1)),
        ("enqueue", "job_id, queue, payload", (-1, "q", "1")),
        ("claim", "queue, worker_id", ("q", "")),
        ("claim", "queue, worker_id, n", ("q", "w", "x")),
        ("ack", claim, ("", 1, 1)),
        ("retry", claim + ", error, delay_s", ("q", 1, 1, "e", -1)),
        ("heartbeat", claim + ", extend_s", ("q", 1, 1, 0)),
        ("cancel", "queue, job_id", ("__alkstore_q", 1)),
        ("sweep_expired", "queue", ("",)),
    ]:
        with pytest.raises(sqlite3.IntegrityError, match=r"^AK00"):
            db.call(call, columns, *values)
        assert not db.wrote(), call


def test_sqlite_a_sweep_with_nothing_to_do_writes_nothing(db: Watched) -> None:
    fill(db)
    db.call("sweep_expired", "queue", "empty")
    assert not db.wrote()
    db.call("sweep_expired", "queue", "q")
    assert db.wrote()
    db.call("sweep_expired", "queue", "q")
    assert db.wrote(), "its result is another one"
    db.call("sweep_expired", "queue", "q")
    assert not db.wrote()


def test_sqlite_reads_write_nothing(db: Watched) -> None:
    fill(db)
    views = "jobs, dead_jobs, queue_stats, next_due, claimed, claimed_json, swept, version"
    for view in views.split(", "):
        db.caller.execute(f"SELECT * FROM alkstore_{view}").fetchall()
        assert not db.wrote(), view


# -- PostgreSQL -----------------------------------------------------------------------------------


@pytest.fixture
def session(pg_url: str) -> Iterator[psycopg.Connection[Any]]:
    clock = Clock(pg_url)
    with psycopg.connect(pg_url, autocommit=True) as session:
        session.execute("SELECT alkstore.enqueue('q', '\"held\"')")
        session.execute("SELECT alkstore.enqueue('q', '\"its last attempt\"', max_attempts => 1)")
        session.execute("SELECT alkstore.claim('q', 'w', 2)")
        session.execute("SELECT alkstore.enqueue('q', '\"delayed\"', delay_s => 60)")
        session.execute("SELECT alkstore.enqueue('q', '\"expired\"', expires_s => 1)")
        session.execute(
            "SELECT alkstore.enqueue('q', '\"expired, delayed\"', delay_s => 2, expires_s => 1)"
            " FROM generate_series(1, 150)"
        )
        clock.advance(2)
        yield session


def transaction_id(session: psycopg.Connection[Any], *calls: str) -> Any:
    with session.transaction():
        for call in calls:
            session.execute(f"SELECT alkstore.{call}".encode())
        ((transaction_id,),) = session.execute("SELECT pg_current_xact_id_if_assigned()")
    return transaction_id


EMPTY_CLAIMS = ["claim('q', 'w')", "claim('q', 'w', 9)", "claim('q', 'w', 0)", "claim('no', 'w')"]


def test_postgresql_an_empty_claim_takes_no_transaction_id(
    session: psycopg.Connection[Any],
) -> None:
    assert transaction_id(session, *EMPTY_CLAIMS) is None
    assert transaction_id(session, "enqueue('q', '1')") is not None
    assert transaction_id(session, *EMPTY_CLAIMS[:1]) is not None
    assert transaction_id(session, *EMPTY_CLAIMS) is None


def test_postgresql_reads_and_a_sweep_with_nothing_to_do_take_no_transaction_id(
    session: psycopg.Connection[Any],
) -> None:
    reads = ["next_due('q')", "get_job('q', 1)", "wake_channel('q')", "version()"]
    assert transaction_id(session, *reads, "sweep_expired('no')") is None
    assert transaction_id(session, "sweep_expired('q')") is not None
    assert transaction_id(session, "sweep_expired('q')") is None
