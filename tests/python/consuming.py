"""Consumers in threads, and how to see what they are about."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from itertools import pairwise
from types import NoneType
from typing import Any

import psycopg
import pytest

from alkstore import JobHandle, Queue, StopToken, Store, _claimer
from alkstore._bell import Bell
from alkstore.postgres import PostgresSession
from alkstore.sqlite import SqliteSession
from tests.python.waiting import until
from tests.python.working import JOBS, execute

NEVER_S = 600.0  # a poll_s that no test waits for: what comes sooner was woken, or due
SOON = timedelta(seconds=60)  # for what is due, on a slow machine


class Consumer:
    """Queue.consume in a thread. It acks what it gets, unless told what to do with it instead.

    It must have ended with the error that it is said to end with, or else without any.
    """

    def __init__(
        self,
        queue: Queue,
        worker_id: str = "w",
        *,
        work: Callable[[JobHandle], object] = JobHandle.ack,
        poll_s: float = NEVER_S,
        ends_with: type[BaseException | None] = NoneType,
        **options: Any,
    ) -> None:
        self.jobs: list[JobHandle] = []
        self._error: BaseException | None = None
        self._ends_with = ends_with
        self.stop = StopToken()
        self._work = work
        self._iterator: Any = queue.consume(worker_id, stop=self.stop, poll_s=poll_s, **options)
        self._thread = threading.Thread(target=self._run, name=worker_id, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            with closing(self._iterator):
                for job in self._iterator:
                    self._work(job)
                    self.jobs.append(job)
        except BaseException as error:
            self._error = error

    @property
    def payloads(self) -> list[Any]:
        return [job.payload for job in self.jobs]

    def expect(self, *payloads: object) -> None:
        """Wait until these jobs are done, and no others."""
        until(lambda: len(self.jobs) >= len(payloads))
        assert self.payloads == list(payloads)

    def join(self) -> None:
        self._thread.join(60)
        assert not self._thread.is_alive()
        if type(self._error) is not self._ends_with:
            raise AssertionError(f"it ended with {self._error!r}") from self._error

    def __enter__(self) -> Consumer:
        return self

    def __exit__(self, *_: object) -> None:
        if self._ends_with is NoneType:  # else it ends by itself
            self.stop.set()
        self.join()


class Seen:
    """What consumers in this process do: who waits, who has looked for jobs, who has claimed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.looks: list[tuple[str, int]] = []  # by whom, and how many jobs were found
        self.claims: list[str] = []  # into which the engine has to take a lock
        self._bells: set[Bell] = set()
        self._watch_bells(monkeypatch)
        for session in (SqliteSession, PostgresSession):
            self._watch_looks(monkeypatch, session)
            self._watch_claims(monkeypatch, session)

    def waiting(self, consumers: int) -> bool:
        """Whether so many sleep, for as long as nothing comes."""
        return sum(bell._rings.empty() for bell in list(self._bells)) == consumers

    def clear(self) -> None:
        self.looks.clear()
        self.claims.clear()

    def _watch_bells(self, monkeypatch: pytest.MonkeyPatch) -> None:
        bells = self._bells

        class WatchedBell(Bell):
            def wait(self, timeout_s: float | None = None) -> bool:
                bells.add(self)
                try:
                    return super().wait(timeout_s)
                finally:
                    bells.discard(self)

        monkeypatch.setattr(_claimer, "Bell", WatchedBell)

    def _watch_looks(self, monkeypatch: pytest.MonkeyPatch, session: Any) -> None:
        look = session.look

        def watched(self_: Any, queue: str, worker_id: str, n: int) -> Any:
            rows, due_s = look(self_, queue, worker_id, n)
            self.looks.append((worker_id, len(rows)))
            return rows, due_s

        monkeypatch.setattr(session, "look", watched)

    def _watch_claims(self, monkeypatch: pytest.MonkeyPatch, session: Any) -> None:
        claim = session.claim

        def watched(self_: Any, tx: object, queue: str, worker_id: str, n: int | None) -> Any:
            self.claims.append(worker_id)
            return claim(self_, tx, queue, worker_id, n)

        monkeypatch.setattr(session, "claim", watched)


# An observer's session lasts a moment longer than its connection, and must not be counted then.
OBSERVED = "datname = current_database() AND application_name <> 'observer'"


def observer(url: str) -> psycopg.Connection[Any]:
    """A connection that is none of OBSERVED."""
    return psycopg.connect(url, autocommit=True, application_name="observer")


def listening(url: str) -> list[int]:
    """The server processes of connections to the database that listen and have nothing to do."""
    with observer(url) as connection:
        rows = connection.execute(f"""
            SELECT pid FROM pg_stat_activity
            WHERE {OBSERVED} AND state = 'idle' AND (query LIKE '%LISTEN %' OR query = '')""")
        return [pid for (pid,) in rows]


def until_idle(seen: Seen, target: str, consumers: int = 1, listeners: int = 1) -> None:
    """Wait until consumers have found nothing, sleep, and would be told of a job."""
    until(lambda: seen.waiting(consumers))
    if target.startswith("postgresql:"):
        until(lambda: len(listening(target)) == listeners)
    until(lambda: seen.waiting(consumers))


def wakes_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "wakes"]


def states(store: Store, engine: str) -> list[tuple[Any, ...]]:
    """Of all jobs: id, state, claims that count."""
    columns = "job_id, state, attempts - released"
    rows = execute(store, f"SELECT {columns} FROM {JOBS[engine]} ORDER BY job_id")
    return [tuple(row) for row in rows]


def assert_no_flood(caplog: pytest.LogCaptureFixture) -> None:
    """A line a second: each is told when its second is over, and written when it can be."""
    told = [r.created for r in caplog.records if r.levelno >= logging.WARNING]
    assert all(second - first >= 0.5 for first, second in pairwise(told)), caplog.messages
