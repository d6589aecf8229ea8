"""Queue.consume on both engines: how it ends, and what becomes of jobs that it has not given."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from math import nan
from typing import Any

import pytest

import alkstore
from alkstore import (
    AlkstoreError,
    InvalidName,
    InvalidOption,
    JobHandle,
    Queue,
    StopToken,
    Store,
    StoreClosed,
)
from tests.python.consuming import (
    NEVER_S,
    OBSERVED,
    Consumer,
    Seen,
    observer,
    states,
    until_idle,
    wakes_threads,
)
from tests.python.waiting import until


@pytest.fixture
def queue(store: Store) -> Queue:
    return store.queue("q")


def test_a_stop_ends_it_at_once(queue: Queue, target: str, seen: Seen) -> None:
    with Consumer(queue):
        until_idle(seen, target)


def test_a_stop_given_before_means_that_it_claims_nothing(queue: Queue, seen: Seen) -> None:
    queue.enqueue(1)
    stop = StopToken()
    stop.set()
    assert list(queue.consume("w", stop=stop)) == []
    assert seen.looks == []


def test_a_stop_ends_it_between_the_jobs_of_a_batch(
    queue: Queue, store: Store, engine: str
) -> None:
    queue.enqueue_batch([1, 2, 3, 4])
    stop = StopToken()
    for job in queue.consume("w", batch=3, stop=stop):
        assert job.ack()
        stop.clone().set()
    assert states(store, engine) == [(2, "pending", 0), (3, "pending", 0), (4, "pending", 0)]


def test_a_break_releases_what_was_not_reached(queue: Queue, store: Store, engine: str) -> None:
    queue.enqueue_batch([1, 2, 3, 4])
    for job in queue.consume("w", batch=3):
        assert job.payload == 1
        break
    assert states(store, engine) == [
        (1, "processing", 1),
        (2, "pending", 0),
        (3, "pending", 0),
        (4, "pending", 0),
    ]


def test_an_exception_releases_what_was_not_reached(
    queue: Queue, store: Store, engine: str
) -> None:
    def work(job: JobHandle) -> None:
        raise ZeroDivisionError

    queue.enqueue_batch([1, 2, 3])
    with Consumer(queue, batch=3, work=work, ends_with=ZeroDivisionError) as consumer:
        consumer.join()
    assert states(store, engine) == [(1, "processing", 1), (2, "pending", 0), (3, "pending", 0)]


def test_what_is_released_is_anothers_at_once(queue: Queue, target: str, seen: Seen) -> None:
    queue.enqueue_batch([1, 2, 3])
    jobs: Any = queue.consume("w", batch=3)
    assert next(jobs).payload == 1
    with Consumer(queue) as consumer:
        until_idle(seen, target)
        jobs.close()
        consumer.expect(2, 3)


def test_jobs_whose_claim_lapsed_before_their_turn_are_left_out(store: Store) -> None:
    queue = store.queue("q", visibility_timeout_s=3)
    queue.enqueue_batch([1, 2])
    jobs: Any = queue.consume("w", batch=2, poll_s=NEVER_S)
    first = next(jobs)
    until(lambda: datetime.now(UTC) > first.claim_expires_at + timedelta(seconds=2))
    # The second had lapsed like the first; both are claimed anew.
    assert [(job.payload, job.attempt) for job in (next(jobs), next(jobs))] == [(1, 2), (2, 2)]
    jobs.close()


def test_what_has_lapsed_is_not_released(store: Store, engine: str) -> None:
    queue = store.queue("q", visibility_timeout_s=1)
    queue.enqueue_batch([1, 2])
    jobs: Any = queue.consume("w", batch=2)
    next(jobs)
    taken = until(lambda: queue.claim_batch("other", 2))
    jobs.close()
    assert len(taken) == 2
    assert states(store, engine) == [(1, "processing", 2), (2, "processing", 2)]


def test_what_cannot_be_used_is_refused_at_once(queue: Queue) -> None:
    bad: Any
    for bad in ("a\0b", "\ud800", 7, None, "", "x" * 256):
        with pytest.raises(InvalidName):
            queue.consume(bad)
    for bad in (0, -1, True, 1.5, None, "1", 2**70):
        with pytest.raises(InvalidOption):
            queue.consume("w", batch=bad)
    for bad in (0, -1, nan, True, None, "1", float("inf"), 2_000_001):
        with pytest.raises(InvalidOption):
            queue.consume("w", poll_s=bad)
    with pytest.raises(TypeError, match="stop must be a StopToken"):
        queue.consume("w", stop=threading.Event())  # type: ignore[arg-type]


def test_a_closed_store_ends_it_with_that_error(queue: Queue, store: Store, target: str) -> None:
    with alkstore.open(target) as other:
        jobs = other.queue("q").consume("w")
        queue.enqueue(1)
        assert next(jobs).payload == 1
    with pytest.raises(StoreClosed):
        next(jobs)
    with pytest.raises(StopIteration):
        next(jobs)
    with pytest.raises(StoreClosed):
        next(other.queue("q").consume("w"))


def test_to_close_the_store_ends_consumers_that_wait(target: str, seen: Seen) -> None:
    with alkstore.open(target) as store, ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(Consumer(store.queue("q"), ends_with=StoreClosed))
        until_idle(seen, target, 2)
        store.close()
    until(lambda: wakes_threads() == [])


def test_the_thread_ends_with_the_last_consumer_and_comes_again(
    queue: Queue, store: Store, target: str, seen: Seen
) -> None:
    until(lambda: wakes_threads() == [])
    for _ in range(3):
        with Consumer(queue), Consumer(store.queue("p")):
            until_idle(seen, target, 2)
            assert len(wakes_threads()) == 1
        until(lambda: wakes_threads() == [])
        if target.startswith("postgresql:"):
            until(lambda: connections(target) <= 1)  # of the pool


def connections(url: str) -> int:
    """Of others to the database."""
    with observer(url) as connection:
        return connection.execute(f"SELECT FROM pg_stat_activity WHERE {OBSERVED}").rowcount


PROGRAM = """
import sys, alkstore
stop = alkstore.StopToken.on_signals() if sys.argv[2] == "stop" else None
with alkstore.open(sys.argv[1]) as store:
    for job in store.queue("q").consume("w", stop=stop, poll_s=600):
        print(job.payload, job.ack(), flush=True)
