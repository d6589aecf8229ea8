"""Waiting on PostgreSQL: connections that die or fall silent, and how many there are of them."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

import alkstore
from alkstore import JobHandle, Store, StoreClosed, _postgres_connection, _postgres_wakes, postgres
from tests.harness import pgbouncer
from tests.harness.pgbouncer import PgBouncer
from tests.harness.server import Server
from tests.python.consuming import (
    OBSERVED,
    Consumer,
    Seen,
    assert_no_flood,
    listening,
    observer,
    until_idle,
)
from tests.python.proxy import Proxy
from tests.python.roles import Roles
from tests.python.waiting import until


@pytest.fixture
def store(pg_url: str) -> Iterator[Store]:
    with alkstore.open(pg_url) as store:
        yield store


@pytest.fixture
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a second what is half a minute."""
    monkeypatch.setattr(_postgres_wakes, "_LOOK_AFTER_S", 0.5)
    monkeypatch.setattr(_postgres_connection, "_CHECK_S", 0.5)
    monkeypatch.setattr(_postgres_connection, "_ANSWER_WITHIN_S", 1.0)
    monkeypatch.setattr(postgres, "_TRUSTED_FOR_S", 1.0)


def execute(url: str, sql: str, *values: Any) -> list[Any]:
    with observer(url) as connection:
        cursor = connection.execute(sql.encode(), values)
        return cursor.fetchall() if cursor.description else []


def enqueue(url: str, payload: int, queue: str = "q") -> None:
    execute(url, "SELECT alkstore.enqueue(%s, %s)", queue, str(payload))


def kill(url: str, *pids: int) -> None:
    sql = "SELECT bool_and(pg_terminate_backend(pid, 20000)) FROM unnest(%s::int[]) pid"
    assert execute(url, sql, list(pids)) == [(True,)]


def others(url: str) -> list[str]:
    """What the other connections to the database were asked last."""
    rows = execute(url, f"SELECT query FROM pg_stat_activity WHERE {OBSERVED} ORDER BY query")
    return [query for (query,) in rows]


# -- connections that die -------------------------------------------------------------------------


def test_a_killed_listener_listens_again(
    store: Store, pg_url: str, seen: Seen, caplog: pytest.LogCaptureFixture
) -> None:
    with Consumer(store.queue("q")) as consumer:
        until_idle(seen, pg_url)
        for number in range(0, 6, 2):
            (pid,) = listening(pg_url)
            kill(pg_url, pid)
            enqueue(pg_url, number)
            consumer.expect(*range(number + 1))
            until(lambda pid=pid: listening(pg_url) not in ([], [pid]))
            until_idle(seen, pg_url)
            enqueue(pg_url, number + 1)
            consumer.expect(*range(number + 2))
    assert re.fullmatch(r"wakes: .*; polling until they are back", caplog.messages[0])
    assert_no_flood(caplog)


def test_a_killed_claimer_connects_again(
    store: Store, pg_url: str, seen: Seen, caplog: pytest.LogCaptureFixture
) -> None:
    with Consumer(store.queue("q")) as consumer:
        until_idle(seen, pg_url)
        claimers = execute(
            pg_url,
            f"SELECT pid FROM pg_stat_activity WHERE {OBSERVED} AND query LIKE '%%next_due%%'",
        )
        assert len(claimers) == 1
        kill(pg_url, *claimers[0])
        enqueue(pg_url, 1)
        consumer.expect(1)
    (message,) = caplog.messages
    assert message.startswith("queue 'q': PostgreSQL cannot be reached: ")
    assert message.endswith("; trying again in 0.1 s")
    assert "\n" not in message


def test_a_restart_of_the_server_while_idle(
    seen: Seen, caplog: pytest.LogCaptureFixture, short_waits: None
) -> None:
    caplog.set_level(logging.INFO)
    with Server(durable=True) as server:  # or a crash would undo acks
        url = f"{server.url}?connect_timeout=2"
        alkstore.install(url)
        with (
            alkstore.open(url) as store,
            Consumer(store.queue("q"), poll_s=0.3) as polls,
            Consumer(store.queue("p")) as sleeps,
        ):
            until_idle(seen, url, 1)
            for number, mode in enumerate(("fast", "immediate")):
                server.stop(mode)
                began, cpu = time.monotonic(), time.process_time()
                # Of all its waits the longest is connect_timeout, 2 s.
                threading.Event().wait(12 if mode == "fast" else 3)
                used = (time.process_time() - cpu) / (time.monotonic() - began)
                assert used <= 0.15  # of a core; a loop without pauses takes what it gets
                server.start()
                for queue, consumer in (("q", polls), ("p", sleeps)):
                    enqueue(url, 2 * number, queue)
                    consumer.expect(*range(2 * number + 1))
                until(lambda: len(listening(url)) == 1)
                until(lambda: seen.waiting(2))
                enqueue(url, 2 * number + 1, "p")
                sleeps.expect(*range(2 * number + 2))
                enqueue(url, 2 * number + 1, "q")
                until(lambda number=number: len(polls.jobs) == 2 * number + 2)
    assert_no_flood(caplog)


