"""Connections to PostgreSQL, and what goes wrong on them as the package's errors, by code alone."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from time import monotonic
from typing import Any, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import TupleRow, tuple_row
from psycopg_pool import PoolClosed

from .errors import BY_CODE, Busy, StoreClosed, Unavailable

_BUSY = {"40001", "40P01", "55P03"}  # serialization failure, deadlock, lock not available
_SERVER_GONE = ("08", "57P")  # connection exceptions; shutdown, crash, still starting up
_UNUSABLE = ("53", "25006")  # out of disk, memory or connections; read-only, as after a failover
_CHECK_S = 5.0
_ANSWER_WITHIN_S = 30.0  # longer than any call of a thread of ours should take

T = TypeVar("T")


class Connection(psycopg.Connection[TupleRow]):
    """A connection that need not wait for ever for a peer which has vanished without a word."""

    answer_within_s: float | None = None  # of each wait for the server

    def wait(self, gen: Generator[Any, Any, T], *more: Any, **options: Any) -> T:
        if self.answer_within_s is None:
            return super().wait(gen, *more, **options)
        return super().wait(_in_time(gen, self.answer_within_s), *more, **options)


def _in_time(gen: Generator[Any, Any, T], seconds: float) -> Generator[Any, Any, T]:
    """The same waiting, as long as it takes no longer; psycopg asks ten times a second."""
    give_up_at = monotonic() + seconds
    try:
        awaited = next(gen)
        while True:
            ready = yield awaited
            if not ready and monotonic() >= give_up_at:
                raise psycopg.OperationalError(f"no answer within {seconds:g} s")
            awaited = gen.send(ready)
    except StopIteration as end:
        answer: T = end.value
        return answer


def check(connection: Connection) -> None:
    """Raise when the server does not answer."""
    before, connection.answer_within_s = connection.answer_within_s, _CHECK_S
    connection.execute("")
    connection.answer_within_s = before


def parameters(url: str) -> dict[str, Any]:
    try:
        found = conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        # Up to what it quotes, which may be a password.
        reason = _one_line(error).partition('"')[0].rstrip(": ")
        raise Unavailable(f"not a PostgreSQL URL: {reason}") from None
    # What is taken for a host, port or database would be told when that fails.
    place = url.partition("://")[2].partition("?")[0]
    if place.count("@") > 1 or "@" in place.partition("/")[2]:
        reason = "in a password, write @ as %40 and / as %2F"
        raise Unavailable(f"not a PostgreSQL URL: {reason}")
    return {"connect_timeout": 10, **found, "autocommit": True}


def connect(parameters: dict[str, Any]) -> Connection:
    """A connection for a thread of ours, which must not hang, not even for a lock on a row."""
    with ExitStack() as unless_ready:
        connection = unless_ready.enter_context(closing(Connection.connect(**parameters)))
        connection.answer_within_s = _ANSWER_WITHIN_S
        prepare_nothing_behind_a_pooler(connection)
        if connection.prepare_threshold is not None:  # else the setting would be made for others
            connection.execute("SET lock_timeout = '200ms'")
        unless_ready.pop_all()
    return connection


def prepare_nothing_behind_a_pooler(connection: psycopg.Connection[TupleRow]) -> None:
    """What one server session prepared another does not know, or knows as another statement.

    PgBouncer in transaction mode gives each transaction any of its sessions. A pooler shows by the
    process id: the one that it named when we connected is no server's.
    """
    [(pid,)] = connection.execute("SELECT pg_catalog.pg_backend_pid()")
    if pid != connection.info.backend_pid:
        connection.prepare_threshold = None


@contextmanager
def connected(parameters: dict[str, Any]) -> Iterator[psycopg.Connection[TupleRow]]:
    """A connection for the block, with whatever fails in it told in one line."""
    try:
        with psycopg.connect(**parameters) as connection:
            yield connection
    except psycopg.Error as error:
        reason = _refusal(error) or _one_line(error)
        raise Unavailable(f"cannot use the PostgreSQL database: {reason}") from error


def prefix(schema: str) -> str:
    """What the name of a call begins with, in a statement that takes values."""
    return f"{quoted(schema)}.".replace("%", "%%")


def quoted(identifier: str) -> str:
    return '"' + identifier.replace('"', '""') + '"'


def rows(
    connection: psycopg.Connection[Any], sql: str, values: Sequence[Any] | Mapping[str, Any]
) -> list[TupleRow]:
    # A plain cursor, whatever cursors and rows the caller's connection makes.
    with psycopg.Cursor(connection, row_factory=tuple_row) as cursor:
        return cursor.execute(sql.encode(), values).fetchall()


@contextmanager
def errors_by_code() -> Iterator[None]:
    try:
        yield
    except PoolClosed as error:
        raise StoreClosed("the store is closed") from error
    except psycopg.Error as error:
        code = error.sqlstate or ""
        if code in BY_CODE:
            raise BY_CODE[code](_refusal(error)) from error
        if code in _BUSY:
            raise Busy(_one_line(error)) from error
        gone = isinstance(error, psycopg.OperationalError) and not code
        if gone or code.startswith(_SERVER_GONE):
            raise Unavailable(f"PostgreSQL cannot be reached: {_one_line(error)}") from error
        if code.startswith(_UNUSABLE):
            raise Unavailable(f"PostgreSQL cannot be used: {_refusal(error)}") from error
        raise


def _refusal(error: psycopg.Error) -> str:
    parts = (error.diag.message_primary, error.diag.message_hint)
    return ". ".join(part for part in parts if part)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
