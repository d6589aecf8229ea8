"""Worker on both engines: what becomes of jobs, however their handlers end, and when it stops."""

from __future__ import annotations

import logging
import math
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

import alkstore
from alkstore import (
    Busy,
    Fail,
    InvalidName,
    InvalidOption,
    JobHandle,
    Retry,
    StopToken,
    Store,
    StoreClosed,
    Worker,
)
from alkstore._heartbeats import Heartbeats
from tests.python.test_scheduler import execute
from tests.python.waiting import until
from tests.python.working import (
    Gate,
    Running,
    count,
    gate,
    handlers_alive,
    is_gone,
    is_looking,
    record,
    running,
    settled,
    warnings,
)

__all__ = ["gate"]  # the fixture

# Which statements on a job whose payload is "bad" fail: {0} is UPDATE for claims, DELETE for acks.
FORBID = {
    "sqlite": """
        CREATE TRIGGER forbid BEFORE {0} ON __alkstore_job WHEN OLD.payload = '"bad"'
        BEGIN SELECT RAISE(ABORT, 'no bad payloads'); END""",
    "postgres": """
        CREATE FUNCTION public.forbid() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          IF OLD.payload::text = '"bad"' THEN RAISE EXCEPTION 'no bad payloads'; END IF;
          RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
        END $$;
        CREATE TRIGGER forbid BEFORE {0} ON alkstore._job
        FOR EACH ROW EXECUTE FUNCTION public.forbid()""",
}
PERMIT = {
    "sqlite": "DROP TRIGGER forbid",
    "postgres": "DROP TRIGGER forbid ON alkstore._job",
}


# -- how a handler ends ---------------------------------------------------------------------------


