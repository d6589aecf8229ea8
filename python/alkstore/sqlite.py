"""The calls on SQLite: one INSERT into a call object each, one connection for a store.

SQLite has one writer at a time, so threads share one connection under a lock: they take turns
fairly, and `:memory:` works like a file.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any

from . import _fork
from ._input import payload_text
from ._rows import CLAIM_COLUMNS, JOB_COLUMNS
from ._sql import installer
from ._sqlite_errors import errors_by_code, is_busy, primary_code
from ._sqlite_schedules import SqliteSchedules
from .errors import AlkstoreError, Busy, StoreClosed, Unavailable, check_version
from .types import Transaction

_ENQUEUE = """
    INSERT INTO alkstore_enqueue(
        queue, payload, delay_s, run_at, priority, expires_s, max_attempts,
        visibility_timeout_s, backoff_base_s, dead_letter_retention_s)
    SELECT
        :queue, {payload}, :delay_s, :run_at, :priority, :expires_s, :max_attempts,
        :visibility_timeout_s, :backoff_base_s, :dead_letter_retention_s
    {source} RETURNING job_id"""


class SqliteEngine(SqliteSchedules):
    def __init__(self, path: str, busy_timeout_s: float, synchronous: str) -> None:
        if _fork.is_inherited(path):
            raise Unavailable(
                f"{path} cannot be opened in this process: it was forked while a transaction of "
                "its parent was open, and has inherited the connection"
            )
        self.path = path
        self._busy_timeout_s = busy_timeout_s
        self._synchronous = synchronous
        self._lock = threading.RLock()
        self._closed = False
        self._connection: sqlite3.Connection | None = None
        if path != ":memory:":  # which no other process has, and which closing would lose
            _fork.register(self)
        with self._lock:
            self._connection = self._open()

    def _open(self) -> sqlite3.Connection:
        with _connected(self.path, self._busy_timeout_s) as connection:
            _switch_to_wal(connection, self._busy_timeout_s)
            connection.execute(f"PRAGMA synchronous = {self._synchronous}")
            _install(connection)
            return connection

    @staticmethod
    def install(path: str) -> bool:
        with _connected(path, busy_timeout_s=5.0) as connection, closing(connection):
            return _install(connection)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._disconnect()

    def close_for_fork(self) -> bool:
        if not self._lock.acquire(timeout=self._busy_timeout_s):
            return False
        if self._connection is not None and self._connection.in_transaction:
            self._lock.release()
            return False
        self._disconnect()
        return True

    def after_fork(self) -> None:
        self._lock.release()

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def enqueue(
        self, tx: object, queue: str, payload: Any, options: Mapping[str, int | None]
    ) -> int:
        sql = _ENQUEUE.format(payload=":payload", source="")
        values = {"queue": queue, "payload": payload_text(payload), **options}
        [(job_id,)] = self._call(tx, sql, values)
        return int(job_id)

    def enqueue_batch(
        self, tx: object, queue: str, payloads: Sequence[Any], options: Mapping[str, int | None]
    ) -> list[int]:
        # As JSON strings, each text stays exact, and any number of them is one statement.
        sql = _ENQUEUE.format(payload="value", source="FROM json_each(:payloads)")
        texts = json.dumps([payload_text(payload) for payload in payloads])
        rows = self._call(tx, sql, {"queue": queue, "payloads": texts, **options})
        return sorted(job_id for (job_id,) in rows)  # ids ascend, RETURNING promises no order

    def claim(self, tx: object, queue: str, worker_id: str, n: int | None) -> list[list[Any]]:
        # The jobs within the same statement: no other claim can come between.
        sql = """
            INSERT INTO alkstore_claim(queue, worker_id, n) VALUES (?, ?, ?)
            RETURNING (SELECT jobs FROM alkstore_claimed_json)"""
        [(jobs,)] = self._call(tx, sql, (queue, worker_id, n))
        return [[job[column] for column in CLAIM_COLUMNS] for job in json.loads(jobs)]

    def accepted(self, tx: object, call: str, **arguments: str | int | None) -> bool:
        """Run a call that answers true or false."""
        columns = ", ".join(arguments)
        marks = ", ".join("?" * len(arguments))
        sql = f"INSERT INTO alkstore_{call}({columns}) VALUES ({marks}) RETURNING 1"
        return bool(self._call(tx, sql, tuple(arguments.values())))

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
        sql = """
            INSERT INTO alkstore_sweep_expired(queue) VALUES (?)
            RETURNING (SELECT expired FROM alkstore_swept), (SELECT pruned FROM alkstore_swept)"""
        [(expired, pruned)] = self._call(tx, sql, (queue,))
        return expired, pruned

    def next_due(self, tx: object, queue: str) -> int | None:
        rows = self._call(tx, "SELECT next_due FROM alkstore_next_due WHERE queue = ?", (queue,))
        return rows[0][0] if rows else None

    @contextmanager
    def session(self) -> Iterator[None]:
        """What to pass as tx to many calls, each its own transaction: here there is but one."""
        yield None

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
            return _rows(connection, sql, values)
        with self._own_connection() as connection:
            return _rows(connection, sql, values)

    @contextmanager
    def _own_connection(self) -> Iterator[sqlite3.Connection]:
        if not self._lock.acquire(timeout=self._busy_timeout_s):
            raise Busy("another thread has had a transaction of this store open for too long")
        try:
            if self._closed:
                raise StoreClosed("the store is closed")
            if self._connection is None:  # closed for a fork
                self._connection = self._open()
            if self._connection.in_transaction:  # only ever this thread's, since it has the lock
                raise AlkstoreError("a transaction of this store is open in this thread: pass tx=")
            yield self._connection
        finally:
            self._lock.release()


@contextmanager
def _connected(path: str, busy_timeout_s: float) -> Iterator[sqlite3.Connection]:
    """A new connection, closed again if anything in the block fails, with that told as one line."""
    if sqlite3.sqlite_version_info < (3, 38):
        raise Unavailable(f"SQLite 3.38 or later is needed, this is {sqlite3.sqlite_version}")
    connection: sqlite3.Connection | None = None
    try:
        with errors_by_code():
            connection = sqlite3.connect(
                path, timeout=busy_timeout_s, isolation_level=None, check_same_thread=False
            )
            # Text that is not UTF-8, as any client can store it, must not stop a claim.
            connection.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
            yield connection
    except BaseException as error:
        if connection is not None:
            connection.close()
        cause = error.__cause__ if isinstance(error, Unavailable) else error
        if isinstance(cause, sqlite3.Error):
            reason = _reason(path, cause)
            raise Unavailable(f"cannot open {path} as an SQLite database: {reason}") from cause
        raise


def _reason(path: str, error: sqlite3.Error) -> str:
    """What SQLite says, or why, where it says no more than that it is unable to open the file."""
    folder = os.path.dirname(path)
    if primary_code(error) == sqlite3.SQLITE_CANTOPEN:
        if os.path.isdir(path):
            return "it is a folder"
        if folder and not os.path.exists(folder):
            return f"there is no folder {folder}"
    return str(error)


def _switch_to_wal(connection: sqlite3.Connection, busy_timeout_s: float) -> None:
    """Turn WAL on. SQLite does not wait for others here as it does elsewhere, so we do."""
    give_up_at = time.monotonic() + busy_timeout_s
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchall()
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() >= give_up_at:
                raise
            time.sleep(0.005)
        else:
            return


def _install(connection: sqlite3.Connection) -> bool:
    found = _version(connection)
    if found is not None:
        check_version(found)
        return False
    try:
        connection.executescript(installer("sqlite"))
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    return True


def _version(connection: sqlite3.Connection) -> str | None:
    known = "SELECT 1 FROM sqlite_schema WHERE name = 'alkstore_version'"
    if not connection.execute(known).fetchall():
        return None
    [(version,)] = connection.execute("SELECT version FROM alkstore_version").fetchall()
    return str(version)


def _rows(
    connection: sqlite3.Connection, sql: str, values: Sequence[Any] | Mapping[str, Any]
) -> list[tuple[Any, ...]]:
    """All rows, read to the end: a half-read RETURNING would keep the write lock."""
    with errors_by_code(), closing(connection.cursor()) as cursor:
        cursor.row_factory = None  # plain tuples, whatever the caller's connection makes
        return cursor.execute(sql, values).fetchall()
