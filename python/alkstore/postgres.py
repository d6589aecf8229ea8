"""The calls on PostgreSQL: one function call each, on a pool of connections in autocommit."""

from __future__ import annotations

import os
import shlex
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import TupleRow, tuple_row
from psycopg_pool import ConnectionPool, PoolClosed

from ._input import RawJson, payload_text
from ._postgres_schedules import PostgresSchedules
from ._rows import CLAIM_COLUMNS, JOB_COLUMNS
from ._sql import installer
from .errors import BY_CODE, Busy, NotInstalled, StoreClosed, Unavailable, check_version
from .types import Transaction

# Casts, so that a call finds its function whatever Python types the values have.
_OPTIONS = """
    delay_s => %(delay_s)s::bigint, run_at => to_timestamp(%(run_at)s::bigint),
    priority => %(priority)s::bigint, expires_s => %(expires_s)s::bigint,
    max_attempts => %(max_attempts)s::bigint,
    visibility_timeout_s => %(visibility_timeout_s)s::bigint,
    backoff_base_s => %(backoff_base_s)s::bigint,
    dead_letter_retention_s => %(dead_letter_retention_s)s::bigint"""
_TEXT_ARGUMENTS = ("queue", "error", "name", "owner")

_BUSY = {"40001", "40P01", "55P03"}  # serialization failure, deadlock, lock not available
_SERVER_GONE = ("08", "57P")  # connection exceptions; shutdown, crash, still starting up


def _columns(names: Sequence[str]) -> str:
    """Instants as numbers: independent of the session's time zone and of Python's years."""
    casts = {"payload": "payload::text"} | {
        name: f"extract(epoch FROM {name})::bigint" for name in names if name.endswith("_at")
    }
    return ", ".join(casts.get(name, name) for name in names)


class PostgresEngine(PostgresSchedules):
    def __init__(self, url: str, schema: str, pool_size: int) -> None:
        self._prefix = _quoted(schema).replace("%", "%%") + "."
        parameters = _parameters(url)
        with _connected(parameters) as connection:
            found = _version(connection, schema)
        if found is None:
            option = "" if schema == "alkstore" else f" --schema {shlex.quote(schema)}"
            raise NotInstalled(
                f"the database has no alkstore in schema {schema}; "
                f"run: alkstore install{option} URL"
            )
        check_version(found)
        self._parameters = parameters
        self._pool = ConnectionPool(
            kwargs=parameters,
            min_size=0,
            max_size=pool_size,
            configure=_prepare_nothing_behind_a_pooler,
            check=ConnectionPool.check_connection,
            open=True,
        )
        # A store that is never closed must not hold up the end of the program.
        weakref.finalize(self, _close, self._pool, os.getpid())

    @staticmethod
    def install(url: str, schema: str) -> bool:
        with _connected(_parameters(url)) as connection:
            found = _version(connection, schema)
            if found is None:
                connection.execute("SELECT set_config('alkstore.schema', %s, false)", (schema,))
                connection.execute(installer("postgres").encode())
                return True
            check_version(found)
            return False

    def close(self) -> None:
        self._pool.close()

    def enqueue(
        self, tx: object, queue: str, payload: Any, options: Mapping[str, int | None]
    ) -> int:
        sql = f"SELECT alkstore.enqueue(%(queue)s::text, %(payload)s::text, {_OPTIONS})"
        values = {"queue": queue, "payload": payload_text(payload), **options}
        [(job_id,)] = self._call(tx, sql, values)
        return int(job_id)

    def enqueue_batch(
        self, tx: object, queue: str, payloads: Sequence[Any], options: Mapping[str, int | None]
    ) -> list[int]:
        texts = [payload_text(payload) for payload in payloads]
        values: dict[str, Any] = {"queue": queue, **options}
        if any(isinstance(payload, RawJson) for payload in payloads):
            # In a JSON array, white space around an element would be lost, and `1, 2` be two. So
            # one call for each, still one statement: the order is that of the sorted rows.
            values["payloads"] = texts
            sql = f"""
                SELECT alkstore.enqueue(%(queue)s::text, p.payload, {_OPTIONS})
                FROM unnest(%(payloads)s::text[]) WITH ORDINALITY AS p(payload, position)
                ORDER BY p.position"""
        else:
            values["payloads"] = f"[{', '.join(texts)}]"
            sql = f"SELECT alkstore.enqueue_batch(%(queue)s::text, %(payloads)s::text, {_OPTIONS})"
        return [job_id for (job_id,) in self._call(tx, sql, values)]

    def claim(self, tx: object, queue: str, worker_id: str, n: int | None) -> list[Sequence[Any]]:
        sql = f"""
            SELECT {_columns(CLAIM_COLUMNS)}
            FROM alkstore.claim(%s::text, %s::text, n => %s::bigint)"""
        return list(self._call(tx, sql, (queue, worker_id, n)))

    def accepted(self, tx: object, call: str, **arguments: str | int | None) -> bool:
        """Run a call that answers true or false."""
        named = ", ".join(
            f"{name} => %({name})s::{'text' if name in _TEXT_ARGUMENTS else 'bigint'}"
            for name in arguments
        )
        [(answer,)] = self._call(tx, f"SELECT alkstore.{call}({named})", arguments)
        return bool(answer)

    def ack_batch(
        self, tx: object, queue: str, job_ids: list[int], attempts: list[int | None]
    ) -> int:
        sql = "SELECT alkstore.ack_batch(%s::text, %s::bigint[], %s::bigint[])"
        [(count,)] = self._call(tx, sql, (queue, job_ids, attempts))
        return int(count)

    def get_job(self, tx: object, queue: str, job_id: int) -> Sequence[Any] | None:
        sql = f"SELECT {_columns(JOB_COLUMNS)} FROM alkstore.get_job(%s::text, %s::bigint)"
        rows = self._call(tx, sql, (queue, job_id))
        return rows[0] if rows else None

    def sweep_expired(self, tx: object, queue: str) -> tuple[int, int]:
        sql = "SELECT expired, pruned FROM alkstore.sweep_expired(%s::text)"
        [(expired, pruned)] = self._call(tx, sql, (queue,))
        return expired, pruned

    def next_due(self, tx: object, queue: str) -> int | None:
        sql = "SELECT extract(epoch FROM alkstore.next_due(%s::text))::bigint"
        [(unix_seconds,)] = self._call(tx, sql, (queue,))
        return None if unix_seconds is None else int(unix_seconds)

    @contextmanager
    def session(self) -> Iterator[psycopg.Connection[TupleRow]]:
        """A connection beside the pool, to pass as tx to many calls, each its own transaction."""
        with _errors_by_code():
            connection = psycopg.connect(**self._parameters)
        with connection:
            yield connection

    @contextmanager
    def transaction(self) -> Iterator[psycopg.Connection[TupleRow]]:
        with ExitStack() as stack:
            with _errors_by_code():
                connection = stack.enter_context(self._pool.connection())
                stack.enter_context(connection.transaction())
            yield connection

    def _call(
        self, tx: object, sql: str, values: Sequence[Any] | Mapping[str, Any]
    ) -> list[TupleRow]:
        sql = sql.replace("alkstore.", self._prefix)
        with _errors_by_code():
            if tx is None:
                with self._pool.connection() as own:
                    return _rows(own, sql, values)
            connection = tx.connection if isinstance(tx, Transaction) else tx
            if not isinstance(connection, psycopg.Connection):
                raise TypeError(f"tx must be a Transaction or psycopg.Connection, not {tx!r}")
            return _rows(connection, sql, values)


