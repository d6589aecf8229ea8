"""Worker: claims that are kept as long as their handlers run, and those that lapse."""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import Any

import pytest

import alkstore
from alkstore import JobHandle, Store
from alkstore._heartbeats import Heartbeats
from tests.python.waiting import until
from tests.python.working import LONG_S, Calls, Gate, is_gone, record, running, warnings


def blocked(job: JobHandle) -> None:
    time.sleep(4.5)


def cpu_bound(job: JobHandle) -> None:
    end = time.monotonic() + 4.5
    while time.monotonic() < end:
        sum(range(1000))


def test_jobs_longer_than_their_visibility_are_kept(
    store: Store, target: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = Calls(store, monkeypatch)
    queue = store.queue("q", visibility_timeout_s=2)
    begun: list[int] = []
    handlers = [blocked, cpu_bound]

    def handle(job: JobHandle) -> None:
        begun.append(job.attempt)
        handlers[job.payload](job)

    jobs = queue.enqueue_batch([0, 1])
    with (
        alkstore.open(target) as other,
        running(store, {"q": handle}, concurrency=2, poll_s=0.1),
    ):
        until(lambda: len(begun) == 2)
        with running(other, {"q": handle}, concurrency=2, poll_s=0.1):
            until(lambda: is_gone(queue, *jobs))
    assert begun == [1, 1]
    assert warnings(caplog) == []
    assert calls.number["heartbeat"] <= 60  # some seven for each, and not one after the other


def test_without_heartbeats_long_jobs_lapse(
    store: Store, gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    queue = store.queue("q", visibility_timeout_s=1)
    job_id = queue.enqueue(1)
    with running(store, {"q": gate}, heartbeat=False):
        until(lambda: gate.begun)
        again = until(lambda: queue.claim_one("another"))
        assert again.heartbeat(600)
        assert (again.id, again.attempt) == (job_id, 2)
        gate.open()
        until(lambda: warnings(caplog))
        assert again.ack()
    assert warnings(caplog) == [
        f"job {job_id} of 'q': its claim was lost, or it was cancelled, before the ack"
    ]


def test_what_has_lapsed_before_its_turn_is_not_begun(
    store: Store, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("alkstore._work._HOARD_S", 60)
    queue = store.queue("q", visibility_timeout_s=1, max_attempts=100)
    begun: Counter[int] = Counter()
    go_on = threading.Event()

    def handle(job: JobHandle) -> None:
        begun[job.id] += 1
        if job.payload == "long":
            assert go_on.wait(LONG_S)

    with running(store, {"q": handle}, heartbeat=False):
        first = queue.enqueue("short")
        until(lambda: is_gone(queue, first))
        long, *behind = queue.enqueue_batch(["long", *range(5)])
        # It claims them again, with all the time there is.
        until(lambda: all(record(queue, job_id).attempts >= 2 for job_id in behind))
        go_on.set()
        until(lambda: is_gone(queue, long, *behind))
    not_begun = [f"job {job_id} of 'q' was not begun: its claim has lapsed" for job_id in behind]
    assert set(not_begun) <= set(warnings(caplog))
    assert {begun[job_id] for job_id in behind} == {1}


def test_heartbeats_begin_in_time_for_what_comes_later(store: Store) -> None:
    """With the longest visibility first: the pause that it allows must not hold for the next."""
    slow, fast = (
        store.queue("q", visibility_timeout_s=3600),
        store.queue("q", visibility_timeout_s=1),
    )
    beats: Counter[int] = Counter()
    done = threading.Event()

    class Watched(Heartbeats):
        def _beat(self, session: Any) -> None:
            super()._beat(session)
            beats.update(claimed.job.id for claimed in self._in_hand())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("alkstore._work.Heartbeats", Watched)
        with running(store, {"q": lambda job: done.wait(LONG_S)}, concurrency=2):
            first = slow.enqueue(1)
            until(lambda: record(slow, first).state == "processing")
            job_id = fast.enqueue(2)
            until(lambda: beats[job_id] >= 4)
            done.set()
