"""Worker on PostgreSQL: few connections, which may die, and rows that handlers keep locked."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from typing import Any

import psycopg
import pytest

import alkstore
from alkstore import JobHandle, Store, Unavailable
from alkstore._postgres_calls import PostgresCalls
from tests.harness.server import Server
from tests.python.roles import Roles
from tests.python.waiting import until
from tests.python.working import (
    LONG_S,
    Gate,
    Running,
    handlers_alive,
    is_gone,
    is_looking,
    record,
    running,
    settled,
    until_prolonged,
    warnings,
)


@pytest.fixture
def pg_store(pg_url: str) -> Iterator[Store]:
    with alkstore.open(pg_url) as store:
        yield store


@pytest.fixture
def watcher(pg_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(pg_url, autocommit=True) as connection:
        yield connection


# -- connections ----------------------------------------------------------------------------------


@pytest.mark.parametrize("pool_size", [1, 2])
def test_handlers_may_use_up_the_pool(pg_url: str, pool_size: int) -> None:
    with alkstore.open(pg_url, pool_size=pool_size) as store:
        queue = store.queue("q", visibility_timeout_s=1)

        def handle(job: JobHandle) -> None:
            with store.transaction() as tx:
                tx.connection.execute("SELECT pg_sleep(0.05)")
                assert job.ack(tx=tx)

        jobs = queue.enqueue_batch(range(40))
        with running(store, {"q": handle}, concurrency=4):
            until(lambda: is_gone(queue, *jobs))


def test_it_needs_three_connections_beside_the_pool(
    pg_url: str, watcher: psycopg.Connection, gate: Gate
) -> None:
    url = pg_url + "?application_name=worker"
    with alkstore.open(url) as store, alkstore.open(pg_url) as other:
        queue = other.queue("q", visibility_timeout_s=1)
        jobs = queue.enqueue_batch(range(50))
        with running(store, {"q": gate, "p": print}, concurrency=8):
            until(lambda: len(gate.begun) == 8)
            until(lambda: len(backends(watcher, "worker")) == 3)
            gate.open()
            until(lambda: is_gone(queue, *jobs))
            assert len(backends(watcher, "worker")) == 3
        until(lambda: backends(watcher, "worker") == {})


def backends(watcher: psycopg.Connection, application: str) -> dict[int, str]:
    """The last statement of each session of an application, by its process id."""
    sql = "SELECT pid, query FROM pg_stat_activity WHERE application_name = %s"
    return dict(watcher.execute(sql, (application,)).fetchall())


@pytest.mark.parametrize("whose", ["LISTEN", ".heartbeat(", ".claim("])
def test_a_killed_connection_costs_nothing(
    whose: str, pg_url: str, watcher: psycopg.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    begun: Counter[int] = Counter()

    def handle(job: JobHandle) -> None:
        begun[job.id] += 1
        time.sleep(job.payload)

    with (
        alkstore.open(pg_url + "?application_name=worker") as store,
        alkstore.open(pg_url) as other,
        running(store, {"q": handle}, concurrency=2, poll_s=600),
    ):
        queue = other.queue("q", visibility_timeout_s=2)
        long = queue.enqueue(5)
        for _ in range(4):
            pid = until(partial(find, watcher, whose))
            short = queue.enqueue(0)
            assert watcher.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,)).fetchone()
            until(partial(is_gone, queue, short))
        until(lambda: is_gone(queue, long))
    assert set(begun.values()) == {1}
    assert [text for text in warnings(caplog) if text.startswith("job ")] == []


def find(watcher: psycopg.Connection, whose: str) -> int | None:
    """The process of a worker's session, by the call that it makes."""
    sessions = backends(watcher, "worker")
    # The session that claims acks as well, and looks when the next job is due.
    wanted = (whose, ".ack(", ".next_due(") if whose == ".claim(" else (whose, ".wake_channel(")
    return next((pid for pid, query in sessions.items() if any(w in query for w in wanted)), None)


