"""What the calls write on SQLite: pages, as SQLite counts them.

Each is one that the call cannot do without: the leaf of the job's row, of each index that the job
leaves or enters, of the list of the last claim. A rollback journal adds the first page of the file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import pytest

from alkstore._sql import installer

SHORT = "1"
LONG = '"' + "x" * 40_000 + '"'  # ten pages
CLAIM = """
    INSERT INTO alkstore_claim(queue, worker_id, n) VALUES (?, 'w', ?)
    RETURNING (SELECT jobs FROM alkstore_claimed_json)"""


class Database:
    """A file with a backlog of jobs, of which those with even ids up to 18 are claimed."""

    def __init__(self, path: Path, journal_mode: str, payload: str) -> None:
        self.connection = apsw.Connection(str(path))
        self.run(f"PRAGMA journal_mode = {journal_mode}")
        self.connection.execute(installer("sqlite"))
        self.payload = payload
        with self.connection:
            for _ in range(150):
                self.enqueue()
            # Claimed rows are longer: some leaves are divided. Acks make room in them.
            for job_id in range(1, 20):
                self.claim()
                if job_id % 2:
                    self.by_id("ack", job_id)

    def run(self, sql: str, *values: Any) -> list[Any]:
        return self.connection.execute(sql, values).fetchall()

    def written(self, sql: str, *values: Any) -> int:
        """How many pages a call writes that is accepted, in a transaction of its own."""
        self.connection.status(apsw.SQLITE_DBSTATUS_CACHE_WRITE, True)
        assert self.run(sql, *values)
        return self.connection.status(apsw.SQLITE_DBSTATUS_CACHE_WRITE)[0]

    def claim(self, n: int = 1, queue: str = "q") -> int:
        return self.written(CLAIM, queue, n)

    def enqueue(self, **options: int) -> int:
        sql = f"""
            INSERT INTO alkstore_enqueue({", ".join(["queue", "payload", *options])})
            VALUES ('q', ?{", ?" * len(options)}) RETURNING job_id"""
        return self.written(sql, self.payload, *options.values())

    def by_id(self, call: str, job_id: int, **options: int) -> int:
        sql = f"""
            INSERT INTO alkstore_{call}({", ".join(["queue", "job_id", "attempt", *options])})
            VALUES ('q', ?, 1{", ?" * len(options)}) RETURNING job_id"""
        return self.written(sql, job_id, *options.values())

    def calls(self) -> dict[str, int]:
        return {
            "enqueue": self.enqueue(),
            "enqueue, delayed": self.enqueue(delay_s=60),
            "enqueue, to expire": self.enqueue(expires_s=60),
            "claim": self.claim(),
            "claim of nine": self.claim(9),
            "empty claim, after one": self.claim(queue="none"),
            "empty claim, after an empty one": self.claim(queue="none"),
            "heartbeat": self.by_id("heartbeat", 2, extend_s=600),
            "ack": self.by_id("ack", 4),
            "retry": self.by_id("retry", 6, delay_s=60),
            "release": self.by_id("release", 8),
            "fail": self.by_id("fail", 10),
            "cancel": self.written(
                "INSERT INTO alkstore_cancel(queue, job_id) VALUES ('q', 12) RETURNING job_id"
            ),
        }


@pytest.fixture(params=["WAL", "DELETE"])
def journal_mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_pages_of_a_job(journal_mode: str, tmp_path: Path) -> None:
    first = 1 if journal_mode == "DELETE" else 0
    assert Database(tmp_path / "app.db", journal_mode, SHORT).calls() == {
        # the row, the ready index, the call table, sqlite_sequence
        "enqueue": 4 + first,
        "enqueue, delayed": 4 + first,
        "enqueue, to expire": 5 + first,
        # the row, the ready and the due index, the list of the last claim
        "claim": 4 + first,
        "claim of nine": 4 + first,
        "empty claim, after one": 1 + first,
        "empty claim, after an empty one": 0,
        # the row, the due index
        "heartbeat": 2 + first,
        "ack": 2 + first,
        "retry": 2 + first,
        # and the index, or the table, that the job moves to
        "release": 3 + first,
        "fail": 3 + first,
        "cancel": 2 + first,
    }


def test_pages_of_a_job_with_a_long_payload(journal_mode: str, tmp_path: Path) -> None:
    first = 1 if journal_mode == "DELETE" else 0
    calls = Database(tmp_path / "app.db", journal_mode, LONG).calls()
    enqueues = [calls.pop(f"enqueue{how}") for how in ("", ", delayed", ", to expire")]
    # The call table holds a row for a moment, so that the payload's pages may be written twice.
    assert max(enqueues) <= 5 + first + 2 * 10
    assert calls == {
        # Whatever happens to the job, its payload stays where it is.
        "claim": 4 + first,
        "claim of nine": 4 + first,
        "empty claim, after one": 1 + first,
        "empty claim, after an empty one": 0,
        "heartbeat": 2 + first,
        "retry": 2 + first,
        "release": 3 + first,
        "fail": 3 + first,
        # The payload's leaf, the first page, and the list of free pages.
        "ack": 7,
        "cancel": 7,
    }
