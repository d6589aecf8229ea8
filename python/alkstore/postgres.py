"""The PostgreSQL of a store: a pool of connections in autocommit, and sessions beside it."""

from __future__ import annotations

import os
import shlex
import threading
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from time import monotonic
from typing import Any
from weakref import WeakSet

import psycopg
from psycopg import pq
from psycopg.rows import TupleRow
from psycopg_pool import ConnectionPool

from . import _postgres_connection as pg
from ._complaints import Complaints
from ._postgres_calls import PostgresCalls
from ._postgres_wakes import PostgresWakes
from ._sql import installer
from .errors import NotInstalled, StoreClosed, check_version

_TRUSTED_FOR_S = 30.0  # without a look whether its connection is still good


class PostgresEngine(PostgresCalls):
    def __init__(self, url: str, schema: str, pool_size: int) -> None:
        self._prefix = pg.prefix(schema)
        parameters = pg.parameters(url)
        with pg.connected(parameters) as connection:
            found = _version(connection, schema)
        if found is None:
            option = "" if schema == "alkstore" else f" --schema {shlex.quote(schema)}"
            raise NotInstalled(
                f"the database has no alkstore in schema {schema}; "
                f"run: alkstore install{option} URL"
            )
        check_version(found)
        self._parameters = parameters
        self._sessions: WeakSet[PostgresSession] = WeakSet()  # which end with the store
        self._pool = ConnectionPool(
            connection_class=pg.Connection,
            kwargs=parameters,
            min_size=0,
            max_size=pool_size,
            configure=pg.prepare_nothing_behind_a_pooler,
            check=pg.check,
            open=True,
        )
        self.complain = Complaints()
        self.wakes = PostgresWakes(self._connect, self._prefix, self.complain)
        # A store that is never closed must not hold up the end of the program.
        weakref.finalize(self, _close, self._pool, os.getpid())

    @staticmethod
    def install(url: str, schema: str) -> bool:
        with pg.connected(pg.parameters(url)) as connection:
            found = _version(connection, schema)
            if found is None:
                connection.execute("SELECT set_config('alkstore.schema', %s, false)", (schema,))
                connection.execute(installer("postgres").encode())
                return True
            check_version(found)
            return False

    def close(self) -> None:
        self._pool.close()
        for session in list(self._sessions):
            session.close()
        self.wakes.close()

    @contextmanager
    def session(self) -> Iterator[PostgresSession]:
        """The calls on a connection beside the pool, for threads of our own."""
        session = PostgresSession(self._parameters, self._prefix)
        self._sessions.add(session)
        if self._pool.closed:  # else close() sees the session
            raise StoreClosed("the store is closed")
        try:
            yield session
        finally:
            session.close()

    def claiming_session(self) -> AbstractContextManager[PostgresSession]:
        """What consumers claim by: they leave the pool to the work, and outlive what hangs."""
        return self.session()

    def _own_connection(self) -> AbstractContextManager[pg.Connection]:
        return self._pool.connection()

    def _connect(self) -> pg.Connection:
        if self._pool.closed:
            raise StoreClosed("the store is closed")
        return pg.connect(self._parameters)


class PostgresSession(PostgresCalls):
    """The calls on a connection of its own, which is made when needed, and anew when lost."""

    def __init__(self, parameters: dict[str, Any], prefix: str) -> None:
        self._parameters = parameters
        self._prefix = prefix
        self._owner = os.getpid()
        self._lock = threading.RLock()
        self._closed = False
        self._connection: pg.Connection | None = None
        self._used_at = 0.0

    def close(self) -> None:
        """A call under way in another thread still ends as it would have."""
        if os.getpid() != self._owner:  # a fork would hang up on its parent's server
            return
        self._closed = True
        if self._lock.acquire(blocking=False):
            self._disconnect()
            self._lock.release()

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()

    @contextmanager
    def _own_connection(self) -> Iterator[pg.Connection]:
        with self._lock:
            if self._closed:
                raise StoreClosed("the store is closed")
            connection = self._connected()
            try:
                yield connection
            except psycopg.errors.ReadOnlySqlTransaction:
                connection.close()  # after a failover another server may take what this one refuses
                raise
            finally:
                in_order = connection.info.transaction_status == pq.TransactionStatus.IDLE
                if self._closed or not in_order:
                    connection.close()
            self._used_at = monotonic()

    def _connected(self) -> pg.Connection:
        connection = self._connection
        if connection is not None and not connection.closed:
            if monotonic() < self._used_at + _TRUSTED_FOR_S:
                return connection
            with suppress(psycopg.OperationalError):
                pg.check(connection)
                return connection
            connection.close()
        self._connection = pg.connect(self._parameters)
        return self._connection


def _close(pool: ConnectionPool[pg.Connection], owner: int) -> None:
    if os.getpid() == owner:  # a fork would hang up on its parent's server
        pool.close()


def _version(connection: psycopg.Connection[TupleRow], schema: str) -> str | None:
    """The installed version, or None. Read and not called: the function could be anybody's."""
    sql = """
        SELECT substring(prosrc FROM '^ SELECT ''([^'']+)'' $') FROM pg_catalog.pg_proc
        WHERE oid = pg_catalog.to_regprocedure(%s)"""
    rows = pg.rows(connection, sql, (f"{pg.quoted(schema)}.version()",))
    return rows[0][0] if rows else None
