"""Worker: what it claims ahead and acks behind, and how many calls that takes."""

from __future__ import annotations

import time
from collections import Counter

import pytest

import alkstore
from alkstore import JobHandle, Store
from alkstore._work import Run
from tests.python.waiting import until
from tests.python.working import Calls, Gate, count, is_gone, is_looking, record, running


class Rounds:
    """How often a worker has looked whether there is something to do."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.number = 0
        room = Run._room

        def counted(run: Run) -> int:
            self.number += 1
            return room(run)

        monkeypatch.setattr(Run, "_room", counted)

    def pass_by(self, number: int) -> None:
        end = self.number + number
        until(lambda: self.number >= end)


def test_what_waits_behind_a_long_job_is_given_back_once(
    store: Store, target: str, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds = Rounds(monkeypatch)
    queue = store.queue("q")

    def handle(job: JobHandle) -> None:
        if job.payload == "long":
            gate(job)

    with running(store, {"q": handle}, concurrency=8):
        short = queue.enqueue_batch(range(50))
        until(lambda: is_gone(queue, *short))
        longs = queue.enqueue_batch(["long"] * 8, priority=1)
        until(lambda: len(gate.begun) == 8)
        behind = queue.enqueue_batch(range(20))
        until(lambda: all(record(queue, job_id).released for job_id in behind))
        rounds.pass_by(3)  # in which it could claim them again
        assert {(record(queue, id).state, record(queue, id).released) for id in behind} == {
            ("pending", 1)
        }
        with alkstore.open(target) as other, running(other, {"q": handle}):
            until(lambda: is_gone(queue, *behind))
        gate.open()
        until(lambda: is_gone(queue, *longs))


def test_without_prefetch_no_job_waits_in_a_worker(store: Store, engine: str) -> None:
    queue = store.queue("q")
    jobs = queue.enqueue_batch(range(30))
    most = 0

    def handle(job: JobHandle) -> None:
        nonlocal most
        most = max(most, count(store, engine, "state = 'processing'"))

    with running(store, {"q": handle}, concurrency=1, prefetch=0):
        until(lambda: is_gone(queue, *jobs))
    # One that is done waits for its ack, another has begun.
    assert most <= 2


def test_long_jobs_are_not_claimed_ahead(store: Store, engine: str) -> None:
    queue = store.queue("q")
    jobs = queue.enqueue_batch(range(8))
    most = 0

    def handle(job: JobHandle) -> None:
        nonlocal most
        time.sleep(0.3)
        most = max(most, count(store, engine, "state = 'processing'"))

    with running(store, {"q": handle}, concurrency=2):
        until(lambda: is_gone(queue, *jobs))
    assert most <= 4


def test_acks_and_claims_go_in_groups(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = Calls(store, monkeypatch)
    queue = store.queue("q", visibility_timeout_s=3600)
    jobs = queue.enqueue_batch(range(1000))
    begun: Counter[int] = Counter()

    def handle(job: JobHandle) -> None:
        begun[job.id] += 1

    with running(store, {"q": handle}, concurrency=8):
        until(lambda: queue.next_due() is None)
    assert begun == Counter(jobs)
    assert calls.number["ack"] <= 300
    assert calls.number["look"] <= 300


def test_an_idle_worker_makes_no_calls(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, rounds = Calls(store, monkeypatch), Rounds(monkeypatch)
    queue = store.queue("q")
    with running(store, {"q": lambda job: None}, poll_s=600):
        job_id = queue.enqueue(1)
        until(lambda: is_gone(queue, job_id) and is_looking(store, {"q"}))
        rounds.pass_by(2)  # it may have been in the midst of one
        before = calls.number.total()
        rounds.pass_by(3)
        assert calls.number.total() == before
