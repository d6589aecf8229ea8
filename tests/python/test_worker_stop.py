"""Worker: what ends it, how long that takes, and what becomes of the jobs in its hands."""

from __future__ import annotations

import signal
import threading
import time

import pytest

import alkstore
from alkstore import JobHandle, StopToken, Store, StoreClosed, Worker
from tests.python.waiting import until
from tests.python.working import (
    LONG_S,
    Gate,
    Running,
    count,
    handlers_alive,
    is_gone,
    record,
    running,
    until_prolonged,
    warnings,
)


def test_a_stop_lets_handlers_end_and_releases_the_rest(
    store: Store, engine: str, gate: Gate
) -> None:
    queue = store.queue("q", visibility_timeout_s=300)
    warm = queue.enqueue_batch(range(20))
    finished: list[int] = []

    def handle(job: JobHandle) -> None:
        if job.id not in warm:
            gate(job)
        finished.append(job.id)

    with running(store, {"q": handle}, concurrency=2) as worker:
        until(lambda: is_gone(queue, *warm))
        jobs = queue.enqueue_batch(range(50))
        until(lambda: len(gate.begun) == 2)
        worker.stop.set()
        until(lambda: count(store, engine, "state = 'processing'") == 2)
        assert count(store, engine, "state = 'pending'") == 48
        gate.open()
        worker.join()
    assert sorted(gate.begun) == jobs[:2]
    assert is_gone(queue, *jobs[:2])
    assert sorted(finished[20:]) == jobs[:2]
    # What was claimed ahead has lost no attempt.
    assert count(store, engine, "attempts <> released") == 0
    assert count(store, engine, "retry_error IS NOT NULL") == 0


def test_after_the_drain_limit_jobs_go_back_unmarked(
    store: Store, gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    queue = store.queue("q", visibility_timeout_s=2)
    job_id = queue.enqueue(1)
    worker = Running(store, {"q": gate}, drain_s=3.5)
    until(lambda: gate.begun)
    began = time.monotonic()
    worker.stop.set()
    worker.join()
    assert time.monotonic() - began >= 3.5
    # With heartbeats all the time: it did not lapse, or the release would have been refused.
    assert worker.error is None
    job = record(queue, job_id)
    assert (job.state, job.attempts, job.released, job.retry_error) == ("pending", 1, 1, None)
    again = queue.claim_one("another")
    assert again is not None
    gate.open()
    until(lambda: not handlers_alive())
    # What the one left behind makes of it counts no more, and is not told either.
    assert warnings(caplog) == [f"job {job_id} of 'q' still runs, and is handed back"]
    assert again.ack()


def test_a_drain_of_nothing_waits_for_nobody(store: Store, gate: Gate) -> None:
    queue = store.queue("q")
    job_id = queue.enqueue(1)
    worker = Running(store, {"q": gate}, drain_s=0)
    until(lambda: gate.begun)
    worker.stop.set()
    worker.join()
    assert record(queue, job_id).state == "pending"


def test_a_drain_without_limit_waits(store: Store, gate: Gate) -> None:
    queue = store.queue("q", visibility_timeout_s=2)
    job_id = queue.enqueue(1)
    with running(store, {"q": gate}, drain_s=None) as worker:
        until(lambda: gate.begun)
        worker.stop.set()
        until_prolonged(queue, job_id)
        gate.open()
    assert is_gone(queue, job_id)


def test_a_stop_given_before_means_that_it_does_nothing(store: Store) -> None:
    queue = store.queue("q")
    job_id = queue.enqueue(1)
    stop = StopToken()
    stop.set()
    Worker(store, {"q": print}, stop=stop).run()
    assert record(queue, job_id).attempts == 0


def test_a_handler_can_give_the_stop(store: Store, engine: str) -> None:
    queue = store.queue("q")
    jobs = queue.enqueue_batch(range(3))
    stop = StopToken()
    Worker(store, {"q": lambda job: stop.set()}, stop=stop).run()
    assert is_gone(queue, jobs[0])
    assert count(store, engine, "state = 'pending'") == 2


def test_it_can_be_run_again_and_leaves_no_threads(store: Store) -> None:
    queue = store.queue("q")
    stop: StopToken
    worker = Worker(store, {"q": lambda job: worker.stop.set()}, concurrency=4)
    for _ in range(2):
        worker.stop = stop = StopToken()
        job_id = queue.enqueue(1)
        worker.run()
        assert stop.is_set()
        assert is_gone(queue, job_id)
        until(lambda: not handlers_alive() and "wakes" not in thread_names())


def thread_names() -> list[str]:
    return [thread.name for thread in threading.enumerate()]


def test_ctrl_c_releases_everything(store: Store, engine: str) -> None:
    queue = store.queue("q")
    queue.enqueue_batch(range(20))
    go_on = threading.Event()

    def handle(job: JobHandle) -> None:
        if job.payload == 10:
            signal.raise_signal(signal.SIGINT)
            assert go_on.wait(LONG_S)

    try:
        with pytest.raises(KeyboardInterrupt):
            Worker(store, {"q": handle}).run()
        assert count(store, engine, "state = 'processing'") == 0
        assert count(store, engine, "state = 'pending'") >= 10
        assert count(store, engine, "attempts <> released") == 0
    finally:
        go_on.set()
    until(lambda: not handlers_alive())


def test_a_closed_store_ends_it(target: str, gate: Gate) -> None:
    store = alkstore.open(target)
    store.queue("q").enqueue(1)
    idle = Running(store, {"p": gate}, poll_s=600)
    busy = Running(store, {"q": gate}, poll_s=600)
    until(lambda: gate.begun)
    store.close()
    for worker in (idle, busy):
        worker.join()
        assert isinstance(worker.error, StoreClosed)
    gate.open()
    until(lambda: not handlers_alive() and "wakes" not in thread_names())
