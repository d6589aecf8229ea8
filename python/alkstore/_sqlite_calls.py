"""The calls on SQLite: one INSERT into a call object each."""

from __future__ import annotations

import json
import sqlite3
import time
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from ._input import addressed, payload_text
from ._rows import CLAIM_COLUMNS, JOB_COLUMNS
from ._sqlite_connection import rows
from ._sqlite_errors import errors_by_code
from ._sqlite_schedules import SqliteSchedules
from .types import Transaction


def _enqueue(arguments: Iterable[str], payload: str = ":payload", source: str = "") -> str:
    names = tuple(arguments)
    return f"""
        INSERT INTO alkstore_enqueue(payload, {", ".join(names)})
        SELECT {payload}, {", ".join(f":{name}" for name in names)} {source} RETURNING job_id"""


class SqliteCalls(SqliteSchedules):
    """The calls, on the caller's connection where tx is given, else on one of its own."""

    @abstractmethod
    def _own_connection(self) -> AbstractContextManager[sqlite3.Connection]: ...

    def enqueue(
        self, tx: object, queue: str, payload: Any, options: Mapping[str, int | None]
    ) -> int:
        kind, name = addressed(queue)
        arguments = {kind: name, **options}
        values = {"payload": payload_text(payload), **arguments}
        [(job_id,)] = self._call(tx, _enqueue(arguments), values)
        return int(job_id)

    def enqueue_batch(
        self, tx: object, queue: str, payloads: Sequence[Any], options: Mapping[str, int | None]
    ) -> list[int]:
        # As JSON strings, each text stays exact, and any number of them is one statement.
        arguments = {"queue": queue, **options}
        sql = _enqueue(arguments, "value", "FROM json_each(:payloads)")
        texts = json.dumps([payload_text(payload) for payload in payloads])
        rows = self._call(tx, sql, {"payloads": texts, **arguments})
        return sorted(job_id for (job_id,) in rows)  # ids ascend, RETURNING promises no order

    def claim(self, tx: object, queue: str, worker_id: str, n: int | None) -> list[list[Any]]:
        # The jobs within the same statement: no other claim can come between.
        kind, name = addressed(queue)
        sql = f"""
            INSERT INTO alkstore_claim({kind}, worker_id, n) VALUES (?, ?, ?)
            RETURNING (SELECT jobs FROM alkstore_claimed_json)"""
        [(jobs,)] = self._call(tx, sql, (name, worker_id, n))
        return [[job[column] for column in CLAIM_COLUMNS] for job in json.loads(jobs)]

    def look(self, queue: str, worker_id: str, n: int) -> tuple[list[list[Any]], float | None]:
        """Claim if next_due has come, else the write lock is left alone; the seconds to it."""
        due_s = self.next_due_s(queue)
        return (self.claim(None, queue, worker_id, n) if due_s == 0 else []), due_s

    def accepted(self, tx: object, call: str, **arguments: str | int | None) -> bool:
        """Run a call that answers true or false."""
        columns = ", ".join(arguments)
        marks = ", ".join("?" * len(arguments))
        sql = f"INSERT INTO alkstore_{call}({columns}) VALUES ({marks}) RETURNING 1"
        return bool(self._call(tx, sql, tuple(arguments.values())))

    def cancel(self, tx: object, queue: str, job_id: int) -> bool:
        kind, name = addressed(queue)
        return self.accepted(tx, "cancel", **{kind: name}, job_id=job_id)

    def settle(
        self, call: str, queue: str, claims: Sequence[tuple[int, int]]
    ) -> dict[tuple[int, int], bool]:
        """Ack, release or heartbeat claims by (id, attempt), in one statement; their answers."""
        sql = f"""
            INSERT INTO alkstore_{call}(queue, job_id, attempt)
            SELECT ?, value ->> 0, value ->> 1 FROM json_each(?) RETURNING job_id, attempt"""
        accepted = set(self._call(None, sql, (queue, json.dumps(claims))))
        return {claim: claim in accepted for claim in claims}

    def ack_batch(
        self, tx: object, queue: str, job_ids: list[int], attempts: list[int | None]
    ) -> int:
        sql = """
            INSERT INTO alkstore_ack_batch(queue, job_id, attempt)
            SELECT ?, value ->> 0, value ->> 1 FROM json_each(?) RETURNING job_id"""
        claims = json.dumps(list(zip(job_ids, attempts, strict=True)))
        return len(self._call(tx, sql, (queue, claims)))

    def get_job(self, tx: object, queue: str, job_id: int) -> list[Any] | None:
        # As JSON too: a caller's connection may have its own idea of text and of columns.
        sql = f"""
            SELECT json_array({", ".join(JOB_COLUMNS)})
            FROM alkstore_jobs WHERE queue = ? AND job_id = ?"""
        rows = self._call(tx, sql, (queue, job_id))
        return json.loads(rows[0][0]) if rows else None

    def sweep_expired(self, tx: object, queue: str) -> tuple[int, int]:
        kind, name = addressed(queue)
        sql = f"""
            INSERT INTO alkstore_sweep_expired({kind}) VALUES (?)
            RETURNING (SELECT expired FROM alkstore_swept), (SELECT pruned FROM alkstore_swept)"""
        [(expired, pruned)] = self._call(tx, sql, (name,))
        return expired, pruned

    def next_due(self, tx: object, queue: str) -> int | None:
        rows = self._call(tx, "SELECT next_due FROM alkstore_next_due WHERE queue = ?", (queue,))
        return rows[0][0] if rows else None

    def next_due_s(self, queue: str) -> float | None:
        """Seconds to next_due by the database's clock, 0 when it is not in the future."""
        sql = """
            SELECT CASE
                WHEN next_due <= (SELECT now FROM __alkstore_clock) THEN 0 ELSE next_due - ? END
            FROM alkstore_next_due WHERE queue = ?"""
        rows = self._call(None, sql, (time.time(), queue))
        return None if not rows or rows[0][0] is None else float(rows[0][0])

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        with self._own_connection() as connection:
            try:
                # In here: a ctrl-C during the wait for the lock is raised once it is taken.
                with errors_by_code():
                    connection.execute("BEGIN IMMEDIATE")
                yield connection
                with errors_by_code():
                    connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def _call(
        self, tx: object, sql: str, values: Sequence[Any] | Mapping[str, Any]
    ) -> list[tuple[Any, ...]]:
        if tx is not None:
            connection = tx.connection if isinstance(tx, Transaction) else tx
            if not isinstance(connection, sqlite3.Connection):
                raise TypeError(f"tx must be a Transaction or sqlite3.Connection, not {tx!r}")
            return rows(connection, sql, values)
        with self._own_connection() as connection:
            return rows(connection, sql, values)
