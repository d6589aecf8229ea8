"""Many processes and threads at once: every job to exactly one of them, none left."""

from __future__ import annotations

import multiprocessing
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing.synchronize import Barrier, Event
from typing import Any

import pytest

import alkstore
from alkstore import Store

SPAWN = multiprocessing.get_context("spawn")
PATIENCE_S = 600  # on a busy machine twenty processes begin late, and SQLite's turn comes late


class Meeting:
    """What the processes of a crowd share."""

    start: Barrier
    no_more: Event  # nothing more will be enqueued


def _join(start: Barrier, no_more: Event) -> None:
    Meeting.start, Meeting.no_more = start, no_more


@contextmanager
def crowd(size: int) -> Iterator[tuple[ProcessPoolExecutor, Event]]:
    """A pool of processes that begin together: each task meets the others at Meeting.start."""
    no_more = SPAWN.Event()
    meeting = (SPAWN.Barrier(size, timeout=PATIENCE_S), no_more)
    with ProcessPoolExecutor(size, SPAWN, initializer=_join, initargs=meeting) as pool:
        yield pool, no_more


def results(futures: list[Future[list[Any]]]) -> Counter[Any]:
    return Counter(item for future in futures for item in future.result())


# -- what the processes do ------------------------------------------------------------------------


def drain(target: str, worker_id: str, n: int) -> list[tuple[int, int]]:
    """Claim n at a time and ack, until nothing more comes; (payload, attempt) of each job."""
    done = []
    with alkstore.open(target, busy_timeout_s=PATIENCE_S) as store:
        queue = store.queue("q")
        Meeting.start.wait()
        while True:
            last_look = Meeting.no_more.is_set()
            handles = queue.claim_batch(worker_id, n)
            assert len(handles) <= n
            assert queue.ack_batch(handles) == len(handles)
            done += [(handle.payload, handle.attempt) for handle in handles]
            if not handles:
                if last_look:
                    return done
                Meeting.no_more.wait(0.01)


def fill(target: str, numbers: range) -> None:
    with alkstore.open(target, busy_timeout_s=PATIENCE_S) as store:
        queue = store.queue("q")
        Meeting.start.wait()
        for number in numbers:
            queue.enqueue(number)


def drain_one_by_one(target: str, worker_id: str, rounds: int) -> list[tuple[int, int]]:
    """Drain a queue a round, all beginning together; (round, payload) of each job."""
    done = []
    with alkstore.open(target, busy_timeout_s=PATIENCE_S) as store:
        for number in range(rounds):
            queue = store.queue(f"round {number}")
            Meeting.start.wait()
            while handle := queue.claim_one(worker_id):
                assert handle.attempt == 1
                assert handle.ack()
                done.append((number, handle.payload))
    return done


def install(target: str) -> list[int]:
    Meeting.start.wait()
    alkstore.install(target)
    with alkstore.open(target, busy_timeout_s=PATIENCE_S) as store:
        return [store.queue("q").enqueue(1)]


# -- tests ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("workers", "jobs", "rounds"), [(2, 1, 50), (4, 4, 10), (6, 40, 2)])
def test_each_job_goes_to_exactly_one_worker(
    store: Store, target: str, workers: int, jobs: int, rounds: int
) -> None:
    for number in range(rounds):
        store.queue(f"round {number}").enqueue_batch(range(jobs))
    with crowd(workers) as (pool, _):
        tasks = [
            pool.submit(drain_one_by_one, target, f"worker {n}", rounds) for n in range(workers)
        ]
    expected = [(number, job) for number in range(rounds) for job in range(jobs)]
    assert results(tasks) == Counter(expected)


def test_workers_drain_while_others_enqueue(store: Store, target: str) -> None:
    queue = store.queue("q")
    queue.enqueue_batch(range(5000))
    with crowd(10) as (pool, no_more):
        workers = [pool.submit(drain, target, f"worker {n}", 7) for n in range(8)]
        fillers = [pool.submit(fill, target, range(first, first + 2500)) for first in (5000, 7500)]
        for filler in fillers:
            filler.result()
        no_more.set()
    assert results(workers) == Counter((number, 1) for number in range(10_000))
    assert queue.next_due() is None


def test_four_processes_drain_a_file_without_locking_each_other_out(
    sqlite_path: str,
) -> None:
    target = str(sqlite_path)
    with alkstore.open(target, busy_timeout_s=PATIENCE_S) as store:
        store.queue("q").enqueue_batch(range(200))
    with crowd(4) as (pool, no_more):
        no_more.set()
        workers = [pool.submit(drain, target, f"worker {n}", 1) for n in range(4)]
    assert results(workers) == Counter((number, 1) for number in range(200))


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_twenty_may_install_and_open_at_once(engine: str, request: pytest.FixtureRequest) -> None:
    empty = "sqlite_path" if engine == "sqlite" else "empty_pg_url"
    target = str(request.getfixturevalue(empty))
    with crowd(20) as (pool, _):
        ids = [pool.submit(install, target) for _ in range(20)]
    assert results(ids) == Counter(range(1, 21))


def test_threads_share_a_store(store: Store) -> None:
    queue = store.queue("q")
    done: list[int] = []
    start = threading.Barrier(8, timeout=60)

    def work(number: int) -> None:
        start.wait()
        for step in range(10):
            queue.enqueue(10 * number + step)
        while handle := queue.claim_one(f"thread {number}"):
            assert handle.ack()
            done.append(handle.payload)

    with ThreadPoolExecutor(8) as pool:
        for task in [pool.submit(work, number) for number in range(8)]:
            task.result()
    assert sorted(done) == list(range(80))
