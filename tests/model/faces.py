"""One way of speaking for both engines, by raw SQL; package.py speaks it through the package.

Rows and instants come back alike: instants as unix seconds, jobs with the columns of the view jobs.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, Self

import psycopg

from tests.model import schedules

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
OUTBOX = "__alkstore_outbox_"  # and the name of an outbox: the queue of its messages
STATS = ("ready", "delayed", "processing", "lapsed", "expired", "dead")

Row = tuple[Any, ...]
Look = tuple[list[Row], list[Row], list[Row], list[int | None]]  # jobs, one job, stats, next due


class Face:
    kind = "queue"

    @property
    def outbox(self) -> Self:
        """The same calls, on outboxes."""
        twin = object.__new__(type(self))
        vars(twin).update(vars(self), kind="outbox")
        return twin


def reach(face: Any, queue: str, call: str, *arguments: Any) -> Any:
    """Call on a queue or, given its reserved name, on an outbox."""
    if queue.startswith(OUTBOX):
        face, queue = face.outbox, queue.removeprefix(OUTBOX)
    return getattr(face, call)(queue, *arguments)


class Postgres(Face, schedules.Postgres):
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
        self.run("DELETE FROM alkstore._schedule")
        self.run("SELECT set_config('alkstore._mark', '', false)")

    def set_now(self, now: int) -> None:
        self.run("UPDATE test_clock SET now = to_timestamp(%s)", now)

    def refusal(self, call: Callable[[], Any]) -> str | None:
        """The code of its error; None: there was none."""
        try:
            with self.connection.transaction():
                call()
        except psycopg.Error as error:
            return error.sqlstate
        return None

    def _function(self, name: str) -> str:
        return f"alkstore.{'outbox_' if self.kind == 'outbox' else ''}{name}"

    def enqueue(self, queue: str, payload: str, options: dict[str, int | None]) -> int:
        names = ", ".join(self._option(name) for name in options)
        sql = f"SELECT {self._function('enqueue')}(%s::text, %s::text, {names})"
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
        claim = self._function("claim")
        sql = f"SELECT {_as_numbers(CLAIM_COLUMNS)} FROM {claim}(%s, %s, %s::bigint)"
        return self.run(sql, queue, worker_id, n)

    def settle(self, call: str, queue: str, id: int, attempt: int | None, *more: Any) -> bool:
        marks = "".join(", %s::text" if isinstance(value, str) else ", %s" for value in more)
        sql = f"SELECT alkstore.{call}(%s::text, %s::bigint, %s::bigint{marks})"
        return bool(self.run(sql, queue, id, attempt, *more)[0][0])

    def ack_batch(self, queue: str, ids: list[int], attempts: list[int | None]) -> int:
        sql = "SELECT alkstore.ack_batch(%s, %s::bigint[], %s::bigint[])"
        return int(self.run(sql, queue, ids, attempts)[0][0])

    def cancel(self, queue: str, id: int) -> bool:
        sql = f"SELECT {self._function('cancel')}(%s, %s::bigint)"
        return bool(self.run(sql, queue, id)[0][0])

    def sweep_expired(self, queue: str) -> Row:
        sql = f"SELECT expired, pruned FROM {self._function('sweep_expired')}(%s)"
        return self.run(sql, queue)[0]

    def jobs(self) -> list[Row]:
        return self.run(f"SELECT {_as_numbers(JOB_COLUMNS)} FROM alkstore.jobs ORDER BY job_id")

    def get_job(self, queue: str, id: int) -> list[Row]:
        get_job = self._function("get_job")
        sql = f"SELECT {_as_numbers(JOB_COLUMNS)} FROM {get_job}(%s, %s::bigint)"
        return self.run(sql, queue, id)

    def look(self, queue: str, id: int, queues: Sequence[str]) -> Look:
        jobs = f"json_agg(json_build_array({_as_numbers(JOB_COLUMNS)})"
        sql = f"""
            SELECT
              (SELECT {jobs} ORDER BY job_id) FROM alkstore.jobs),
              (SELECT {jobs}) FROM {self._function("get_job")}(%s, %s::bigint)),
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


class Sqlite(Face, schedules.Sqlite):
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
        for table in ("job", "dead_job", "payload", "schedule"):
            self.run(f"DELETE FROM __alkstore_{table}")

    def set_now(self, now: int) -> None:
        self.run("UPDATE test_clock SET now = ?", now)

    def refusal(self, call: Callable[[], Any]) -> str | None:
        """The code of its error; None: there was none."""
        try:
            call()
        except sqlite3.Error as error:
            return str(error).split()[0]
        return None

    def enqueue(self, queue: str, payload: str, options: dict[str, int | None]) -> int:
        return self.enqueue_batch(queue, [payload], options)[0]

    def enqueue_batch(
        self, queue: str, payloads: list[str], options: dict[str, int | None]
    ) -> list[int]:
        if not payloads:
            return []
        row = f"(?, ?{', ?' * len(options)})"
        sql = (
            f"INSERT INTO alkstore_enqueue({self.kind}, payload, {', '.join(options)}) "
            f"VALUES {', '.join([row] * len(payloads))} RETURNING job_id"
        )
        values = [v for payload in payloads for v in (queue, payload, *options.values())]
        return [id for (id,) in self.run(sql, *values)]

    def claim(self, queue: str, worker_id: str, n: int | None) -> list[Row]:
        sql = (
            f"INSERT INTO alkstore_claim({self.kind}, worker_id, n) VALUES (?, ?, ?) "
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
        sql = f"INSERT INTO alkstore_cancel({self.kind}, job_id) VALUES (?, ?) RETURNING job_id"
        return bool(self.run(sql, queue, id))

    def sweep_expired(self, queue: str) -> Row:
        sql = (
            f"INSERT INTO alkstore_sweep_expired({self.kind}) VALUES (?) "
            "RETURNING (SELECT expired FROM alkstore_swept), (SELECT pruned FROM alkstore_swept)"
        )
        return self.run(sql, queue)[0]

    def jobs(self) -> list[Row]:
        return self.run(f"SELECT {', '.join(JOB_COLUMNS)} FROM alkstore_jobs ORDER BY job_id")

    def get_job(self, queue: str, id: int) -> list[Row]:
        sql = f"SELECT {', '.join(JOB_COLUMNS)} FROM alkstore_jobs WHERE queue = ? AND job_id = ?"
        return self.run(sql, OUTBOX + queue if self.kind == "outbox" else queue, id)

    def look(self, queue: str, id: int, queues: Sequence[str]) -> Look:
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


def _rows(array: list[list[Any]] | None) -> list[Row]:
    return [tuple(row) for row in array or ()]


def _as_numbers(columns: list[str]) -> str:
    casts = {"payload": "payload::text"}
    return ", ".join(
        f"extract(epoch FROM {c})::bigint" if c.endswith("_at") else casts.get(c, c)
        for c in columns
    )
