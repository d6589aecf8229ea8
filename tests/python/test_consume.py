"""Queue.consume on both engines: what wakes it, what it gives, and how it ends.

Whatever comes here within a test's time was not found by a poll: NEVER_S lies between two.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import ExitStack, closing, suppress
from datetime import timedelta
from typing import Any

import pytest

import alkstore
from alkstore import JobHandle, Queue, Store
from alkstore._bell import Bell
from tests.python.consuming import SOON, Consumer, Seen, states, until_idle
from tests.python.waiting import until
from tests.python.working import record


@pytest.fixture
def queue(store: Store) -> Queue:
    return store.queue("q")


def enqueue_elsewhere(target: str, *payloads: int, queue: str = "q") -> None:
    """By another process."""
    program = "import sys, alkstore; store = alkstore.open(sys.argv[1])\nwith store:"
    program += " store.queue(sys.argv[2]).enqueue_batch(map(int, sys.argv[3:]))"
    command = [sys.executable, "-c", program, target, queue, *map(str, payloads)]
    subprocess.run(command, check=True)


# -- what it gives --------------------------------------------------------------------------------


def test_it_gives_what_is_there_in_order_and_claimed_by_the_worker(queue: Queue) -> None:
    queue.enqueue("second")
    queue.enqueue("first", priority=1)
    given = []
    jobs: Any = queue.consume("worker 1")
    with closing(jobs):
        for job in jobs:
            found = record(queue, job.id)
            assert (found.state, found.worker_id) == ("processing", "worker 1")
            given.append((job.payload, job.attempt, job.ack()))
            if len(given) == 2:
                break
    assert given == [("first", 1, True), ("second", 1, True)]


@pytest.mark.parametrize("batch", [1, 3, 100])
def test_batches_come_one_by_one(queue: Queue, seen: Seen, batch: int) -> None:
    queue.enqueue_batch(range(7))
    with Consumer(queue, batch=batch) as consumer:
        until(lambda: seen.waiting(1))
        assert consumer.payloads == list(range(7))
    whole, rest = divmod(7, batch)
    found = [("w", batch)] * whole + [("w", rest)] * (rest > 0) + [("w", 0)]
    assert seen.looks[: len(found)] == found


def test_an_iterated_job_is_not_settled_by_that(queue: Queue, store: Store, engine: str) -> None:
    queue.enqueue_batch([1, 2, 3])
    jobs: Any = queue.consume("w")
    assert next(jobs).payload == 1
    assert next(jobs).payload == 2
    jobs.close()
    assert states(store, engine) == [(1, "processing", 1), (2, "processing", 1), (3, "pending", 0)]


def test_it_gives_no_expired_jobs(queue: Queue, target: str, seen: Seen) -> None:
    queue.enqueue("expired", expires_s=1)
    expires_at = record(queue, 1).expires_at
    assert expires_at is not None
    later = queue.enqueue("later", delay_s=3)
    until(lambda: queue.next_due() == record(queue, later).run_at)
    with Consumer(queue) as consumer:
        until(lambda: consumer.payloads)
        assert consumer.payloads == ["later"]
        assert consumer.jobs[0].claimed_at > expires_at
        until_idle(seen, target)


# -- what wakes it --------------------------------------------------------------------------------


def test_a_job_of_this_store_wakes_it(queue: Queue, target: str, seen: Seen) -> None:
    with Consumer(queue) as consumer:
        for number in range(3):
            until_idle(seen, target)
            queue.enqueue(number)
            consumer.expect(*range(number + 1))


def test_a_job_of_another_process_wakes_it(queue: Queue, target: str, seen: Seen) -> None:
    with Consumer(queue) as consumer:
        until_idle(seen, target)
        enqueue_elsewhere(target, 1, 2)
        consumer.expect(1, 2)


def test_a_job_wakes_it_when_it_is_committed(
    queue: Queue, target: str, store: Store, seen: Seen
) -> None:
    with Consumer(queue) as consumer:
        until_idle(seen, target)
        with alkstore.open(target) as other:
            with suppress(ZeroDivisionError), other.transaction() as tx:
                other.queue("q").enqueue("rolled back", tx=tx)
                raise ZeroDivisionError
            with other.transaction() as tx:
                other.queue("q").enqueue("committed", tx=tx)
                assert consumer.jobs == []
            consumer.expect("committed")


@pytest.mark.parametrize("call", ["release", "retry"])
def test_a_job_handed_back_wakes_it(queue: Queue, target: str, seen: Seen, call: str) -> None:
    queue.enqueue(1)
    job = queue.claim_one("other")
    assert job is not None
    with Consumer(queue) as consumer:
        until_idle(seen, target)
        assert job.release() if call == "release" else job.retry(delay_s=0)
        until(lambda: [job.attempt for job in consumer.jobs] == [2])


def test_a_delayed_job_is_claimed_when_it_is_due(queue: Queue, target: str, seen: Seen) -> None:
    queue.enqueue("there before", delay_s=1)
    with Consumer(queue) as consumer:
        until_idle(seen, target)
        consumer.expect("there before")
        until_idle(seen, target)
        queue.enqueue("later", delay_s=4)
        queue.enqueue("sooner", delay_s=1)
        consumer.expect("there before", "sooner", "later")
    for job in consumer.jobs:
        assert job.run_at <= job.claimed_at <= job.run_at + SOON


def test_a_retry_comes_when_its_backoff_is_over(queue: Queue, target: str, seen: Seen) -> None:
    def work(job: JobHandle) -> None:
        assert job.ack() if job.attempt == 2 else job.retry(delay_s=1)

    with Consumer(queue, work=work) as consumer:
        until_idle(seen, target)
        queue.enqueue(1)
        until(lambda: len(consumer.jobs) == 2)
    first, second = consumer.jobs
    waited = second.claimed_at - first.claimed_at
    assert timedelta(seconds=1) <= waited <= SOON


def test_a_claim_that_lapses_is_taken_over(store: Store, target: str, seen: Seen) -> None:
    queue = store.queue("q", visibility_timeout_s=1)
    queue.enqueue(1)
    lost = queue.claim_one("crashed")
    assert lost is not None
    with Consumer(queue) as consumer:
        until_idle(seen, target)
        until(lambda: [job.attempt for job in consumer.jobs] == [2])
    late = consumer.jobs[0].claimed_at - lost.claim_expires_at
    assert timedelta(seconds=1) <= late <= SOON


def test_one_queue_does_not_wake_the_other(store: Store, target: str, seen: Seen) -> None:
    with Consumer(store.queue("q"), "for q") as q, Consumer(store.queue("p"), "for p") as p:
        until_idle(seen, target, 2)
        seen.clear()
        store.queue("p").enqueue(1)
        p.expect(1)
        store.queue("q").enqueue(2)
        q.expect(2)
        store.queue("p").enqueue(3)
        p.expect(1, 3)
        until_idle(seen, target, 2)
        assert [look for look in seen.looks if look[1]] == [
            ("for p", 1),
            ("for q", 1),
            ("for p", 1),
        ]
        assert Counter(worker for worker, _ in seen.looks)["for q"] <= 3


NAMES = ["Q", "é" * 100, "x" * 63, "x" * 63 + "1", "x" * 63 + "2", "x" * 255, "\"'%I$$;--"]


def test_every_name_can_be_waited_for(store: Store, target: str, seen: Seen) -> None:
    with ExitStack() as stack:
        consumers = [stack.enter_context(Consumer(store.queue(name))) for name in NAMES]
        until_idle(seen, target, len(NAMES))
        for name, consumer in zip(NAMES, consumers, strict=True):
            store.queue(name).enqueue(name)
            consumer.expect(name)


def test_what_is_enqueued_while_it_works_is_not_missed(
    queue: Queue, target: str, seen: Seen
) -> None:
    def work(job: JobHandle) -> None:
        if job.payload < 5:
            queue.enqueue(job.payload + 1)
        job.ack()

    with Consumer(queue, work=work) as consumer:
        until_idle(seen, target)
        queue.enqueue(1)
        consumer.expect(1, 2, 3, 4, 5)


def test_the_poll_finds_what_no_wake_told_of(
    queue: Queue, target: str, seen: Seen, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Consumer(queue, poll_s=0.3) as consumer:
        until_idle(seen, target)
        monkeypatch.setattr(store._engine.wakes, "wake", lambda queue: None)
        queue.enqueue(1)
        consumer.expect(1)
        began = time.monotonic()
        seen.clear()
        until(lambda: len(seen.looks) >= 4)
        assert time.monotonic() - began >= 0.85


# -- several consumers ----------------------------------------------------------------------------


def test_a_find_passes_the_wake_on(queue: Queue, target: str, seen: Seen) -> None:
    # One commit, one wake, and jobs for all: nobody ends his before everybody has one.
    everybody = threading.Barrier(4)

    def work(job: JobHandle) -> None:
        everybody.wait(60)
        job.ack()

    with ExitStack() as stack:
        consumers = [
            stack.enter_context(Consumer(queue, f"w{number}", work=work)) for number in range(4)
        ]
        until_idle(seen, target, 4)
        queue.enqueue_batch([1, 2, 3, 4])
        until(lambda: all(consumer.jobs for consumer in consumers))
    assert sorted(consumer.payloads for consumer in consumers) == [[1], [2], [3], [4]]


def test_each_job_is_given_to_one(queue: Queue, target: str, seen: Seen) -> None:
    with ExitStack() as stack:
        consumers = [
            stack.enter_context(Consumer(queue, f"w{n}", batch=1 + n % 2)) for n in range(4)
        ]
        until_idle(seen, target, 4)
        for first in range(0, 100, 20):
            queue.enqueue_batch(range(first, first + 20))
        until(lambda: sum(len(consumer.jobs) for consumer in consumers) >= 100)
        until_idle(seen, target, 4)
    given = Counter(payload for consumer in consumers for payload in consumer.payloads)
    assert given == Counter(range(100))


def test_one_wake_rings_one_consumer(queue: Queue, target: str, seen: Seen) -> None:
    at_work, go_on = threading.Event(), threading.Event()

    def work(job: JobHandle) -> None:
        at_work.set()
        assert go_on.wait(60)
        job.ack()

    with ExitStack() as stack:
        for number in range(5):
            stack.enter_context(Consumer(queue, f"w{number}", work=work))
        until_idle(seen, target, 5)
        seen.clear()
        queue.enqueue(1)
        assert at_work.wait(60)
        # Who found it told one other, who found nothing; then nobody has a reason to look.
        until(lambda: len(seen.looks) == 2)
        until_idle(seen, target, 4)
        (finder, found), (other, none) = seen.looks
        assert (found, none) == (1, 0)
        assert finder != other
        go_on.set()
        until_idle(seen, target, 5)
        assert seen.looks[2:] == [(finder, 0)]


def test_who_leaves_hands_on_what_he_was_told(store: Store) -> None:
    wakes, first, second = store._engine.wakes, Bell(), Bell()
    with wakes.subscribe("q", second) as left_behind, wakes.subscribe("p", Bell()) as other:
        other.look()
        with wakes.subscribe("q", first) as leaving:
            leaving.look()
            left_behind.look()
            wakes.wake("q")
            assert (leaving.woken, left_behind.woken, other.woken) == (True, False, False)
        until(lambda: left_behind.woken)
        assert second.wait(60)
        assert not other.woken


def test_when_who_knew_of_a_delayed_job_leaves_another_claims_it_when_due(
    queue: Queue, target: str, seen: Seen
) -> None:
    with ExitStack() as stack:
        consumers = {
            name: stack.enter_context(Consumer(queue, name)) for name in ("one", "another")
        }
        until_idle(seen, target, 2)
        seen.clear()
        queue.enqueue(1, delay_s=3)  # at least two, in which the one is to leave
        if target.startswith("postgresql:"):
            until(lambda: seen.looks)
        until_idle(seen, target, 2)
        knows = seen.looks[0][0] if seen.looks else "one"
        consumers.pop(knows).stop.set()
        ((_, other),) = consumers.items()
        other.expect(1)
        assert other.jobs[0].claimed_at - other.jobs[0].run_at <= SOON
