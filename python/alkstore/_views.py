"""The views, read on a connection that can neither install nor change anything."""

from __future__ import annotations

import os
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from ._sqlite_connection import connected, version
from ._sqlite_errors import errors_by_code
from ._target import Target, is_sqlite, open, place
from .errors import NotInstalled, check_version

if TYPE_CHECKING:
    import psycopg

Row: TypeAlias = dict[str, Any]

COUNTS = ("ready", "delayed", "processing", "lapsed", "expired", "dead")

# In the order of the contract.
_COLUMNS = (
    *("job_id", "queue", "state", "condition", "payload", "priority", "attempts", "max_attempts"),
    *("visibility_timeout_s", "backoff_base_s", "dead_letter_retention_s", "worker_id"),
    *("created_at", "run_at", "expires_at", "claimed_at", "claim_expires_at"),
    *("retry_error", "last_error", "died_at", "released"),
)
_TEXTS = ("payload", "retry_error", "last_error")
_CUT = 1000  # characters: more than a table shows of a text

_ALL = 2**63 - 1

_STATS = """
SELECT {now}, queue, {counts}, {oldest_ready_at}
FROM ({clock}) clock LEFT JOIN alkstore.queue_stats ON queue IS NOT NULL ORDER BY queue"""

_JOBS = """
SELECT {now}, {columns}
FROM (
  SELECT * FROM (
    SELECT
      job.*,
      CASE
        WHEN state = 'dead' THEN 'dead'
        WHEN expires_at < now THEN 'expired'
        WHEN state = 'pending' AND run_at <= now THEN 'ready'
        WHEN state = 'pending' THEN 'delayed'
        WHEN claim_expires_at >= now THEN 'processing'
        ELSE 'lapsed'
      END AS condition
    FROM (SELECT {stored}, ({clock}) AS now FROM alkstore.jobs WHERE queue = %s AND {which}) job
  ) judged
  ORDER BY {order} LIMIT %s
) page
ORDER BY {order}"""

# First what a claim would take, in its order; then what becomes due, by when; then the expired.
_CLAIM_ORDER = """
  CASE condition WHEN 'ready' THEN 1 WHEN 'lapsed' THEN 1 WHEN 'expired' THEN 3 ELSE 2 END,
  CASE WHEN condition IN ('delayed', 'processing') THEN coalesce(claim_expires_at, run_at) END,
  priority DESC, run_at, job_id"""


