"""Connections to SQLite: opened, set up, and read to the end."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import quote

from ._sql import installer
from ._sqlite_errors import errors_by_code, is_busy, primary_code
from .errors import Unavailable, check_version


@contextmanager
def connected(
    path: str, busy_timeout_s: float, *, make: bool = True
) -> Iterator[sqlite3.Connection]:
    """A new connection, closed again if anything in the block fails, with that told as one line.

    make: make the file where it is not there.
    """
    if sqlite3.sqlite_version_info < (3, 38):
        raise Unavailable(f"SQLite 3.38 or later is needed, this is {sqlite3.sqlite_version}")
    # Never mode=ro, which would leave the files of the WAL behind.
    file = path if make else f"file:{quote(os.fsencode(path))}?mode=rw"
    connection: sqlite3.Connection | None = None
    try:
        with errors_by_code():
            connection = sqlite3.connect(
                file,
                uri=not make,
                timeout=busy_timeout_s,
                isolation_level=None,
                check_same_thread=False,
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


def switch_to_wal(connection: sqlite3.Connection, busy_timeout_s: float) -> None:
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


def install(connection: sqlite3.Connection) -> bool:
    found = version(connection)
    if found is not None:
        check_version(found)
        return False
    try:
        connection.executescript(installer("sqlite"))
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    return True


def version(connection: sqlite3.Connection) -> str | None:
    """The installed version, or None."""
    known = "SELECT 1 FROM sqlite_schema WHERE name = 'alkstore_version'"
    if not connection.execute(known).fetchall():
        return None
    [(version,)] = connection.execute("SELECT version FROM alkstore_version").fetchall()
    return str(version)


def rows(
    connection: sqlite3.Connection, sql: str, values: Sequence[Any] | Mapping[str, Any]
) -> list[tuple[Any, ...]]:
    """All rows, read to the end: a half-read RETURNING would keep the write lock."""
    with errors_by_code(), closing(connection.cursor()) as cursor:
        cursor.row_factory = None  # plain tuples, whatever the caller's connection makes
        return cursor.execute(sql, values).fetchall()
