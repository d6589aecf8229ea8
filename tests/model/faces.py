"""One way of speaking for both engines, by raw SQL and through the Python package.

Rows and instants come back alike: instants as unix seconds, jobs with the columns of the view jobs.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from typing import Any

import psycopg

import alkstore

CLAIM_COLUMNS = [
    "job_id", "queue", "payload", "attempt", "claim_expires_at", "priority", "max_attempts",
    "worker_id", "claimed_at", "run_at", "expires_at", "created_at",
]  # fmt: skip
JOB_COLUMNS = [
    "job_id", "queue", "state", "payload", "priority", "attempts", "max_attempts",
    "visibility_timeout_s", "backoff_base_s", "dead_letter_retention_s", "worker_id", "created_at",
    "run_at", "expires_at", "claimed_at", "claim_expires_at", "retry_error", "last_error",
    "died_at", "released",
]  # fmt: skip
STATS = ("ready", "delayed", "processing", "lapsed", "expired", "dead")

Row = tuple[Any, ...]
Look = tuple[list[Row], list[Row], list[Row], list[int | None]]  # jobs, one job, stats, next due


class Postgres:
    """Raw SQL."""

    STOPPED_CLOCK = """
        CREATE TABLE test_clock (now timestamptz NOT NULL);
        INSERT INTO test_clock VALUES (now());
        CREATE OR REPLACE FUNCTION alkstore._now() RETURNS timestamptz
        LANGUAGE sql VOLATILE AS 'SELECT now FROM public.test_clock'"""

    def __init__(self, url: str, **parameters: Any) -> None:
        self.connection = psycopg.connect(url, autocommit=True, **parameters)
        self.connection.execute("SET alkstore.notify = off")

    def close(self) -> None:
        self.connection.close()

    def script(self, text: str) -> None:
        self.connection.execute(text.encode())

    def run(self, sql: str, *values: Any) -> list[Row]:
        cursor = self.connection.execute(sql.encode(), values, prepare=True)
        return cursor.fetchall() if cursor.description else []

    def reset(self) -> None:
        self.run("DELETE FROM alkstore._job")
        self.run("DELETE FROM alkstore._dead_job")
        self.run("SELECT set_config('alkstore._mark', '', false)")

    def set_now(self, now: int) -> None:
        self.run("UPDATE test_clock SET now = to_timestamp(%s)", now)

    def enqueue(self, queue: str, payload: str, options: dict[str, int | None]) -> int:
        names = ", ".join(self._option(name) for name in options)
        sql = f"SELECT alkstore.enqueue(%s::text, %s::text, {names})"
        return int(self.run(sql, queue, payload, *options.values())[0][0])

    def enqueue_batch(
        self, queue: str, payloads: list[str], options: dict[str, int | None]
    ) -> list[int]:
        names = ", ".join(self._option(name) for name in options)
        sql = f"SELECT alkstore.enqueue_batch(%s::text, %s::text, {names})"
        array = f"[{','.join(payloads)}]"
        return [id for (id,) in self.run(sql, queue, array, *options.values())]

    @staticmethod
    def _option(name: str) -> str:
        return f"{name} => " + ("to_timestamp(%s)" if name == "run_at" else "%s::bigint")

    def claim(self, queue: str, worker_id: str, n: int | None) -> list[Row]:
        sql = f"SELECT {_as_numbers(CLAIM_COLUMNS)} FROM alkstore.claim(%s, %s, %s::bigint)"
        return self.run(sql, queue, worker_id, n)

    def settle(self, call: str, queue: str, id: int, attempt: int | None, *more: Any) -> bool:
        marks = "".join(", %s::text" if isinstance(value, str) else ", %s" for value in more)
        sql = f"SELECT alkstore.{call}(%s::text, %s::bigint, %s::bigint{marks})"
        return bool(self.run(sql, queue, id, attempt, *more)[0][0])

    def ack_batch(self, queue: str, ids: list[int], attempts: list[int | None]) -> int:
        sql = "SELECT alkstore.ack_batch(%s, %s::bigint[], %s::bigint[])"
        return int(self.run(sql, queue, ids, attempts)[0][0])

    def cancel(self, queue: str, id: int) -> bool:
        return bool(self.run("SELECT alkstore.cancel(%s, %s::bigint)", queue, id)[0][0])

    def sweep_expired(self, queue: str) -> Row:
        return self.run("SELECT expired, pruned FROM alkstore.sweep_expired(%s)", queue)[0]

    def jobs(self) -> list[Row]:
        return self.run(f"SELECT {_as_numbers(JOB_COLUMNS)} FROM alkstore.jobs ORDER BY job_id")

    def get_job(self, queue: str, id: int) -> list[Row]:
        sql = f"SELECT {_as_numbers(JOB_COLUMNS)} FROM alkstore.get_job(%s, %s::bigint)"
        return self.run(sql, queue, id)

    def look(self, queues: Sequence[str], queue: str, id: int) -> Look:
        jobs = f"json_agg(json_build_array({_as_numbers(JOB_COLUMNS)})"
        sql = f"""
            SELECT
              (SELECT {jobs} ORDER BY job_id) FROM alkstore.jobs),
              (SELECT {jobs}) FROM alkstore.get_job(%s, %s::bigint)),
              (SELECT json_agg(json_build_array(queue, {", ".join(STATS)}))
               FROM alkstore.queue_stats),
              (SELECT json_agg(extract(epoch FROM alkstore.next_due(q))::bigint ORDER BY position)
               FROM unnest(%s::text[]) WITH ORDINALITY u (q, position))"""
        [(all_jobs, one, stats, due)] = self.run(sql, queue, id, list(queues))
        return _rows(all_jobs), _rows(one), _rows(stats), due

    def set_run_at(self, id: int, run_at: int) -> None:
        """For the one thing that engines draw each for itself: the backoff."""
        sql = (
            "UPDATE alkstore._job SET run_at = at, due_at = at, ready = at <= alkstore._now() "
            "FROM (SELECT to_timestamp(%s) AS at) drawn WHERE id = %s"
        )
        self.run(sql, run_at, id)


class Sqlite:
    """Raw SQL."""

    STOPPED_CLOCK = """
        CREATE TABLE test_clock (now INTEGER NOT NULL);
        INSERT INTO test_clock VALUES (0);
        DROP VIEW __alkstore_clock;
        CREATE VIEW __alkstore_clock(now) AS SELECT now FROM test_clock"""

    def __init__(self, path: str, **parameters: Any) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None, **parameters)

    def close(self) -> None:
        self.connection.close()

    def script(self, text: str) -> None:
        self.connection.executescript(text)

    def run(self, sql: str, *values: Any) -> list[Row]:
        rows: list[Row] = self.connection.execute(sql, values).fetchall()
        return rows

    def reset(self) -> None:
        for table in ("__alkstore_job", "__alkstore_dead_job", "__alkstore_payload"):
            self.run(f"DELETE FROM {table}")

    def set_now(self, now: int) -> None:
        self.run("UPDATE test_clock SET now = ?", now)

    def enqueue(self, queue: str, payload: str, options: dict[str, int | None]) -> int:
        return self.enqueue_batch(queue, [payload], options)[0]

    def enqueue_batch(
        self, queue: str, payloads: list[str], options: dict[str, int | None]
    ) -> list[int]:
        if not payloads:
            return []
        row = f"(?, ?{', ?' * len(options)})"
        sql = (
            f"INSERT INTO alkstore_enqueue(queue, payload, {', '.join(options)}) "
            f"VALUES {', '.join([row] * len(payloads))} RETURNING job_id"
        )
        values = [v for payload in payloads for v in (queue, payload, *options.values())]
        return [id for (id,) in self.run(sql, *values)]

    def claim(self, queue: str, worker_id: str, n: int | None) -> list[Row]:
        sql = (
            "INSERT INTO alkstore_claim(queue, worker_id, n) VALUES (?, ?, ?) "
            "RETURNING (SELECT jobs FROM alkstore_claimed_json)"
        )
        jobs = json.loads(self.run(sql, queue, worker_id, n)[0][0])
        return [tuple(job[column] for column in CLAIM_COLUMNS) for job in jobs]

    def settle(self, call: str, queue: str, id: int, attempt: int | None, *more: Any) -> bool:
        columns = {"retry": ", error, delay_s", "fail": ", error", "heartbeat": ", extend_s"}
        sql = (
            f"INSERT INTO alkstore_{call}(queue, job_id, attempt{columns.get(call, '')}) "
            f"VALUES (?, ?, ?{', ?' * len(more)}) RETURNING job_id"
        )
        return bool(self.run(sql, queue, id, attempt, *more))

    def ack_batch(self, queue: str, ids: list[int], attempts: list[int | None]) -> int:
        sql = (
            "INSERT INTO alkstore_ack_batch(queue, job_id, attempt) "
            "SELECT ?, value ->> 0, value ->> 1 FROM json_each(?) RETURNING job_id"
        )
        return len(self.run(sql, queue, json.dumps(list(zip(ids, attempts, strict=True)))))

    def cancel(self, queue: str, id: int) -> bool:
        sql = "INSERT INTO alkstore_cancel(queue, job_id) VALUES (?, ?) RETURNING job_id"
        return bool(self.run(sql, queue, id))

    def sweep_expired(self, queue: str) -> Row:
        sql = (
            "INSERT INTO alkstore_sweep_expired(queue) VALUES (?) "
            "RETURNING (SELECT expired FROM alkstore_swept), (SELECT pruned FROM alkstore_swept)"
        )
        return self.run(sql, queue)[0]

    def jobs(self) -> list[Row]:
        return self.run(f"SELECT {', '.join(JOB_COLUMNS)} FROM alkstore_jobs ORDER BY job_id")

    def get_job(self, queue: str, id: int) -> list[Row]:
        sql = f"SELECT {', '.join(JOB_COLUMNS)} FROM alkstore_jobs WHERE queue = ? AND job_id = ?"
        return self.run(sql, queue, id)

    def look(self, queues: Sequence[str], queue: str, id: int) -> Look:
        stats = self.run(f"SELECT queue, {', '.join(STATS)} FROM alkstore_queue_stats")
        due = {row[0]: row[1] for row in self.run("SELECT * FROM alkstore_next_due")}
        kept = self.run("SELECT id FROM __alkstore_payload EXCEPT SELECT job_id FROM alkstore_jobs")
        assert not kept, f"long payloads of jobs that are gone: {kept}"
        return self.jobs(), self.get_job(queue, id), stats, [due.get(q) for q in queues]

    def set_run_at(self, id: int, run_at: int) -> None:
        """For the one thing that engines draw each for itself: the backoff."""
        sql = (
            "UPDATE __alkstore_job SET run_at = ?1, due_at = ?1, "
            "ready = ?1 <= (SELECT now FROM __alkstore_clock) WHERE id = ?2"
        )
        self.run(sql, run_at, id)


class Package:
    """The Python package over a raw face, which goes on to do the looking."""

    def __init__(self, raw: Postgres | Sqlite, target: str) -> None:
        self._raw = raw
        self._own_connection = raw.connection
        self._store = alkstore.open(target)
        self._tx: alkstore.Transaction | None = None
        self._block: AbstractContextManager[alkstore.Transaction] | None = None
        self._handles: dict[tuple[int, int], alkstore.JobHandle] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)

    def close(self) -> None:
        self._store.close()
        self._raw.close()

    def reset(self) -> None:
        self._handles.clear()
        self._raw.reset()

    def run(self, sql: str, *values: Any) -> list[Row]:
        """Transactions go by the package; in one, the looking must see what it did."""
        if sql == "BEGIN":
            self._block = self._store.transaction()
            self._tx = self._block.__enter__()
            self._raw.connection = self._tx.connection
        elif sql in ("COMMIT", "ROLLBACK") and self._block is not None:
            self._raw.connection = self._own_connection
            block, self._block, self._tx = self._block, None, None
            undo = _Undo() if sql == "ROLLBACK" else None
            with suppress(_Undo):
                block.__exit__(type(undo) if undo else None, undo, None)
        else:
            return self._raw.run(sql, *values)
        return []

    def enqueue(self, queue: str, payload: str, options: dict[str, Any]) -> int:
        return self.enqueue_batch(queue, [payload], options)[0]

    def enqueue_batch(self, queue: str, payloads: list[str], options: dict[str, Any]) -> list[int]:
        stamps = ("visibility_timeout_s", "backoff_base_s", "dead_letter_retention_s")
        here = self._store.queue(
            queue, max_attempts=None, **{name: options[name] for name in stamps}
        )
        options = {name: value for name, value in options.items() if name not in stamps}
        options["run_at"] = _instant(options["run_at"])
        texts = [alkstore.RawJson(payload) for payload in payloads]
        if len(texts) == 1:
            return [here.enqueue(texts[0], **options, tx=self._tx)]
        return here.enqueue_batch(texts, **options, tx=self._tx)

    def claim(self, queue: str, worker_id: str, n: int | None) -> list[Row]:
        handles = self._store.queue(queue).claim_batch(worker_id, n, tx=self._tx)
        rows = []
        for handle in handles:
            self._handles[handle.id, handle.attempt] = handle
            rows.append(_row(handle, CLAIM_COLUMNS))
        return rows

    def settle(self, call: str, queue: str, id: int, attempt: int | None, *more: Any) -> bool:
        handle = self._handles.get((id, attempt or 0))
        if handle is None or handle.queue != queue:
            return self._raw.settle(call, queue, id, attempt, *more)
        return bool(getattr(handle, call)(*more, tx=self._tx))

    def ack_batch(self, queue: str, ids: list[int], attempts: list[int | None]) -> int:
        claims: list[alkstore.JobHandle | int] = []
        for id, attempt in zip(ids, attempts, strict=True):
            handle = self._handles.get((id, attempt or 0))
            if attempt is not None and handle is None:
                return self._raw.ack_batch(queue, ids, attempts)
            claims.append(handle or id)
        return self._store.queue(queue).ack_batch(claims, tx=self._tx)

    def cancel(self, queue: str, id: int) -> bool:
        return self._store.queue(queue).cancel(id, tx=self._tx)

    def sweep_expired(self, queue: str) -> Row:
        return tuple(self._store.queue(queue).sweep_expired(tx=self._tx))

    def look(self, queues: Sequence[str], queue: str, id: int) -> Look:
        jobs, _, stats, _ = self._raw.look(queues, queue, id)
        job = self._store.queue(queue).get_job(id, tx=self._tx)
        due = [_unix_seconds(self._store.queue(q).next_due(tx=self._tx)) for q in queues]
        return jobs, [_row(job, JOB_COLUMNS)] if job else [], stats, due


def _unix_seconds(value: Any) -> Any:
    return int(value.timestamp()) if isinstance(value, datetime) else value


def _row(job: alkstore.Job, columns: list[str]) -> Row:
    renamed = {"job_id": "id", "payload": "payload_text"}
    return tuple(_unix_seconds(getattr(job, renamed.get(column, column))) for column in columns)


def _rows(array: list[list[Any]] | None) -> list[Row]:
    return [tuple(row) for row in array or ()]


class _Undo(Exception):
    pass


def _instant(unix_seconds: int | None) -> datetime | None:
    return None if unix_seconds is None else datetime.fromtimestamp(unix_seconds, UTC)


def _as_numbers(columns: list[str]) -> str:
    casts = {"payload": "payload::text"}
    return ", ".join(
        f"extract(epoch FROM {c})::bigint" if c.endswith("_at") else casts.get(c, c)
        for c in columns
    )
