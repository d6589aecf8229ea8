"""The calls on PostgreSQL: one function call each."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import psycopg
from psycopg.rows import TupleRow

from . import _postgres_connection as pg
from ._input import RawJson, addressed, payload_text
from ._postgres_schedules import PostgresSchedules
from ._rows import CLAIM_COLUMNS, JOB_COLUMNS
from .errors import Busy
from .types import Transaction

# With casts, so that a call finds its function whatever Python types the values have.
_ARGUMENTS = {"run_at": "to_timestamp(%(run_at)s::bigint)"} | {
    name: f"%({name})s::text" for name in ("queue", "error", "name", "owner")
}


def _function(call: str, queue: str) -> tuple[str, str]:
    """The function for a queue or an outbox, and the name to call it with."""
    kind, name = addressed(queue)
    return (call if kind == "queue" else f"outbox_{call}"), name


def _arguments(names: Iterable[str]) -> str:
    return ", ".join(f"{name} => {_ARGUMENTS.get(name, f'%({name})s::bigint')}" for name in names)


def _columns(names: Sequence[str]) -> str:
    """Instants as numbers: independent of the session's time zone and of Python's years."""
    casts = {"payload": "payload::text"} | {
        name: f"extract(epoch FROM {name})::bigint" for name in names if name.endswith("_at")
    }
    return ", ".join(casts.get(name, name) for name in names)


class PostgresCalls(PostgresSchedules):
    """The calls, on the caller's connection where tx is given, else on one of its own."""

    _prefix: str  # the schema, quoted, and a dot

    @abstractmethod
    def _own_connection(self) -> AbstractContextManager[pg.Connection]: ...

    def enqueue(
        self, tx: object, queue: str, payload: Any, options: Mapping[str, int | None]
    ) -> int:
        function, name = _function("enqueue", queue)
        sql = f"""
            SELECT alkstore.{function}(%(queue)s::text, %(payload)s::text, {_arguments(options)})"""
        values = {"queue": name, "payload": payload_text(payload), **options}
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
                SELECT alkstore.enqueue(%(queue)s::text, p.payload, {_arguments(options)})
                FROM unnest(%(payloads)s::text[]) WITH ORDINALITY AS p(payload, position)
                ORDER BY p.position"""
        else:
            values["payloads"] = f"[{', '.join(texts)}]"
            sql = f"""
                SELECT alkstore.enqueue_batch(
                    %(queue)s::text, %(payloads)s::text, {_arguments(options)})"""
        return [job_id for (job_id,) in self._call(tx, sql, values)]

    def claim(self, tx: object, queue: str, worker_id: str, n: int | None) -> list[Sequence[Any]]:
        function, name = _function("claim", queue)
        sql = f"""
            SELECT {_columns(CLAIM_COLUMNS)}
            FROM alkstore.{function}(%s::text, %s::text, n => %s::bigint)"""
        return list(self._call(tx, sql, (name, worker_id, n)))

    def look(self, queue: str, worker_id: str, n: int) -> tuple[list[Sequence[Any]], float | None]:
        """Claim; without a job also the seconds to next_due."""
        rows = self.claim(None, queue, worker_id, n)
        return rows, None if rows else self.next_due_s(queue)

    def accepted(self, tx: object, call: str, **arguments: str | int | None) -> bool:
        """Run a call that answers true or false."""
        sql = f"SELECT alkstore.{call}({_arguments(arguments)})"
        [(answer,)] = self._call(tx, sql, arguments)
        return bool(answer)

    def cancel(self, tx: object, queue: str, job_id: int) -> bool:
        function, name = _function("cancel", queue)
        sql = f"SELECT alkstore.{function}(%s::text, %s::bigint)"
        [(answer,)] = self._call(tx, sql, (name, job_id))
        return bool(answer)

    def settle(
        self,
        call: str,
        queue: str,
        claims: Sequence[tuple[int, int]],
        lock_timeout: str = "200ms",
    ) -> dict[tuple[int, int], bool]:
        """Ack, release or heartbeat claims by (id, attempt), in one statement; their answers.

        What others keep locked has none. It must not hold up the rest, so then each goes alone,
        and hardly waits. The timeout is that of this statement only, also behind a pooler.
        """
        sql = f"""
            WITH patience AS MATERIALIZED (SELECT set_config('lock_timeout', %s::text, true))
            SELECT c.job_id, c.attempt, alkstore.{call}(%s::text, c.job_id, c.attempt)
            FROM patience, unnest(%s::bigint[], %s::bigint[]) AS c(job_id, attempt)"""
        job_ids, attempts = zip(*sorted(claims), strict=True)  # locked in the order of ack_batch
        try:
            rows = self._call(None, sql, (lock_timeout, queue, list(job_ids), list(attempts)))
        except Busy:
            alone = (
                [self.settle(call, queue, [c], "10ms") for c in claims] if len(claims) > 1 else []
            )
            return {claim: answer for answers in alone for claim, answer in answers.items()}
        return {(job_id, attempt): answer for job_id, attempt, answer in rows}

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
        function, name = _function("sweep_expired", queue)
        sql = f"SELECT expired, pruned FROM alkstore.{function}(%s::text)"
        [(expired, pruned)] = self._call(tx, sql, (name,))
        return expired, pruned

    def next_due(self, tx: object, queue: str) -> int | None:
        sql = "SELECT extract(epoch FROM alkstore.next_due(%s::text))::bigint"
        [(unix_seconds,)] = self._call(tx, sql, (queue,))
        return None if unix_seconds is None else int(unix_seconds)

    def next_due_s(self, queue: str) -> float | None:
        """Seconds to next_due by the server's clock."""
        sql = "SELECT extract(epoch FROM alkstore.next_due(%s::text) - clock_timestamp())::float"
        [(seconds,)] = self._call(None, sql, (queue,))
        return None if seconds is None else float(seconds)

    @contextmanager
    def transaction(self) -> Iterator[psycopg.Connection[TupleRow]]:
        with ExitStack() as stack:
            with pg.errors_by_code():
                connection = stack.enter_context(self._own_connection())
                stack.enter_context(connection.transaction())
            yield connection

    def _call(
        self, tx: object, sql: str, values: Sequence[Any] | Mapping[str, Any]
    ) -> list[TupleRow]:
        sql = sql.replace("alkstore.", self._prefix)
        with pg.errors_by_code():
            if tx is None:
                with self._own_connection() as own:
                    return pg.rows(own, sql, values)
            connection = tx.connection if isinstance(tx, Transaction) else tx
            if not isinstance(connection, psycopg.Connection):
                raise TypeError(f"tx must be a Transaction or psycopg.Connection, not {tx!r}")
            return pg.rows(connection, sql, values)