print("ended", flush=True)
"""


@pytest.mark.parametrize(("how", "number"), [("stop", signal.SIGTERM), ("ctrl-C", signal.SIGINT)])
def test_a_signal_ends_a_consumer_that_waits(
    queue: Queue, target: str, how: str, number: int
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-X", "dev", "-c", PROGRAM, target, how],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        for payload in (1, 2):  # the first may be found without a wake
            queue.enqueue(payload)
            assert process.stdout.readline() == f"{payload} True\n"
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=60)
    if how == "stop":
        assert (process.returncode, stdout, stderr) == (0, "ended\n", "")
    else:
        assert (process.returncode, stdout) == (-number, "")
        assert stderr.endswith("KeyboardInterrupt\n")
        assert "Warning" not in stderr


# -- forks ----------------------------------------------------------------------------------------


def in_a_child(act: Any) -> int:
    """The exit status of a forked process that does this, all of it: 0 if it went well."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            act()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_while_a_consumer_waits(queue: Queue, store: Store, target: str, seen: Seen) -> None:
    def consume_and_enqueue() -> None:
        with Consumer(store.queue("p"), "child") as consumer:
            store.queue("p").enqueue("first")
            until(lambda: consumer.jobs)
            until_idle(seen, target, 2, listeners=2)  # as `seen` was copied with the parent's
            store.queue("p").enqueue("second")
            consumer.expect("first", "second")
        queue.enqueue("from the child")

    with Consumer(queue) as consumer:
        until_idle(seen, target)
        assert in_a_child(consume_and_enqueue) == 0
        consumer.expect("from the child")
        until_idle(seen, target)
        queue.enqueue("last")
        consumer.expect("from the child", "last")


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_an_iteration_is_not_inherited_by_a_fork(
    queue: Queue, store: Store, engine: str, target: str
) -> None:
    queue.enqueue_batch([1, 2, 3])
    jobs: Any = queue.consume("w", batch=2)

    def go_on() -> None:
        with pytest.raises(AlkstoreError, match="forked"):
            next(jobs)

    def end() -> None:
        jobs.close()
        assert states(store, engine) == claimed

    assert next(jobs).payload == 1
    claimed = [(1, "processing", 1), (2, "processing", 1), (3, "pending", 0)]
    assert in_a_child(go_on) == 0
    assert in_a_child(end) == 0
    assert states(store, engine) == claimed
    assert [next(jobs).payload, next(jobs).payload] == [2, 3]
    jobs.close()


def test_what_cannot_be_released_is_told_and_lapses(
    target: str, caplog: pytest.LogCaptureFixture
) -> None:
    with alkstore.open(target) as store:
        store.queue("q").enqueue_batch([1, 2])
        jobs: Any = store.queue("q").consume("w", batch=2)
        next(jobs)
    jobs.close()
    assert caplog.messages == ["release of 'q': the store is closed; they will lapse"]