def test_a_restart_of_the_server_loses_nothing(
    caplog: pytest.LogCaptureFixture, gate: Gate
) -> None:
    begun: Counter[int] = Counter()

    def handle(job: JobHandle) -> None:
        begun[job.id] += 1
        if job.payload == "long":
            gate(job)

    with Server(durable=True) as server:
        alkstore.install(server.url)
        with alkstore.open(server.url) as store:
            queue = store.queue("q", visibility_timeout_s=30)
            with running(store, {"q": handle}, concurrency=4, poll_s=600):
                for mode in ("fast", "immediate"):  # idle
                    until(lambda: is_looking(store, {"q"}))
                    server.stop(mode)
                    server.start()
                    until(partial(is_gone, queue, enqueue(server)))

                longs = queue.enqueue_batch(["long"] * 3)  # with jobs that end meanwhile
                until(lambda: len(gate.begun) == 3)
                server.stop("fast")
                gate.open()
                until(lambda: any("ack of 'q'" in text for text in warnings(caplog)))
                server.start()
                until(lambda: server.psql("SELECT count(*) FROM alkstore.jobs") == "0")
                assert set(begun.values()) == {1}
                assert set(longs) <= set(begun)

                server.stop("fast")  # a stop meanwhile is as clean as any
                until(lambda: any("Connection refused" in text for text in warnings(caplog)))
    assert [text for text in warnings(caplog) if text.startswith("job ")] == []


def enqueue(server: Server) -> int:
    return int(server.psql("SELECT alkstore.enqueue('q', '1')"))


