"""Another SQLite library than Python's on the same file."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

import alkstore
from alkstore import Queue
from tests.python.coexisting import ENQUEUE, connect, queued, rows, run


@pytest.fixture
def queue(business: Path) -> Iterator[Queue]:
    with alkstore.open(business) as store:
        yield store.queue("q")


APSW_DRAIN = """
import json, sys, apsw

connection = apsw.Connection(sys.argv[1])
connection.set_busy_timeout(60_000)
claim = '''INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'apsw', 3)
           RETURNING (SELECT jobs FROM alkstore_claimed_json)'''
ack = "INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('q', :job_id, :attempt) RETURNING 1"
done = []
while not done or done[-1] != "last":
    [(jobs,)] = connection.execute(claim).fetchall()
    for job in json.loads(jobs):
        assert connection.execute(ack, job).fetchall() == [(1,)]
        done.append(json.loads(job["payload"]))
print(done)
"""


def test_another_library_in_another_process_takes_turns(queue: Queue, business: Path) -> None:
    command = [sys.executable, "-c", APSW_DRAIN, str(business)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        numbers = [queue.enqueue(number) for number in range(1, 201)]
        queue.enqueue("last")
        assert process.communicate(timeout=60)[0] == f"{[*numbers, 'last']}\n"
    assert queued(business) == []


def enqueue(connection: Any, number: int) -> None:
    assert connection.execute(ENQUEUE.format(number)).fetchall() == [(number,)]


@pytest.mark.parametrize("journal_mode", ["wal", "delete"])
def test_another_library_in_this_process_before_and_after(
    business: Path, journal_mode: str
) -> None:
    numbers = iter(range(1, 7))
    for _ in range(3):
        with closing(connect(business)) as stdlib:
            rows(stdlib, f"PRAGMA journal_mode = {journal_mode}")
            enqueue(stdlib, next(numbers))
        with closing(apsw.Connection(str(business))) as other:
            enqueue(other, next(numbers))
    assert queued(business) == ["1", "2", "3", "4", "5", "6"]


LOOK = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
print([row[0] for row in connection.execute("SELECT payload FROM alkstore_jobs ORDER BY job_id")])
"""

bundled = pytest.mark.skipif(not apsw.using_amalgamation, reason="apsw uses the same library")


@bundled
def test_another_library_in_this_process_between_calls_without_wal(business: Path) -> None:
    # Without WAL a connection has no lock between its transactions that the other could drop.
    with closing(connect(business)) as stdlib:
        rows(stdlib, "PRAGMA journal_mode = delete")
        enqueue(stdlib, 1)
        with closing(apsw.Connection(str(business))) as other:
            enqueue(other, 2)
            enqueue(stdlib, 3)
        enqueue(stdlib, 4)
        assert run(LOOK, business) == "['1', '2', '3', '4']\n"


@bundled
def test_two_libraries_in_one_process_endanger_each_other(business: Path) -> None:
    """Why docs/sqlite.md says no to it: nothing here could prevent it."""
    with closing(connect(business)) as stdlib:
        rows(stdlib, "PRAGMA journal_mode = wal")
        enqueue(stdlib, 1)
        with closing(apsw.Connection(str(business))) as other:
            stdlib.execute("BEGIN IMMEDIATE")
            other.execute("BEGIN IMMEDIATE")  # two writers
            other.execute("ROLLBACK")
            stdlib.execute("ROLLBACK")
            enqueue(other, 2)
        enqueue(stdlib, 3)  # into the WAL that the other's close has removed
        assert run(LOOK, business) == "['1', '2']\n"
