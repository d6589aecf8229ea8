"""Worker on both engines: which handlers it takes, and what becomes of jobs however these end."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

import alkstore
from alkstore import Fail, InvalidName, InvalidOption, JobHandle, Retry, Store, Worker
from tests.python.waiting import until
from tests.python.working import Calls, Gate, is_gone, record, running, settled, warnings

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


LONG = "x" * 1_000_000

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
    store: Store, gate: Gate, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = Calls(store, monkeypatch)
    queue = store.queue("q", visibility_timeout_s=2)
    job_id = queue.enqueue(1)
    with running(store, {"q": gate}):
        until(lambda: gate.begun)
        assert queue.cancel(job_id)
        beats = calls.number["heartbeat"]
        until(lambda: calls.number["heartbeat"] > beats)  # which is refused
        gate.open()
        other = queue.enqueue(2)
        until(lambda: is_gone(queue, other))
    assert gate.begun == [job_id, other]
    assert warnings(caplog) == [
        f"job {job_id} of 'q': its claim was lost, or it was cancelled, before the ack"
    ]


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