def test_an_outcome_that_arrived_unheard_is_sent_again_without_a_word(
    pg_store: Store, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: Counter[str] = Counter()
    settle, accepted = PostgresCalls.settle, PostgresCalls.accepted

    def deaf_settle(session: Any, call: str, queue: str, claims: Any) -> Any:
        answers = settle(session, call, queue, claims)
        sent[call] += 1
        if sent[call] == 1:
            raise Unavailable("the connection was lost")
        return answers

    def deaf_accepted(session: Any, tx: Any, call: str, **arguments: Any) -> Any:
        answer = accepted(session, tx, call, **arguments)
        sent[call] += 1
        if sent[call] == 1:
            raise Unavailable("the connection was lost")
        return answer

    monkeypatch.setattr(PostgresCalls, "settle", deaf_settle)
    monkeypatch.setattr(PostgresCalls, "accepted", deaf_accepted)
    queue = pg_store.queue("q")

    def handle(job: JobHandle) -> None:
        if job.payload == "retry":
            raise alkstore.Retry("not now", delay_s=600)

    acked, retried = queue.enqueue_batch(["ack", "retry"])
    with running(pg_store, {"q": handle}):
        until(lambda: sent["ack"] == sent["retry"] == 2)
    assert is_gone(queue, acked)
    assert record(queue, retried).attempts == 1
    assert [text for text in warnings(caplog) if text.startswith("job ")] == []


# -- rows that are locked -------------------------------------------------------------------------


def test_handlers_that_hold_their_rows_do_not_hold_up_other_heartbeats(pg_url: str) -> None:
    with alkstore.open(pg_url, pool_size=12) as store:
        queue = store.queue("q", visibility_timeout_s=2)
        begun: Counter[int] = Counter()

        def handle(job: JobHandle) -> None:
            begun[job.id] += 1
            if job.payload == "holds":
                with store.transaction() as tx:
                    assert job.ack(tx=tx)
                    time.sleep(4.5)
            else:
                time.sleep(4.5)

        jobs = queue.enqueue_batch(["holds"] * 8 + ["works"] * 4)
        with (
            alkstore.open(pg_url) as other,
            running(store, {"q": handle}, concurrency=12, poll_s=0.1),
        ):
            until(lambda: len(begun) == 12)
            with running(other, {"q": handle}, concurrency=12, poll_s=0.1):
                until(lambda: is_gone(queue, *jobs))
        assert set(begun.values()) == {1}


def test_a_row_that_is_locked_holds_up_no_other_ack_or_release(
    pg_store: Store, watcher: psycopg.Connection, gate: Gate
) -> None:
    queue = pg_store.queue("q", visibility_timeout_s=60)
    finish = threading.Event()

    def handle(job: JobHandle) -> None:
        if job.payload == "acked":
            finish.wait(LONG_S)
        else:
            gate(job)

    locked, ack, first, release, last = queue.enqueue_batch(
        ["acked", "acked", "released", "released", "released"]
    )
    worker = Running(pg_store, {"q": handle}, concurrency=5, drain_s=1)
    until(lambda: len(gate.begun) == 3)
    with watcher.transaction():
        lock = "SELECT FROM alkstore._job WHERE id = ANY (%s) FOR UPDATE"
        watcher.execute(lock, ([locked, release],))
        finish.set()
        until(lambda: is_gone(queue, ack))
        worker.stop.set()
        worker.join()
    assert worker.error is None
    states = {job_id: record(queue, job_id).state for job_id in (locked, first, release, last)}
    assert states == {
        locked: "processing",
        first: "pending",
        release: "processing",
        last: "pending",
    }


def test_a_locked_row_is_settled_when_it_is_free(
    pg_store: Store, watcher: psycopg.Connection, gate: Gate
) -> None:
    queue = pg_store.queue("q", visibility_timeout_s=60)
    job_id = queue.enqueue(1)
    with running(pg_store, {"q": gate}):
        until(lambda: gate.begun)
        with watcher.transaction():
            watcher.execute("SELECT FROM alkstore._job WHERE id = %s FOR UPDATE", (job_id,))
            gate.open()
            other = queue.enqueue(2)
            until(lambda: is_gone(queue, other))
            assert record(queue, job_id).state == "processing"
        until(lambda: is_gone(queue, job_id))


# -- rights ---------------------------------------------------------------------------------------


def test_the_grants_of_a_worker_are_enough(
    pg_store: Store, pg_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    queue = pg_store.queue("q", visibility_timeout_s=2)
    ends = [None, alkstore.Fail("never"), alkstore.Retry("later", delay_s=600)]

    def handle(job: JobHandle) -> None:
        until_prolonged(queue, job.id)
        if error := ends[job.payload]:
            raise error

    jobs = acked, failed, retried = queue.enqueue_batch(range(3))
    with closing(Roles(pg_url)) as roles:
        with (
            alkstore.open(roles.create("worker")) as store,
            running(store, {"q": handle}, concurrency=3),
        ):
            until(lambda: all(settled(queue, job_id)() for job_id in jobs))
        assert is_gone(queue, acked)
        assert record(queue, failed).last_error == "never"
        assert record(queue, retried).retry_error == "later"
        assert warnings(caplog) == []


def test_what_a_role_may_not_do_is_tried_until_it_may(
    pg_store: Store, pg_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    queue = pg_store.queue("q")
    job_id = queue.enqueue(1)
    with closing(Roles(pg_url)) as roles:
        url = roles.create("producer")
        with alkstore.open(url) as store, running(store, {"q": lambda job: None}, poll_s=600):
            until(lambda: any("permission denied" in text for text in warnings(caplog)))
            with psycopg.connect(url) as connection:
                name = connection.info.user
            roles.owner.execute("SELECT alkstore.grant_worker(%s)", (name,))
            until(lambda: is_gone(queue, job_id))


def test_a_server_that_is_read_only_is_left_for_another(
    pg_url: str, watcher: psycopg.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    """As after a failover, with several hosts in the URL; here a new connection finds it cured."""
    database = watcher.info.dbname
    with alkstore.open(pg_url) as store:
        job_id = store.queue("q").enqueue(1)
        watcher.execute(f'ALTER DATABASE "{database}" SET default_transaction_read_only = on')
        with running(store, {"q": lambda job: None}, poll_s=600):
            until(lambda: "cannot execute" in caplog.text)
            watcher.execute(f'ALTER DATABASE "{database}" RESET default_transaction_read_only')
            until(lambda: is_gone(store.queue("q"), job_id))


def test_it_works_in_another_schema(empty_pg_url: str) -> None:
    alkstore.install(empty_pg_url, schema="Jobs-2")
    with alkstore.open(empty_pg_url, schema="Jobs-2") as store:
        queue = store.queue("q", visibility_timeout_s=2)

        def handle(job: JobHandle) -> None:
            until_prolonged(queue, job.id)

        with running(store, {"q": handle}, poll_s=600):
            until(lambda: is_looking(store, {"q"}))
            job_id = queue.enqueue(1)
            until(lambda: is_gone(queue, job_id))


def test_a_stop_while_the_server_is_away_ends_in_time(
    caplog: pytest.LogCaptureFixture, gate: Gate
) -> None:
    with Server() as server:
        alkstore.install(server.url)
        with alkstore.open(server.url) as store:
            store.queue("q").enqueue(1)
            worker = Running(store, {"q": gate}, drain_s=1)
            until(lambda: gate.begun)
            server.stop("fast")
            gate.open()
            until(lambda: any("ack of 'q'" in text for text in warnings(caplog)))
            began = time.monotonic()
            worker.stop.set()
            worker.join()
            assert worker.error is None
            assert time.monotonic() - began < 40
    assert "job 1 of 'q': its ack could not be sent, it will be run again" in warnings(caplog)
    until(lambda: not handlers_alive())
