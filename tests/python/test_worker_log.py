"""What a worker tells the log: no trouble hides another, and what becomes of jobs is there."""

from __future__ import annotations

import logging
import threading
from typing import Any

import pytest

import alkstore
from alkstore import Busy, Store, _complaints
from tests.python.waiting import until
from tests.python.working import LONG_S, running


@pytest.fixture(autouse=True)
def every_level(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "alkstore")


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(record.levelname, record.getMessage()) for record in caplog.records]


def test_what_fails_again_and_again_is_told_a_line_a_second_and_each_in_turn(
    store: Store, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr(_complaints.time, "monotonic", lambda: now)
    complain = store._engine.complain
    for _ in range(60):  # six seconds of two things that go wrong ten times a second
        complain("wakes: %s", "gone")
        complain("acks: %s", "gone")
        now += 0.1
    lines = [message for _, message in told(caplog)]
    assert lines == ["wakes: gone", "acks: gone"] * 3
    now += 10  # the one has come to an end: the other does not wait for it
    complain("acks: %s", "gone")
    now += 1
    complain("acks: %s", "still")
    now += 1
    complain("acks: %s", "again")
    lines = [message for _, message in told(caplog)]
    assert lines[6:] == ["acks: gone", "acks: again"]


def test_an_error_is_told_in_a_line(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    store._engine.complain("queue %r: %s", "q", ValueError("denied\nCONTEXT: a function\n"))
    assert told(caplog) == [("WARNING", "queue 'q': denied")]


def test_what_a_handler_foresees_is_told_in_a_line(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    queue = store.queue("q")
    first, second = queue.enqueue_batch([1, 2])
    long = "later\n" * 10_000

    def handler(job: alkstore.JobHandle) -> None:
        raise alkstore.Fail("no such user") if job.payload == 1 else alkstore.Retry(long, 60)

    with running(store, {"q": handler}):
        until(lambda: queue.get_job(second).retry_error == long)
    assert told(caplog) == [
        ("INFO", f"job {first} of 'q' will not succeed: no such user"),
        ("INFO", f"job {second} of 'q', attempt 1: {'later ' * 32}[...]"),
        ("INFO", "stopping; handlers that still run: 0"),
    ]


def test_a_stop_tells_what_it_waits_for_and_what_it_leaves(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    job_id = store.queue("q").enqueue(1)
    began, end = threading.Event(), threading.Event()

    def handler(job: alkstore.JobHandle) -> None:
        began.set()
        end.wait(LONG_S)

    with running(store, {"q": handler}, drain_s=0.1):
        assert began.wait(60)
    end.set()
    assert told(caplog) == [
        ("INFO", "stopping; handlers that still run: 1"),
        ("WARNING", f"job {job_id} of 'q' still runs, and is handed back"),
    ]


def test_it_tells_when_trouble_is_over(
    store: Store, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with store._engine.claiming_session() as session:
        calls = type(session)
    look, failures = calls.look, iter([Busy("locked"), Busy("locked")])

    def failing(self: Any, *arguments: Any) -> Any:
        for failure in failures:
            raise failure
        return look(self, *arguments)

    monkeypatch.setattr(calls, "look", failing)
    job_id = store.queue("q").enqueue(1)
    with running(store, {"q": lambda job: None}):
        until(lambda: store.queue("q").get_job(job_id) is None)
    assert told(caplog) == [
        ("WARNING", "queue 'q': locked; trying again in 0.1 s"),
        ("INFO", "queue 'q': claims succeed again"),
        ("INFO", "stopping; handlers that still run: 0"),
    ]
