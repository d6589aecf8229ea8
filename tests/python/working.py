"""Workers in threads, handlers that wait, and what has become of jobs."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import pytest

from alkstore import JobHandle, JobRecord, Queue, StopToken, Store, Worker
from tests.python.waiting import until

LONG_S = 600  # longer than a test waits for anything: what a handler does then is no answer to it
JOBS = {"sqlite": "alkstore_jobs", "postgres": "alkstore.jobs"}


class Running:
    """A Worker in a thread."""

    def __init__(self, store: Store, handlers: Any, **options: Any) -> None:
        self.stop = StopToken()
        self.error: BaseException | None = None
        self._worker = Worker(store, handlers, stop=self.stop.clone(), **options)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._worker.run()
        except BaseException as error:
            self.error = error

    def join(self) -> None:
        self._thread.join(60)
        assert not self._thread.is_alive()


@contextmanager
def running(store: Store, handlers: Any, **options: Any) -> Iterator[Running]:
    """A worker that is stopped at the end of the block and must then have ended well."""
    worker = Running(store, handlers, **options)
    try:
        yield worker
    finally:
        worker.stop.set()
        worker.join()
    assert worker.error is None


class Gate:
    """A handler that lets a test see which jobs it has, and decide when it returns."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self._open = threading.Event()

    def __call__(self, job: JobHandle) -> None:
        self.begun.append(job.id)
        assert self._open.wait(LONG_S)

    def open(self) -> None:
        self._open.set()


class Calls:
    """How many calls workers have made, by their names."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self.number: Counter[str] = Counter()
        calls: Any = next(c for c in type(store._engine).__mro__ if "settle" in vars(c))
        settle, look = calls.settle, calls.look

        def counted_settle(session: Any, call: str, queue: str, claims: Any) -> Any:
            answers = settle(session, call, queue, claims)
            self.number[call] += 1
            return answers

        def counted_look(session: Any, queue: str, worker_id: str, n: int) -> Any:
            answers = look(session, queue, worker_id, n)
            self.number["look"] += 1
            return answers

        monkeypatch.setattr(calls, "settle", counted_settle)
        monkeypatch.setattr(calls, "look", counted_look)


def is_gone(queue: Queue, *job_ids: int) -> bool:
    return all(queue.get_job(job_id) is None for job_id in job_ids)


def record(queue: Queue, job_id: int) -> JobRecord:
    found = queue.get_job(job_id)
    assert found is not None
    return found


def until_prolonged(queue: Queue, job_id: int) -> None:
    """Wait for a heartbeat, until which the job must stay claimed."""

    def expires_at() -> datetime:
        expires_at = record(queue, job_id).claim_expires_at
        assert expires_at is not None
        return expires_at

    before = expires_at()
    until(lambda: expires_at() > before)


def settled(queue: Queue, job_id: int) -> Callable[[], bool]:
    """Whether nobody has the job in hand any more."""
    return lambda: (
        (job := queue.get_job(job_id)) is None or (job.state != "processing" and job.attempts > 0)
    )


def execute(store: Store, statement: str) -> list[Any]:
    """Any SQL, in a transaction of its own."""
    with store.transaction() as tx:
        cursor = tx.connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def count(store: Store, engine: str, condition: str) -> int:
    ((jobs,),) = execute(store, f"SELECT count(*) FROM {JOBS[engine]} WHERE {condition}")
    return int(jobs)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]


def handlers_alive() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith(("handler ", "heartbeats"))]


def is_looking(store: Store, queues: set[str], number: int = 0) -> bool:
    """Whether consumers of all these queues wait for a wake."""
    looking = [subscription.queue for subscription in list(store._engine.wakes._looking)]
    return set(looking) >= queues and len(looking) >= number
