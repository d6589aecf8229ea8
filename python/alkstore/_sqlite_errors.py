"""From what SQLite raises to the package's errors, by code alone."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from .errors import BY_CODE, Busy, Unavailable

_FILE_FAILS = {
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_NOTADB,
}


@contextmanager
def errors_by_code() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        code, _, text = str(error).partition(" ")
        if code in BY_CODE:
            raise BY_CODE[code](text) from error
        if is_busy(error):
            raise Busy(str(error)) from error
        if primary_code(error) in _FILE_FAILS:
            raise Unavailable(f"the SQLite file cannot be used: {error}") from error
        raise


def is_busy(error: sqlite3.Error) -> bool:
    return primary_code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def primary_code(error: sqlite3.Error) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF
