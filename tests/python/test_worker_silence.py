"""A Worker that is stopped while the network between it and PostgreSQL swallows everything."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

import alkstore
from alkstore import Store, _work
from tests.python.proxy import Proxy
from tests.python.waiting import until
from tests.python.working import Gate, Running, record, warnings

LET_GO_S = 1.0


@pytest.fixture
def proxy(pg_url: str) -> Iterator[Proxy]:
    with Proxy("127.0.0.1", urlsplit(pg_url).port or 0) as proxy:
        yield proxy
    until(lambda: all(thread.name != "courier" for thread in threading.enumerate()))


@pytest.fixture
def through(pg_url: str, proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setattr(_work, "_LET_GO_S", LET_GO_S)
    url = urlsplit(pg_url)._replace(netloc=f"postgres@127.0.0.1:{proxy.port}").geturl()
    with alkstore.open(f"{url}?connect_timeout=2") as store:
        yield store


def test_a_stop_ends_in_time(
    through: Store, proxy: Proxy, gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    through.queue("q").enqueue(1)
    worker = Running(through, {"q": gate}, drain_s=1, heartbeat=False)
    until(lambda: gate.begun)
    proxy.swallows = True
    gate.open()
    began = time.monotonic()
    worker.stop.set()
    worker.join()
    took_s = time.monotonic() - began
    assert worker.error is None
    assert 1 + LET_GO_S <= took_s < 25  # a call waits 30 s for its answer
    assert "the database does not answer: not waiting for the last call" in warnings(caplog)


def test_a_drain_without_limit_waits_for_the_answer(
    through: Store, proxy: Proxy, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("alkstore._postgres_connection._ANSWER_WITHIN_S", 3.0)
    queue = through.queue("q")
    job_id = queue.enqueue(1)
    worker = Running(through, {"q": gate}, drain_s=None, heartbeat=False)
    until(lambda: gate.begun)
    proxy.swallows = True
    gate.open()
    worker.stop.set()
    connections = proxy.connections
    until(lambda: proxy.connections > connections)  # the first has been given up
    proxy.swallows = False
    worker.join()
    assert worker.error is None
    assert queue.get_job(job_id) is None


def test_the_drain_counts_from_the_stop_not_from_when_it_is_noticed(
    store: Store, gate: Gate
) -> None:
    queue = store.queue("q")
    job_id = queue.enqueue(1)
    worker = Running(store, {"q": gate}, drain_s=100)
    until(lambda: gate.begun)
    worker.stop.set()
    assert worker.stop._stop.given_at is not None
    worker.stop._stop.given_at -= 100
    worker.join()
    assert worker.error is None
    assert record(queue, job_id).state == "pending"
