"""The SQLite of a store: one connection for all its threads, and sessions with their own.

SQLite has one writer at a time, so threads share one connection under a lock: they take turns
fairly, and `:memory:` works like a file.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from weakref import WeakSet

from . import _fork
from ._complaints import Complaints
from ._sqlite_calls import SqliteCalls
from ._sqlite_connection import connected, install, switch_to_wal
from ._sqlite_errors import errors_by_code
from ._sqlite_wakes import SqliteWakes
from .errors import AlkstoreError, Busy, StoreClosed, Unavailable


class SqliteSession(SqliteCalls):
    """The calls on a connection, which is made when needed, and anew when it is of no use."""

    def __init__(self, path: str, busy_timeout_s: float, synchronous: str) -> None:
        self.path = path
        self._busy_timeout_s = busy_timeout_s
        self._synchronous = synchronous
        self._lock = threading.RLock()
        self._closed = False
        self._connection: sqlite3.Connection | None = None
        self._opened = 0
        if path != ":memory:":  # which no other process has, and which closing would lose
            _fork.register(self)

    def _open(self) -> sqlite3.Connection:
        if _fork.is_inherited(self.path):
            raise Unavailable(
                f"{self.path} cannot be opened in this process: it was forked while a transaction "
                "of its parent was open, and has inherited the connection"
            )
        with connected(self.path, self._busy_timeout_s) as connection:
            switch_to_wal(connection, self._busy_timeout_s)
            connection.execute(f"PRAGMA synchronous = {self._synchronous}")
            install(connection)
            self._opened += 1
            return connection

    def data_version(self) -> tuple[int, int]:
        """Something that differs once another connection has committed."""
        with self._own_connection() as connection:
            if self.path == ":memory:":  # there is no other
                return self._opened, connection.total_changes
            with errors_by_code():
                [(version,)] = connection.execute("PRAGMA data_version")
            return self._opened, version

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
        except Unavailable:
            if self.path != ":memory:":  # which would be lost
                self._disconnect()  # what was opened while the file was read-only stays read-only
            raise
        finally:
            self._lock.release()


class SqliteEngine(SqliteSession):
    def __init__(self, path: str, busy_timeout_s: float, synchronous: str) -> None:
        super().__init__(path, busy_timeout_s, synchronous)
        self._sessions: WeakSet[SqliteSession] = WeakSet()  # which end with the store
        self.complain = Complaints()
        self.wakes = SqliteWakes(self.session, self.complain)
        with self._lock:
            self._connection = self._open()

    @staticmethod
    def install(path: str) -> bool:
        with connected(path, busy_timeout_s=5.0) as connection, closing(connection):
            return install(connection)

    def close(self) -> None:
        super().close()
        for session in list(self._sessions):
            session.close()
        self.wakes.close()

    @contextmanager
    def session(self) -> Iterator[SqliteSession]:
        """The calls on another connection, for threads of our own."""
        if self.path == ":memory:":
            yield self
            return
        session = SqliteSession(self.path, self._busy_timeout_s, self._synchronous)
        self._sessions.add(session)
        if self._closed:  # else close() sees the session
            raise StoreClosed("the store is closed")
        try:
            yield session
        finally:
            session.close()

    def claiming_session(self) -> AbstractContextManager[SqliteSession]:
        """What consumers claim by: among the threads of a store they take turns with the others."""
        return nullcontext(self)