def test_a_stop_while_the_server_is_away(seen: Seen, caplog: pytest.LogCaptureFixture) -> None:
    with Server() as server:
        alkstore.install(server.url)
        with alkstore.open(server.url) as store, Consumer(store.queue("q"), poll_s=0.2):
            until(lambda: len(listening(server.url)) == 1)
            server.stop()
            until(lambda: caplog.messages)


# -- connections that fall silent -----------------------------------------------------------------


@pytest.mark.usefixtures("short_waits")
def test_half_open_connections_are_noticed_and_replaced(
    pg_url: str, seen: Seen, caplog: pytest.LogCaptureFixture
) -> None:
    server = urlsplit(pg_url)
    with Proxy("127.0.0.1", server.port or 0) as proxy:
        through = server._replace(netloc=f"postgres@127.0.0.1:{proxy.port}").geturl()
        with (
            alkstore.open(f"{through}?connect_timeout=2") as store,
            Consumer(store.queue("q"), poll_s=0.3) as polls,
            Consumer(store.queue("p")) as sleeps,
        ):
            until_idle(seen, pg_url, 2)
            half_open, connections = set(listening(pg_url)), proxy.connections
            proxy.swallows = True
            enqueue(pg_url, 0, "q")
            enqueue(pg_url, 0, "p")
            # What listens and what polls are given up, and tried again, in vain.
            until(lambda: proxy.connections >= connections + 6)
            assert caplog.messages
            assert polls.jobs == sleeps.jobs == []
            proxy.swallows = False
            polls.expect(0)
            sleeps.expect(0)
            until(lambda: set(listening(pg_url)) - half_open)
            until(lambda: seen.waiting(2))
            enqueue(pg_url, 1, "p")
            sleeps.expect(0, 1)
    assert any("no answer within" in message for message in caplog.messages)
    assert_no_flood(caplog)


