"""What takes two connections, the real clock or the shell to see on SQLite, in plain SQL."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from alkstore._sql import SCHEMA_VERSION, installer

ENQUEUE = "INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', ?)"
CLAIM = (
    "INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', ?)"
    " RETURNING (SELECT jobs FROM alkstore_claimed_json)"
)


@pytest.fixture
def session(sqlite_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(sqlite_path, isolation_level=None)) as session:
        session.execute("PRAGMA journal_mode = wal")
        session.executescript(installer("sqlite"))
        yield session


@pytest.fixture
def other(session: sqlite3.Connection, sqlite_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(sqlite_path, isolation_level=None, timeout=3600)) as other:
        yield other


def claim(session: sqlite3.Connection, n: int = 1) -> list[int]:
    ((jobs,),) = session.execute(CLAIM, (n,)).fetchall()
    rows = session.execute("SELECT value->>'payload' FROM json_each(?)", (jobs,))
    return [int(payload) for (payload,) in rows]


def test_the_clock_tells_the_time_of_day_in_whole_seconds(session: sqlite3.Connection) -> None:
    """[clock]"""
    before = int(time.time())
    ((now,),) = session.execute("SELECT now FROM __alkstore_clock")
    assert isinstance(now, int)
    assert before <= now <= time.time()


def test_nothing_is_claimable_before_commit(
    session: sqlite3.Connection, other: sqlite3.Connection
) -> None:
    """[tx-enqueue]"""
    session.execute("CREATE TABLE orders (id)")
    for end, found, orders in (("ROLLBACK", [], 0), ("COMMIT", [1], 1)):
        session.execute("BEGIN")
        session.execute("INSERT INTO orders VALUES (1)")
        session.execute(ENQUEUE, ("1",))
        assert other.execute("SELECT * FROM alkstore_jobs").fetchall() == []
        session.execute(end)
        assert claim(other) == found
        assert other.execute("SELECT count(*) FROM orders").fetchall() == [(orders,)]


def test_a_transaction_that_read_too_early_is_busy_at_once(
    session: sqlite3.Connection, other: sqlite3.Connection
) -> None:
    """[tx-enqueue]"""
    other.execute("CREATE TABLE orders (id)")
    other.execute("BEGIN")
    assert other.execute("SELECT * FROM alkstore_jobs").fetchall() == []
    session.execute(ENQUEUE, ("1",))
    with pytest.raises(sqlite3.OperationalError) as busy:
        other.execute(ENQUEUE, ("2",))
    assert busy.value.sqlite_errorname == "SQLITE_BUSY_SNAPSHOT"
    assert other.in_transaction
    other.execute("ROLLBACK")
    other.execute("BEGIN IMMEDIATE")
    other.execute("INSERT INTO orders VALUES (3)")
    other.execute(ENQUEUE, ("3",))
    other.execute("COMMIT")
    assert claim(session, 9) == [1, 3]


# -- plans ----------------------------------------------------------------------------------------

CALLS = {
    "claim": "claim(queue, worker_id) VALUES ('q', 'w')",
    "ack": "ack(queue, job_id, attempt) VALUES ('q', 1, 1)",
    "ack_batch": "ack_batch(queue, job_id) VALUES ('q', 1)",
    "retry": "retry(queue, job_id, attempt, error) VALUES ('q', 1, 1, 'e')",
    "release": "release(queue, job_id, attempt) VALUES ('q', 1, 1)",
    "fail": "fail(queue, job_id, attempt) VALUES ('q', 1, 1)",
    "heartbeat": "heartbeat(queue, job_id, attempt) VALUES ('q', 1, 1)",
    "cancel": "cancel(queue, job_id) VALUES ('q', 1)",
    "sweep_expired": "sweep_expired(queue) VALUES ('q')",
}

SKEW = """
    WITH RECURSIVE g(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM g WHERE value < 2000)
    INSERT INTO alkstore_enqueue(queue, payload, delay_s, expires_s, dead_letter_retention_s)
    SELECT 'q', '1', value % 2 * 60, 60, 60 FROM g;
    INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 500);
    INSERT INTO alkstore_fail(queue, job_id, attempt)
    SELECT queue, job_id, attempt FROM alkstore_claimed;
    INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 300);
    ANALYZE;
"""


def plan(path: Path, statement: str) -> list[str]:
    """What SQLite does in a statement and in the triggers that it fires, table by table."""
    script = f".eqp trigger\nBEGIN;\n{statement};\nROLLBACK;\n"
    shell = ["sqlite3", "-batch", "-init", "/dev/null", str(path)]
    done = subprocess.run(shell, input=script, text=True, capture_output=True, check=True)
    # An alias in place of a name: j is a table of jobs in each of the sources.
    return re.findall(
        r"(?:SCAN|SEARCH) (?:__alkstore_(?:dead_)?job\b|[jd]\b).*|.*TEMP B-TREE.*", done.stdout
    )


@pytest.mark.parametrize("statistics", [False, True], ids=["", "statistics"])
def test_no_call_reads_a_table_of_jobs_from_end_to_end(
    session: sqlite3.Connection, sqlite_path: Path, statistics: bool
) -> None:
    """[plans]"""
    if statistics:
        session.executescript(SKEW)
    plans = {
        name: plan(sqlite_path, f"INSERT INTO alkstore_{call}") for name, call in CALLS.items()
    }
    plans["get_job"] = plan(sqlite_path, "SELECT * FROM alkstore_jobs WHERE job_id = 1")
    for name, steps in plans.items():
        assert steps, name
        assert [step for step in steps if not step.startswith("SEARCH")] == [], name
    by_id = {
        step.partition(" USING ")[2]
        for name in plans
        for step in plans[name]
        if name not in ("claim", "sweep_expired")
    }
    assert by_id == {"INTEGER PRIMARY KEY (rowid=?)"}
    assert [step for step in plans["claim"] if "INDEX" in step] == [
        "SEARCH __alkstore_job USING INDEX __alkstore_job_due (queue=? AND due_at<?)",
        "SEARCH __alkstore_job USING INDEX __alkstore_job_due (queue=? AND due_at<?)",
        "SEARCH __alkstore_job USING INDEX __alkstore_job_ready (queue=?)",
    ]


# -- installing again -----------------------------------------------------------------------------


def test_installing_again_keeps_every_job(session: sqlite3.Connection) -> None:
    """[version]"""
    for payload in ("1", "2", "3"):
        session.execute(ENQUEUE, (payload,))
    assert claim(session) == [1]
    before = session.execute("SELECT * FROM alkstore_jobs").fetchall()
    session.executescript(installer("sqlite"))
    assert session.execute("SELECT * FROM alkstore_jobs").fetchall() == before
    assert session.execute(ENQUEUE + " RETURNING job_id", ("4",)).fetchall() == [(4,)]


def test_another_version_is_left_alone(session: sqlite3.Connection) -> None:
    """[version]"""
    session.execute(ENQUEUE, ("1",))
    before = session.execute("SELECT * FROM sqlite_schema").fetchall()
    newer = installer("sqlite").replace(SCHEMA_VERSION, "99.0.0")
    with pytest.raises(sqlite3.OperationalError) as refusal:
        session.executescript(newer)
    assert SCHEMA_VERSION in str(refusal.value)
    assert "99.0.0" in str(refusal.value)
    session.execute("ROLLBACK")
    assert session.execute("SELECT * FROM sqlite_schema").fetchall() == before
    assert claim(session) == [1]