def _close(pool: ConnectionPool, owner: int) -> None:
    if os.getpid() == owner:  # a fork would hang up on its parent's server
        pool.close()


def _parameters(url: str) -> dict[str, Any]:
    try:
        return {"connect_timeout": 10, **conninfo_to_dict(url), "autocommit": True}
    except psycopg.ProgrammingError as error:
        raise Unavailable(f"not a PostgreSQL URL: {_one_line(error)}") from error


def _prepare_nothing_behind_a_pooler(connection: psycopg.Connection[TupleRow]) -> None:
    """What one server session prepared another does not know, or knows as another statement.

    PgBouncer in transaction mode gives each transaction any of its sessions. A pooler shows by the
    process id: the one that it named when we connected is no server's.
    """
    [(pid,)] = connection.execute("SELECT pg_catalog.pg_backend_pid()")
    if pid != connection.info.backend_pid:
        connection.prepare_threshold = None


@contextmanager
def _connected(parameters: dict[str, Any]) -> Iterator[psycopg.Connection[TupleRow]]:
    """A connection for the block, with whatever fails in it told in one line."""
    try:
        with psycopg.connect(**parameters) as connection:
            yield connection
    except psycopg.Error as error:
        reason = _refusal(error) or _one_line(error)
        raise Unavailable(f"cannot use the PostgreSQL database: {reason}") from error


def _version(connection: psycopg.Connection[TupleRow], schema: str) -> str | None:
    """The installed version, or None. Read and not called: the function could be anybody's."""
    sql = """
        SELECT substring(prosrc FROM '^ SELECT ''([^'']+)'' $') FROM pg_catalog.pg_proc
        WHERE oid = pg_catalog.to_regprocedure(%s)"""
    rows = _rows(connection, sql, (f"{_quoted(schema)}.version()",))
    return rows[0][0] if rows else None


def _quoted(identifier: str) -> str:
    return '"' + identifier.replace('"', '""') + '"'


def _rows(
    connection: psycopg.Connection[Any], sql: str, values: Sequence[Any] | Mapping[str, Any]
) -> list[TupleRow]:
    # A plain cursor, whatever cursors and rows the caller's connection makes.
    with psycopg.Cursor(connection, row_factory=tuple_row) as cursor:
        return cursor.execute(sql.encode(), values).fetchall()


@contextmanager
def _errors_by_code() -> Iterator[None]:
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
        raise


def _refusal(error: psycopg.Error) -> str:
    parts = (error.diag.message_primary, error.diag.message_hint)
    return ". ".join(part for part in parts if part)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