@pytest.mark.usefixtures("short_waits")
def test_without_a_listener_it_polls(
    store: Store,
    pg_url: str,
    seen: Seen,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = urlsplit(pg_url)
    with Proxy("127.0.0.1", server.port or 0) as proxy:
        parameters = {**store._engine._parameters, "port": proxy.port, "connect_timeout": 2}
        monkeypatch.setattr(
            store._engine.wakes, "_connect", lambda: _postgres_connection.connect(parameters)
        )
        with Consumer(store.queue("q"), poll_s=0.2) as consumer:
            until(lambda: len(listening(pg_url)) == 1)
            proxy.swallows = True
            until(lambda: caplog.messages)
            for number in range(10):
                enqueue(pg_url, number)
                consumer.expect(*range(number + 1))
            until(lambda: len(caplog.messages) >= 2)
        assert all(message.startswith("wakes: ") for message in caplog.messages)
        assert_no_flood(caplog)


# -- wakes that do not come -----------------------------------------------------------------------


def test_with_wakes_off_it_polls(store: Store, pg_url: str, seen: Seen) -> None:
    with Consumer(store.queue("q"), poll_s=0.3) as consumer:
        until_idle(seen, pg_url)
        sql = "SET alkstore.notify = off; SELECT alkstore.enqueue('q', '1')"
        execute(pg_url, sql)
        consumer.expect(1)


def test_what_an_open_transaction_holds_makes_no_busy_loop(
    store: Store, pg_url: str, seen: Seen
) -> None:
    enqueue(pg_url, 1)
    with psycopg.connect(pg_url) as holder, Consumer(store.queue("q"), poll_s=0.3) as consumer:
        holder.execute("DELETE FROM alkstore._job")
        with Consumer(store.queue("p")):
            until_idle(seen, pg_url, 2)
        began = time.monotonic()
        seen.clear()
        until(lambda: len(seen.looks) >= 5)
        assert time.monotonic() - began >= 4 * 0.29
        assert consumer.jobs == []
        holder.rollback()
        consumer.expect(1)


@pytest.mark.skipif(pgbouncer.program() is None, reason="no pgbouncer")
@pytest.mark.parametrize(("mode", "poll_s"), [("transaction", 0.3), ("session", 600)])
def test_behind_pgbouncer(
    pg_url: str, seen: Seen, caplog: pytest.LogCaptureFixture, mode: str, poll_s: float
) -> None:
    server = urlsplit(pg_url)
    with (
        PgBouncer(server.port or 0, mode) as pooler,
        alkstore.open(pooler.url(server.path[1:])) as store,
        Consumer(store.queue("q"), poll_s=poll_s) as consumer,
        Consumer(store.queue("q"), poll_s=poll_s) as another,
    ):
        until(lambda: len(listening(pg_url)) >= 1)
        for number in range(20):
            if mode == "session":
                # The pooler may keep a spare connection, which looks like a listener's.
                until(lambda: seen.waiting(2) and listening(pg_url))
            enqueue(pg_url, number)
            until(lambda number=number: len(consumer.jobs + another.jobs) == number + 1)
    assert caplog.messages == []


# -- how many -------------------------------------------------------------------------------------


def test_consumers_wait_and_claim_without_the_pools_only_connection(
    pg_url: str, seen: Seen
) -> None:
    with alkstore.open(pg_url, pool_size=1) as store, ExitStack() as stack:
        claimed: list[JobHandle] = []
        for number in range(4):
            stack.enter_context(Consumer(store.queue("q"), f"w{number}", work=claimed.append))
        until_idle(seen, pg_url, 4)
        with store.transaction() as tx:
            store.queue("q").enqueue(1, tx=tx)
        until_idle(seen, pg_url, 4)
        with store.transaction():
            enqueue(pg_url, 2)
            until(lambda: len(claimed) == 2)
        assert all(job.ack() for job in claimed)


def test_a_store_has_one_listener_and_a_consumer_one_connection(
    store: Store, pg_url: str, seen: Seen
) -> None:
    with ExitStack() as stack:
        for number in range(3):
            stack.enter_context(Consumer(store.queue("q"), f"w{number}"))
            stack.enter_context(Consumer(store.queue(f"q{number}"), f"w{number}"))
        until_idle(seen, pg_url, 6)
        until(lambda: len(others(pg_url)) == 7)
        assert store.queue("q").cancel(1) is False
        until(lambda: len(others(pg_url)) == 8)  # the pool's
    until(lambda: len(others(pg_url)) == 1)
    store.close()
    until(lambda: others(pg_url) == [])


def test_a_closed_store_leaves_no_connection(pg_url: str, seen: Seen) -> None:
    with alkstore.open(pg_url) as store, Consumer(store.queue("q"), ends_with=StoreClosed):
        until_idle(seen, pg_url)
        store.close()
        until(lambda: others(pg_url) == [])


def test_it_stops_listening_to_what_nobody_consumes(store: Store, pg_url: str, seen: Seen) -> None:
    def unlistened() -> bool:
        return any(query == 'UNLISTEN "p"' for query in others(pg_url))

    with Consumer(store.queue("q")) as consumer:
        until_idle(seen, pg_url)
        with Consumer(store.queue("p")) as other:
            until_idle(seen, pg_url, 2)
            enqueue(pg_url, 1, "p")
            other.expect(1)
        until(unlistened)
        enqueue(pg_url, 2)
        consumer.expect(2)
        with Consumer(store.queue("p")) as other:
            until_idle(seen, pg_url, 2)
            enqueue(pg_url, 3, "p")
            other.expect(3)


# -- whose ----------------------------------------------------------------------------------------


def test_another_schema(empty_pg_url: str, seen: Seen) -> None:
    alkstore.install(empty_pg_url, schema="Jobs-2")
    with (
        alkstore.open(empty_pg_url, schema="Jobs-2") as store,
        Consumer(store.queue("q")) as consumer,
    ):
        until_idle(seen, empty_pg_url)
        store.queue("q").enqueue(1)
        consumer.expect(1)


def test_the_grants_of_a_worker_are_enough(store: Store, pg_url: str, seen: Seen) -> None:
    with (
        closing(Roles(pg_url)) as roles,
        alkstore.open(roles.create("worker")) as worker,
        Consumer(worker.queue("q")) as consumer,
    ):
        until_idle(seen, pg_url)
        store.queue("q").enqueue(1)
        consumer.expect(1)