def test_it_acks_what_a_handler_returns_from(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    queue = store.queue("q")
    done: list[Any] = []
    before = queue.enqueue_batch([1, 2])

    def handle(job: JobHandle) -> str:
        done.append(job.payload)
        return "of no interest"

    with running(store, {queue: handle}):
        until(lambda: is_gone(queue, *before))
        after = queue.enqueue(3)
        until(lambda: is_gone(queue, after))
    assert done == [1, 2, 3]
    assert warnings(caplog) == []


def test_an_exception_retries_with_its_text(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    queue = store.queue("q", max_attempts=2, backoff_base_s=0)
    attempts = []

    def handle(job: JobHandle) -> None:
        attempts.append(job.attempt)
        raise ValueError(f"attempt {job.attempt}")

    job_id = queue.enqueue(1)
    with running(store, {"q": handle}):
        until(lambda: record(queue, job_id).state == "dead")
    assert attempts == [1, 2]
    assert record(queue, job_id).last_error == "ValueError: attempt 2"
    assert warnings(caplog) == [
        f"job {job_id} of 'q', attempt 1, failed",
        f"job {job_id} of 'q', attempt 2, failed",
    ]
    assert "raise ValueError" in caplog.text


def test_the_backoff_is_the_jobs(store: Store) -> None:
    queue = store.queue("q", backoff_base_s=1000)
    job_id = queue.enqueue(1)
    with running(store, {"q": lambda job: 1 / 0}):
        until(settled(queue, job_id))
    job = record(queue, job_id)
    assert (job.state, job.attempts, job.released) == ("pending", 1, 0)
    assert job.retry_error == "ZeroDivisionError: division by zero"
    assert timedelta(seconds=490) < job.run_at - datetime.now(UTC) <= timedelta(seconds=1000)


def test_fail_buries_and_retry_says_when(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    queue = store.queue("q")
    ends = [Fail("no such address"), Fail(), Retry("busy", delay_s=600), Retry(delay_s=600)]

    def handle(job: JobHandle) -> None:
        raise ends[job.payload]

    failed, plain, later, silent = jobs = queue.enqueue_batch(range(4))
    with running(store, {"q": handle}):
        until(lambda: all(settled(queue, job_id)() for job_id in jobs))
    assert [record(queue, job_id).last_error for job_id in (failed, plain)] == [
        "no such address",
        "failed",
    ]
    assert [record(queue, job_id).state for job_id in (failed, plain)] == ["dead", "dead"]
    for job_id, error in ((later, "busy"), (silent, None)):
        job = record(queue, job_id)
        assert (job.state, job.retry_error) == ("pending", error)
        assert timedelta(seconds=580) < job.run_at - datetime.now(UTC) <= timedelta(seconds=600)
    assert warnings(caplog) == []


class Unreadable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class UnreadableFail(Fail):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class RetryWithoutDelay(Retry):
    def __init__(self) -> None:
        Exception.__init__(self, "no delay")


LONG = "x" * 10_000_000

ENDINGS: list[tuple[BaseException, str]] = [
    (SystemExit(3), "SystemExit: 3"),
    (KeyboardInterrupt(), "KeyboardInterrupt"),
    (GeneratorExit(), "GeneratorExit"),
    (MemoryError(), "MemoryError"),
    (alkstore.StoreClosed("another one"), "alkstore.errors.StoreClosed: another one"),
    (Unreadable(), f"{__name__}.Unreadable: <exception str() failed>"),
    (UnreadableFail(), "UnreadableFail"),
    (RetryWithoutDelay(), "no delay"),
    (Fail("a\0b"), "a"),
    (Exception("a\0b"), "Exception: a"),
    (Exception("\ud800"), "Exception: ?"),
    (Fail("\ud800"), "?"),
    (Fail(LONG), LONG[:65536]),
    (Fail(ValueError("wrapped")), "wrapped"),
]


def test_no_ending_of_a_handler_is_too_odd(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "alkstore")  # pytest could not report some of the texts
    queue = store.queue("q", backoff_base_s=1000)

    def handle(job: JobHandle) -> None:
        raise ENDINGS[job.payload][0]

    jobs = queue.enqueue_batch(range(len(ENDINGS)))
    with running(store, {"q": handle}, concurrency=2):
        until(lambda: all(settled(queue, job_id)() for job_id in jobs))
    told = [(job := record(queue, job_id)).last_error or job.retry_error for job_id in jobs]
    assert told == [text for _, text in ENDINGS]


async def coroutine(job: JobHandle) -> None:
    raise AssertionError


def generator(job: JobHandle) -> Iterator[None]:
    raise AssertionError
    yield


async def async_generator(job: JobHandle) -> Any:
    raise AssertionError
    yield


class CallableCoroutine:
    async def __call__(self, job: JobHandle) -> None:
        raise AssertionError


@pytest.mark.parametrize("function", [coroutine, generator, async_generator])
def test_what_a_handler_leaves_undone_is_no_success(store: Store, function: Any) -> None:
    queue = store.queue("q", backoff_base_s=1000)
    job_id = queue.enqueue(1)
    with running(store, {"q": lambda job: function(job)}):
        until(settled(queue, job_id))
    assert record(queue, job_id).retry_error == (
        f"TypeError: the handler returned a {function.__name__}, which nobody runs"
    )


# -- a handler that settles its job itself --------------------------------------------------------


def test_what_a_handler_has_settled_stays_so(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    queue = store.queue("q")

    def ack(job: JobHandle) -> None:
        assert job.ack()

    def ack_with_work(job: JobHandle) -> None:
        with store.transaction() as tx:
            assert job.ack(tx=tx)

    def retry(job: JobHandle) -> None:
        assert job.retry("not yet", delay_s=60)

    def fail(job: JobHandle) -> None:
        assert job.fail("never")

    def retry_and_raise(job: JobHandle) -> None:
        assert job.retry("first", delay_s=60)
        raise Fail("second")

    handlers = [ack, ack_with_work, retry, fail, retry_and_raise]
    acked, with_work, retried, failed, raised = jobs = queue.enqueue_batch(range(len(handlers)))
    with running(store, {"q": lambda job: handlers[job.payload](job)}):
        until(lambda: all(settled(queue, job_id)() for job_id in jobs))
    assert is_gone(queue, acked, with_work)
    assert [
        (record(queue, id).state, record(queue, id).retry_error) for id in (retried, raised)
    ] == [
        ("pending", "not yet"),
        ("pending", "first"),
    ]
    assert (record(queue, failed).state, record(queue, failed).last_error) == ("dead", "never")
    assert warnings(caplog) == []


def test_an_ack_that_was_rolled_back_counts_for_nothing(store: Store) -> None:
    queue = store.queue("q", backoff_base_s=1000)

    def handle(job: JobHandle) -> None:
        with store.transaction() as tx:
            assert job.ack(tx=tx)
            raise ValueError("the work could not be stored")

    job_id = queue.enqueue(1)
    with running(store, {"q": handle}):
        until(settled(queue, job_id))
    job = record(queue, job_id)
    assert (job.state, job.retry_error) == ("pending", "ValueError: the work could not be stored")


def test_a_job_that_was_cancelled_is_told_once(
    store: Store, gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    queue = store.queue("q", visibility_timeout_s=1)
    job_id = queue.enqueue(1)
    with running(store, {"q": gate}):
        until(lambda: gate.begun)
        assert queue.cancel(job_id)
        gate.open()
        other = queue.enqueue(2)
        until(lambda: is_gone(queue, other))
    assert gate.begun == [job_id, other]
    assert warnings(caplog) == [
        f"job {job_id} of 'q': its claim was lost, or it was cancelled, before the ack"
    ]


# -- heartbeats -----------------------------------------------------------------------------------


def blocked(job: JobHandle) -> None:
    time.sleep(3.3)


def cpu_bound(job: JobHandle) -> None:
    end = time.monotonic() + 3.3
    while time.monotonic() < end:
        sum(range(1000))


def test_b5_jobs_longer_than_their_visibility_are_kept(
    store: Store, target: str, caplog: pytest.LogCaptureFixture
) -> None:
    queue = store.queue("q", visibility_timeout_s=1)
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


def test_without_heartbeats_long_jobs_lapse(
    store: Store, gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    queue = store.queue("q", visibility_timeout_s=1)
    job_id = queue.enqueue(1)
    with running(store, {"q": gate}, heartbeat=False):
        until(lambda: gate.begun)
        again = until(lambda: queue.claim_one("another"))
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
    queue = store.queue("q", visibility_timeout_s=1)
    begun: Counter[int] = Counter()
    go_on = threading.Event()

    def handle(job: JobHandle) -> None:
        begun[job.id] += 1
        if job.payload == "long":
            assert go_on.wait(30)

    with running(store, {"q": handle}, heartbeat=False):
        first = queue.enqueue("short")
        until(lambda: is_gone(queue, first))
        long, *behind = queue.enqueue_batch(["long", *range(5)])
        # It claims them again, with all the time there is.
        until(lambda: all(record(queue, job_id).attempts == 2 for job_id in behind))
        go_on.set()
        until(lambda: is_gone(queue, long, *behind))
    not_begun = [f"job {job_id} of 'q' was not begun: its claim has lapsed" for job_id in behind]
    assert set(not_begun) <= set(warnings(caplog))
    assert {begun[job_id] for job_id in behind} == {1}


# -- stop -----------------------------------------------------------------------------------------


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
    assert gate.begun == jobs[:2]
    assert is_gone(queue, *jobs[:2])
    assert sorted(finished[20:]) == jobs[:2]
    # What was claimed ahead has lost no attempt.
    assert count(store, engine, "attempts <> released") == 0
    assert count(store, engine, "retry_error IS NOT NULL") == 0


def test_after_the_drain_limit_jobs_go_back_unmarked(
    store: Store, gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    queue = store.queue("q", visibility_timeout_s=1)
    job_id = queue.enqueue(1)
    worker = Running(store, {"q": gate}, drain_s=2.5)
    until(lambda: gate.begun)
    began = time.monotonic()
    worker.stop.set()
    worker.join()
    # With heartbeats all the time: it did not lapse, or the release would have been refused.
    assert 2.4 < time.monotonic() - began < 10
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
    queue = store.queue("q")
    job_id = queue.enqueue(1)
    with running(store, {"q": gate}, drain_s=None) as worker:
        until(lambda: gate.begun)
        worker.stop.set()
        until(lambda: not record(queue, job_id).released, 1)
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
    until(lambda: count(store, engine, "state = 'processing'") == 0)


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
            assert go_on.wait(30)

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


# -- several queues -------------------------------------------------------------------------------


@pytest.mark.parametrize("prefetch", [0, 100])
def test_a_flooded_queue_does_not_starve_another(store: Store, prefetch: int) -> None:
    flooded, other = store.queue("flooded"), store.queue("other")
    flooded.enqueue_batch(range(400))
    last = other.enqueue_batch(range(10))[-1]
    done: list[str] = []

    def handle(job: JobHandle) -> None:
        done.append(job.queue)

    with running(store, {"flooded": handle, other: handle}, prefetch=prefetch, poll_s=600):
        until(lambda: is_gone(other, last))
        until(lambda: len(done) == 410)
    # Of what it claims at once at most half is of either while both have something.
    assert [n for n, queue in enumerate(done) if queue == "other"][-1] < 250


def test_a_queue_whose_claims_fail_stops_no_other_and_comes_back(
    store: Store, engine: str, caplog: pytest.LogCaptureFixture
) -> None:
    good, bad = store.queue("good"), store.queue("bad")
    bad_job = bad.enqueue("bad")
    execute(store, FORBID[engine].format("UPDATE"))
    with running(store, {"bad": print, "good": lambda job: None}, poll_s=600):
        for _ in range(3):
            until(partial(is_gone, good, good.enqueue(1)))
        until(lambda: any("no bad payloads" in text for text in warnings(caplog)))
        execute(store, PERMIT[engine])
        until(lambda: is_gone(bad, bad_job))


def test_an_ack_that_fails_holds_up_no_other_and_is_sent_again(
    store: Store, engine: str, caplog: pytest.LogCaptureFixture
) -> None:
    queue = store.queue("q", visibility_timeout_s=60)
    execute(store, FORBID[engine].format("DELETE"))
    bad, *others = queue.enqueue_batch(["bad", *range(20)])
    begun: Counter[int] = Counter()

    def handle(job: JobHandle) -> None:
        begun[job.id] += 1

    with running(store, {"q": handle}, concurrency=4):
        until(lambda: is_gone(queue, *others))
        until(lambda: any("will be sent again" in text for text in warnings(caplog)))
        execute(store, PERMIT[engine])
        until(lambda: is_gone(queue, bad))
    assert set(begun.values()) == {1}


def test_what_cannot_be_acked_is_let_lapse(
    store: Store, engine: str, caplog: pytest.LogCaptureFixture
) -> None:
    queue = store.queue("q", visibility_timeout_s=1)
    execute(store, FORBID[engine].format("DELETE"))
    job_id = queue.enqueue("bad")
    begun: list[int] = []
    with running(store, {"q": lambda job: begun.append(job.attempt)}):
        until(lambda: len(begun) == 2)
        execute(store, PERMIT[engine])
        until(lambda: is_gone(queue, job_id))
    assert (
        f"job {job_id} of 'q': its claim was lost, or it was cancelled, before the ack"
        in warnings(caplog)
    )


def test_a_job_that_is_done_is_kept_until_its_ack_arrives(
    store: Store, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = store.queue("q", visibility_timeout_s=1)
    calls = next(c for c in type(store._engine).__mro__ if "settle" in vars(c))
    settle = calls.settle
    first_at = 0.0

    def late_settle(session: Any, call: str, *more: Any) -> Any:
        nonlocal first_at
        first_at = first_at or (time.monotonic() if call == "ack" else 0)
        if call == "ack" and time.monotonic() < first_at + 3:
            raise Busy("held by others")
        return settle(session, call, *more)

    monkeypatch.setattr(calls, "settle", late_settle)
    job_id = queue.enqueue(1)
    begun: list[int] = []
    with running(store, {"q": lambda job: begun.append(job.attempt)}):
        until(lambda: begun)
        with alkstore.open(target) as other, running(other, {"q": begun.append}, poll_s=0.1):
            until(lambda: is_gone(queue, job_id))
    assert begun == [1]


def test_a_worker_without_room_leaves_a_wake_to_another(store: Store, gate: Gate) -> None:
    long, short = store.queue("long"), store.queue("short")
    done: list[str] = []
    full = {"long": gate, "short": lambda job: done.append("full")}
    free = {"short": lambda job: done.append("free")}
    with running(store, full, poll_s=600):
        until(lambda: is_looking(store, {"long", "short"}))
        with running(store, free, poll_s=600):
            until(lambda: is_looking(store, {"long", "short"}, number=3))
            long.enqueue(1)
            until(lambda: gate.begun)
            first = short.enqueue(1)
            until(lambda: is_gone(short, first))
            assert done == ["free"]
        # What it left to others it does itself when it can.
        second = short.enqueue(2)
        gate.open()
        until(lambda: is_gone(short, second))


def test_what_becomes_due_later_is_done_when_it_is(store: Store) -> None:
    queue = store.queue("q", backoff_base_s=1)
    done: dict[str, datetime] = {}

    def handle(job: JobHandle) -> None:
        done[f"{job.payload} {job.attempt}"] = datetime.now(UTC)
        if job.attempt == 1 and job.payload == "fails":
            raise Retry(delay_s=1)

    with running(store, {"q": handle}, poll_s=600):
        until(lambda: is_looking(store, {"q"}))
        jobs = [queue.enqueue("delayed", delay_s=2), queue.enqueue("fails")]
        run_at = record(queue, jobs[0]).run_at
        until(lambda: is_gone(queue, *jobs))
    assert timedelta(0) <= done["delayed 1"] - run_at < timedelta(seconds=2)
    assert timedelta(0) < done["fails 2"] - done["fails 1"] < timedelta(seconds=3)


# -- claims ahead, acks behind --------------------------------------------------------------------


def test_what_waits_behind_a_long_job_is_given_back_once(
    store: Store, target: str, gate: Gate
) -> None:
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
        until(lambda: all(record(queue, job_id).released for job_id in behind), 5)
        StopToken().wait(1.5)  # in which it could claim them again
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


class Calls:
    """Counts what a worker's sessions do."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self.number: Counter[str] = Counter()
        calls = next(c for c in type(store._engine).__mro__ if "settle" in vars(c))
        settle, look = calls.settle, calls.look

        def counted_settle(session: Any, call: str, queue: str, claims: Any) -> Any:
            self.number[call] += 1
            return settle(session, call, queue, claims)

        def counted_look(session: Any, queue: str, worker_id: str, n: int) -> Any:
            self.number["look"] += 1
            return look(session, queue, worker_id, n)

        monkeypatch.setattr(calls, "settle", counted_settle)
        monkeypatch.setattr(calls, "look", counted_look)


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
    calls = Calls(store, monkeypatch)
    queue = store.queue("q")
    with running(store, {"q": lambda job: None}, poll_s=600):
        job_id = queue.enqueue(1)
        until(lambda: is_gone(queue, job_id) and is_looking(store, {"q"}))
        before = calls.number.total()
        StopToken().wait(2.5)  # more than any of its pauses
        assert calls.number.total() == before


# -- arguments ------------------------------------------------------------------------------------

BAD: list[tuple[type[Exception], Any, dict[str, Any]]] = [
    (InvalidOption, {}, {}),
    (InvalidName, {"": print}, {}),
    (InvalidName, {"x" * 256: print}, {}),
    (InvalidName, {"a\0b": print}, {}),
    (InvalidName, {7: print}, {}),
    (InvalidName, {"__alkstore_q": print}, {}),
    (TypeError, {"q": None}, {}),
    (TypeError, {"q": coroutine}, {}),
    (TypeError, {"q": partial(coroutine)}, {}),
    (TypeError, {"q": CallableCoroutine()}, {}),
    (TypeError, {"q": generator}, {}),
    (TypeError, {"q": async_generator}, {}),
    *[
        (InvalidOption, {"q": print}, {option: value})
        for option, values in {
            "concurrency": (0, -1, True, 1.0, "1", None, 2**63),
            "prefetch": (-1, False, 1.5, "1", None),
            "poll_s": (0, -1, True, math.nan, math.inf, "1", None, 2_000_001),
            "drain_s": (-1, -0.5, False, True, math.nan, math.inf, "1", 2_000_001),
        }.items()
        for value in values
    ],
    (InvalidName, {"q": print}, {"worker_id": ""}),
    (InvalidName, {"q": print}, {"worker_id": "x" * 256}),
    (InvalidName, {"q": print}, {"worker_id": "a\0b"}),
    (InvalidName, {"q": print}, {"worker_id": 7}),
    (TypeError, {"q": print}, {"stop": threading.Event()}),
    (TypeError, {"q": print}, {"unknown": 1}),
]


def test_wrong_arguments_are_refused_at_once() -> None:
    with alkstore.open(":memory:") as store:
        for error, handlers, options in BAD:
            try:
                Worker(store, handlers, **options)
            except error:
                continue
            pytest.fail(f"{handlers} {options} passed for good")


def test_two_handlers_for_a_queue_are_refused(store: Store) -> None:
    with pytest.raises(InvalidOption):
        Worker(store, {"q": print, store.queue("q"): repr})


def test_who_has_a_job_is_told(store: Store, gate: Gate) -> None:
    queue = store.queue("q")
    job_id = queue.enqueue(1)
    with running(store, {"q": gate}, worker_id="__alkstore_may_start_so"):
        until(lambda: gate.begun)
        assert record(queue, job_id).worker_id == "__alkstore_may_start_so"
        gate.open()


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
        with running(store, {"q": lambda job: done.wait(30)}, concurrency=2):
            first = slow.enqueue(1)
            until(lambda: record(slow, first).state == "processing")
            job_id = fast.enqueue(2)
            until(lambda: beats[job_id] >= 4, 5)
            done.set()
