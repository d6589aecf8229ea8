"""Worker on SQLite: one writer at a time, and others who keep the file locked."""

from __future__ import annotations

import sqlite3
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

import alkstore
from alkstore import JobHandle, StopToken
from tests.python.waiting import until
from tests.python.working import (
    LONG_S,
    Running,
    is_gone,
    is_looking,
    record,
    running,
    until_prolonged,
    warnings,
)


def test_a_locked_file_is_got_over(sqlite_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    begun: Counter[int] = Counter()
    go_on = threading.Event()

    def handle(job: JobHandle) -> None:
        begun[job.id] += 1
        if job.payload == "long":
            assert go_on.wait(LONG_S)

    with (
        alkstore.open(sqlite_path, busy_timeout_s=0.1) as store,
        closing(sqlite3.connect(sqlite_path, isolation_level=None)) as other,
    ):
        queue = store.queue("q", visibility_timeout_s=30)
        with running(store, {"q": handle}, concurrency=2, poll_s=600):
            long, short = queue.enqueue_batch(["long", "short"])
            until(lambda: is_gone(queue, short) and begun[long])
            other.execute("BEGIN IMMEDIATE")
            late = other.execute(
                "INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1') RETURNING job_id"
            ).fetchone()[0]
            go_on.set()  # its ack meets the lock
            until(lambda: sum("ack of 'q'" in text for text in warnings(caplog)) >= 2)
            other.execute("COMMIT")
            until(lambda: is_gone(queue, long, late))
    assert set(begun.values()) == {1}
    assert [text for text in warnings(caplog) if text.startswith("job ")] == []


def test_a_stop_while_the_file_is_locked_ends_in_time(
    sqlite_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    go_on = threading.Event()
    with (
        alkstore.open(sqlite_path, busy_timeout_s=0.1) as store,
        closing(sqlite3.connect(sqlite_path, isolation_level=None)) as other,
    ):
        queue = store.queue("q", visibility_timeout_s=30)
        worker = Running(store, {"q": lambda job: go_on.wait(LONG_S)}, drain_s=1)
        job_id = queue.enqueue(1)
        until(lambda: record(queue, job_id).state == "processing")
        other.execute("BEGIN IMMEDIATE")
        go_on.set()
        until(lambda: any("ack of 'q'" in text for text in warnings(caplog)))
        began = time.monotonic()
        worker.stop.set()
        worker.join()
        assert worker.error is None
        assert time.monotonic() - began < 40
    told = f"job {job_id} of 'q': its ack could not be sent, it will be run again"
    assert told in warnings(caplog)


def test_heartbeats_get_in_between_a_handlers_transactions(sqlite_path: Path) -> None:
    begun: list[int] = []

    def handle(job: JobHandle) -> None:
        begun.append(job.id)
        end = time.monotonic() + 4.5
        while time.monotonic() < end:
            with store.transaction():
                time.sleep(0.1)
            time.sleep(0.1)

    with alkstore.open(sqlite_path) as store, alkstore.open(sqlite_path) as other:
        queue = other.queue("q", visibility_timeout_s=2)
        job_id = queue.enqueue(1)
        with running(store, {"q": handle}):
            until(lambda: begun)
            with running(other, {"q": handle}, poll_s=0.1):
                until(lambda: is_gone(queue, job_id))
    assert begun == [job_id]


def test_it_works_in_memory() -> None:
    with alkstore.open(":memory:") as store:
        queue = store.queue("q", visibility_timeout_s=2)

        def handle(job: JobHandle) -> None:
            if job.payload == "long":
                until_prolonged(queue, job.id)
            with store.transaction() as tx:
                assert job.ack(tx=tx)

        with running(store, {"q": handle}, concurrency=2, poll_s=600):
            until(lambda: is_looking(store, {"q"}))
            jobs = queue.enqueue_batch(["long", *["short"] * 20])
            until(lambda: is_gone(queue, *jobs))


@pytest.fixture
def busy_threads() -> Iterator[None]:
    """Threads that change places all the time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("busy_threads")
def test_no_stop_comes_at_a_bad_moment() -> None:
    """Whatever its threads are at, nothing is left in hand, and no ack is lost."""
    for n in range(120):
        with alkstore.open(":memory:") as store:
            queue = store.queue("q")
            jobs = queue.enqueue_batch(range(40))
            begun: list[int] = []
            stop = StopToken()
            handle = partial(stop_at, n % 40 + 1, begun, stop)
            alkstore.Worker(store, {"q": handle}, concurrency=8, stop=stop).run()
            at_the_end = list(begun)
            left = {job_id: record(queue, job_id) for job_id in jobs if not is_gone(queue, job_id)}
            assert {job.state for job in left.values()} <= {"pending"}
            assert sorted([*at_the_end, *left]) == jobs
            assert begun == at_the_end


def stop_at(number: int, begun: list[int], stop: StopToken, job: JobHandle) -> None:
    begun.append(job.id)
    if len(begun) == number:
        stop.set()
