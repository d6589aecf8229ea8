"""The Python package as a face: calls go by it, the looking by a raw face."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from typing import Any

import alkstore
from alkstore import _rows
from tests.model.faces import CLAIM_COLUMNS, JOB_COLUMNS, OUTBOX, Face, Look, Postgres, Row, Sqlite

STAMPS = ("visibility_timeout_s", "backoff_base_s", "dead_letter_retention_s")


class Package(Face):
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

    def _jobs(self, name: str, **stamps: int | None) -> Any:
        if self.kind == "outbox":
            return self._store.outbox(name)
        return self._store.queue(name, max_attempts=None, **stamps)

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

    def refusal(self, call: Callable[[], Any]) -> str | None:
        """The code of its error, which is raised before any SQL is; None: there was none."""
        try:
            call()
        except alkstore.InvalidName:
            return "AK001"
        return None

    def enqueue(self, queue: str, payload: str, options: dict[str, Any]) -> int:
        return self.enqueue_batch(queue, [payload], options)[0]

    def enqueue_batch(self, queue: str, payloads: list[str], options: dict[str, Any]) -> list[int]:
        stamps = {name: options[name] for name in STAMPS if name in options}
        here = self._jobs(queue, **stamps)
        options = {name: value for name, value in options.items() if name not in stamps}
        options["run_at"] = _instant(options["run_at"])
        texts = [alkstore.RawJson(payload) for payload in payloads]
        if len(texts) == 1:
            return [here.enqueue(texts[0], **options, tx=self._tx)]
        ids: list[int] = here.enqueue_batch(texts, **options, tx=self._tx)
        return ids

    def claim(self, queue: str, worker_id: str, n: int | None) -> list[Row]:
        jobs = self._jobs(queue)
        if self.kind == "outbox":  # as Outbox.run does
            rows = self._store._engine.claim(self._tx, jobs._queue, worker_id, n)
            claims = [_rows.values(_rows.CLAIM_COLUMNS, values) for values in rows]
            handles = [alkstore.JobHandle(*claim, _store=self._store) for claim in claims]
        else:
            handles = jobs.claim_batch(worker_id, n, tx=self._tx)
        self._handles.update({(handle.id, handle.attempt): handle for handle in handles})
        return [row(handle) for handle in handles]

    def settle(self, call: str, queue: str, id: int, attempt: int | None, *more: Any) -> bool:
        handle = self._handles.get((id, attempt or 0))
        if handle is None or handle.queue != queue:
            return self._raw.settle(call, queue, id, attempt, *more)
        return bool(getattr(handle, call)(*more, tx=self._tx))

    def ack_batch(self, queue: str, ids: list[int], attempts: list[int | None]) -> int:
        if queue.startswith(OUTBOX):
            return self._raw.ack_batch(queue, ids, attempts)
        claims: list[alkstore.JobHandle | int] = []
        for id, attempt in zip(ids, attempts, strict=True):
            handle = self._handles.get((id, attempt or 0))
            if attempt is not None and handle is None:
                return self._raw.ack_batch(queue, ids, attempts)
            claims.append(handle or id)
        return self._store.queue(queue).ack_batch(claims, tx=self._tx)

    def cancel(self, queue: str, id: int) -> bool:
        return bool(self._jobs(queue).cancel(id, tx=self._tx))

    def sweep_expired(self, queue: str) -> Row:
        return tuple(self._jobs(queue).sweep_expired(tx=self._tx))

    def schedule(self, name: str, spec: str, queue: str, payload: str, *options: Any) -> Any:
        named = dict(zip(("priority", "max_attempts", "expires_s"), options, strict=True))
        text = alkstore.RawJson(payload)
        boundary = self._store.schedule(name, spec, queue, text, **named, tx=self._tx)
        return _unix_seconds(boundary)

    def unschedule(self, name: str) -> bool:
        return self._store.unschedule(name, tx=self._tx)

    def fire_schedules(self, name: str | None) -> list[Row]:
        if self._tx is not None:  # of which the package's knows nothing
            return self._raw.fire_schedules(name)
        fired = self._store.fire_schedules(name)
        return [(f.job_id, f.name, f.queue, _unix_seconds(f.boundary)) for f in fired]

    def look(self, queue: str, id: int, queues: Sequence[str]) -> Look:
        jobs, _, stats, due = self._raw.look(queue, id, queues)
        job = self._jobs(queue).get_job(id, tx=self._tx)
        for position, q in enumerate(queues):
            if not q.startswith(OUTBOX):
                due[position] = _unix_seconds(self._store.queue(q).next_due(tx=self._tx))
        return jobs, [row(job, JOB_COLUMNS)] if job else [], stats, due


def _unix_seconds(value: Any) -> Any:
    return int(value.timestamp()) if isinstance(value, datetime) else value


def row(job: alkstore.Job, columns: list[str] = CLAIM_COLUMNS) -> Row:
    renamed = {"job_id": "id", "payload": "payload_text"}
    return tuple(_unix_seconds(getattr(job, renamed.get(column, column))) for column in columns)


class _Undo(Exception):
    pass


def _instant(unix_seconds: int | None) -> datetime | None:
    return None if unix_seconds is None else datetime.fromtimestamp(unix_seconds, UTC)