class Views(ABC):
    """Reads of one database. Rows are by column name, instants unix seconds."""

    clock: str  # the engine's query for the time now
    instant: str  # what makes unix seconds of an instant
    payload: str  # what a list selects as the payload
    computed: tuple[str, ...]  # the columns that a list does not take from the view

    @abstractmethod
    def rows(self, sql: str, values: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
        """The rows one by one, as the database gives them. `alkstore.` names the views."""

    def stats(self) -> tuple[int, list[Row]]:
        """Now, and the row of each queue, by name. SQL: queue_stats."""
        sql = _STATS.format(
            now=self.instant.format("now"),
            clock=self.clock,
            counts=", ".join(COUNTS),
            oldest_ready_at=self.instant.format("oldest_ready_at"),
        )
        columns = ("queue", *COUNTS, "oldest_ready_at")
        rows = list(self.rows(sql, ()))
        return rows[0][0], [
            dict(zip(columns, row[1:], strict=True)) for row in rows if row[1] is not None
        ]

    def live(self, queue: str, limit: int | None, *, whole: bool) -> Generator[Row, None, None]:
        """Live jobs in the order of claims. whole: texts uncut. SQL: jobs."""
        return self._jobs("state <> 'dead'", _CLAIM_ORDER, whole, queue, limit)

    def dead(self, queue: str, limit: int | None, *, whole: bool) -> Generator[Row, None, None]:
        """Dead jobs, newest first. SQL: jobs."""
        return self._jobs("state = 'dead'", "died_at DESC, job_id DESC", whole, queue, limit)

    def job(self, queue: str, job_id: int) -> Row | None:
        """One job, live or dead. None: there is none of that id in the queue. SQL: jobs."""
        rows = list(self._jobs(f"job_id = {job_id:d}", "job_id", True, queue, 1))
        return rows[0] if rows else None

    def _jobs(
        self, which: str, order: str, whole: bool, queue: str, limit: int | None
    ) -> Generator[Row, None, None]:
        sql = _JOBS.format(
            now=self.instant.format("now"),
            columns=", ".join(self._selected(column, whole) for column in _COLUMNS),
            stored=", ".join(column for column in _COLUMNS if column not in self.computed),
            clock=self.clock,
            which=which,
            order=order,
        )
        for row in self.rows(sql, (queue, _ALL if limit is None else limit)):
            yield dict(zip(("now", *_COLUMNS), row, strict=True))

    def _selected(self, column: str, whole: bool) -> str:
        if column.endswith("_at"):
            return self.instant.format(column)
        if column not in _TEXTS:
            return column
        text = self.payload if column == "payload" else column
        return text if whole else f"substr({text}, 1, {_CUT})"


class _SqliteViews(Views):
    clock = "SELECT now FROM __alkstore_clock"
    instant = "{}"
    payload = "NULL"
    computed = ("condition", "payload")

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, sql: str, values: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
        sql = sql.replace("alkstore.", "alkstore_").replace("%s", "?")
        with errors_by_code():
            yield from self._connection.execute(sql, values)

    def _jobs(
        self, which: str, order: str, whole: bool, queue: str, limit: int | None
    ) -> Generator[Row, None, None]:
        # One by one: a sort would first read the payloads of all, long ones elsewhere in the file.
        # In the snapshot of the statement that is being read.
        text = "payload" if whole else f"substr(payload, 1, {_CUT})"
        sql = f"SELECT {text} FROM alkstore.jobs WHERE queue = %s AND job_id = %s"
        for job in super()._jobs(which, order, whole, queue, limit):
            [(job["payload"],)] = self.rows(sql, (queue, job["job_id"]))
            yield job


class _PostgresViews(Views):
    clock = "SELECT alkstore._now() AS now"
    instant = "extract(epoch FROM {})::bigint"
    payload = "payload::text"
    computed = ("condition",)

    def __init__(self, connection: psycopg.Connection[tuple[Any, ...]], schema: str) -> None:
        from ._postgres_connection import prefix

        self._connection = connection
        self._prefix = prefix(schema)

    def rows(self, sql: str, values: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
        from ._postgres_connection import errors_by_code

        sql = sql.replace("alkstore.", self._prefix)
        with errors_by_code(), self._connection.cursor() as cursor:
            yield from cursor.stream(sql.encode(), values)


@contextmanager
def reading(target: Target, schema: str) -> Iterator[Views]:
    """The views of a database, which must be there and have alkstore.

    Raises NotInstalled, VersionMismatch, Unavailable, Busy.
    """
    if is_sqlite(target):
        with closing(_existing(place(target, schema))) as connection:
            yield _SqliteViews(connection)
    else:
        open(target, schema=schema).close()  # which checks what is installed
        with _postgres(str(target)) as connection:
            yield _PostgresViews(connection, schema)


def check_installed(target: Target, schema: str) -> None:
    """Raise NotInstalled where open() would make a file, or install into one."""
    if is_sqlite(target):
        _existing(place(target, schema)).close()


def _existing(path: str) -> sqlite3.Connection:
    if not os.path.exists(path):
        raise NotInstalled(f"there is no file {path}: only `alkstore install` makes one")
    with connected(path, busy_timeout_s=5.0, make=False) as connection:
        connection.execute("PRAGMA query_only = ON")
        found = version(connection)
        if found is None:
            raise NotInstalled(f"there is no alkstore in {path}: run `alkstore install`")
        check_version(found)
        return connection


@contextmanager
def _postgres(url: str) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    import psycopg

    from ._postgres_connection import errors_by_code, parameters

    with errors_by_code():
        # Behind a pooler, what one server session has prepared another does not know.
        connection = psycopg.connect(**parameters(url), prepare_threshold=None)
    with closing(connection):
        yield connection
