"""Locks through the package, on both engines."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

import alkstore
from alkstore import InvalidName, InvalidOption, Lock, LockHeld, LockLost, Store, StoreClosed
from tests.python.clock import Clock
from tests.python.waiting import until
from tests.python.working import execute

LOCKS = {"sqlite": "alkstore_locks", "postgres": "alkstore.locks"}
TAKE_AWAY = {
    "sqlite": "UPDATE __alkstore_lock SET owner = 'thief'",
    "postgres": "UPDATE alkstore._lock SET owner = 'thief'",
}
REMOVE = {"sqlite": "DELETE FROM __alkstore_lock", "postgres": "DELETE FROM alkstore._lock"}


def owners(store: Store, engine: str) -> list[str]:
    return [owner for (owner,) in execute(store, f"SELECT owner FROM {LOCKS[engine]}")]


# -- the calls ------------------------------------------------------------------------------------


def test_the_owner_holds_renews_and_releases(store: Store, target: str) -> None:
    clock = Clock(target)
    assert store.acquire_lock("l", "a", 60) is True
    assert store.acquire_lock("l", "b", 60) is False
    assert store.acquire_lock("m", "b", 60) is True
    assert store.renew_lock("l", "b", 60) is False
    assert store.release_lock("l", "b") is False
    clock.advance(60)
    assert store.renew_lock("l", "a", 60) is True
    clock.advance(60)
    assert store.release_lock("l", "a") is True
    assert store.release_lock("l", "a") is False
    assert store.acquire_lock("l", "b", 60) is True


def test_a_lapsed_owner_is_refused_even_if_nobody_took_the_lock(store: Store, target: str) -> None:
    clock = Clock(target)
    store.acquire_lock("l", "a", 60)
    clock.advance(61)
    assert store.renew_lock("l", "a", 60) is False
    assert store.release_lock("l", "a") is False
    assert store.acquire_lock("l", "b", 60) is True
    assert store.renew_lock("l", "a", 60) is False


@pytest.mark.parametrize("name", ["", "__alkstore_scheduler", "x" * 256, "a\0b", 7])
def test_names_are_refused(store: Store, name: Any) -> None:
    calls: list[Callable[[], object]] = [
        lambda: store.acquire_lock(name, "a", 60),
        lambda: store.renew_lock(name, "a", 60),
        lambda: store.release_lock(name, "a"),
        lambda: store.lock(name, 60).__enter__(),
    ]
    for call in calls:
        with pytest.raises(InvalidName):
            call()


@pytest.mark.parametrize("ttl_s", [0, -1, 2**31, 2**63, 1.5, "60", None, True])
def test_a_ttl_out_of_range_is_refused(store: Store, ttl_s: Any) -> None:
    calls: list[Callable[[], object]] = [
        lambda: store.acquire_lock("l", "a", ttl_s),
        lambda: store.renew_lock("l", "a", ttl_s),
        lambda: store.lock("l", ttl_s).__enter__(),
    ]
    for call in calls:
        with pytest.raises(InvalidOption):
            call()


def test_of_ten_at_once_one_takes_the_lock(target: str) -> None:
    start = threading.Barrier(10, timeout=60)
    taken: list[str] = []

    def take(owner: str) -> None:
        with alkstore.open(target) as store:
            for number in range(20):
                start.wait()
                if store.acquire_lock(f"lock {number}", owner, 60):
                    taken.append(f"lock {number}")

    threads = [threading.Thread(target=take, args=(f"owner {n}",)) for n in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == sorted(f"lock {number}" for number in range(20))


def test_who_asks_in_vain_does_not_hold_up_the_owner(pg_url: str) -> None:
    with alkstore.open(pg_url) as store, psycopg.connect(pg_url) as other:
        store.acquire_lock("l", "a", 60)
        ((taken,),) = other.execute("SELECT alkstore.acquire_lock('l', 'b', 60)").fetchall()
        assert taken is False
        with store.transaction() as tx:
            # The other transaction is still open.
            tx.connection.execute("SET LOCAL lock_timeout = '10s'")
            ((renewed,),) = tx.connection.execute("SELECT alkstore.renew_lock('l', 'a', 60)")
        assert renewed is True


# -- held for a block -----------------------------------------------------------------------------


def test_a_lock_is_held_for_the_block(store: Store, engine: str) -> None:
    with store.lock("l", 60) as lock:
        assert lock.held
        assert owners(store, engine) == [lock.owner]
        with pytest.raises(LockHeld), store.lock("l", 60):
            pass
        with store.lock("another", 60):
            pass
    assert owners(store, engine) == []
    with store.lock("l", 60):
        pass


def test_threads_exclude_each_other(store: Store) -> None:
    outcomes: list[str] = []

    def enter() -> None:
        try:
            with store.lock("l", 60):
                outcomes.append("entered")
        except LockHeld:
            outcomes.append("held")

    with store.lock("l", 60):
        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
    enter()
    assert outcomes == ["held", "entered"]


def is_held_for(lock: Lock, seconds: float) -> bool:
    end = time.monotonic() + seconds
    until(lambda: not lock.held or time.monotonic() >= end)
    return lock.held


def test_a_lock_is_renewed_beyond_its_ttl(store: Store) -> None:
    with store.lock("l", 6) as lock:
        assert is_held_for(lock, 8)
        assert store.acquire_lock("l", "other", 60) is False


def test_a_lock_is_renewed_while_the_block_has_every_connection(pg_url: str) -> None:
    with (
        alkstore.open(pg_url, pool_size=1) as store,
        store.lock("l", 6) as lock,
        store.transaction(),
    ):
        assert is_held_for(lock, 8)


@pytest.mark.parametrize("loss", [TAKE_AWAY, REMOVE])
def test_a_lost_lock_is_told_inside_and_at_the_end(
    store: Store, engine: str, loss: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(LockLost), store.lock("l", 1) as lock:  # noqa: PT012
        execute(store, loss[engine])
        until(lambda: "the lock 'l' is lost" in caplog.messages)
        assert not lock.held
    assert owners(store, engine) == (["thief"] if loss is TAKE_AWAY else [])


def test_a_loss_that_the_block_did_not_notice_is_told_at_the_end(store: Store, engine: str) -> None:
    with pytest.raises(LockLost), store.lock("l", 60):
        execute(store, TAKE_AWAY[engine])
    assert owners(store, engine) == ["thief"]


def test_an_error_in_the_block_goes_first_and_releases(store: Store, engine: str) -> None:
    with pytest.raises(ZeroDivisionError), store.lock("l", 60):
        raise ZeroDivisionError
    assert owners(store, engine) == []
    with pytest.raises(ZeroDivisionError), store.lock("l", 60):  # noqa: PT012
        execute(store, TAKE_AWAY[engine])
        raise ZeroDivisionError
    assert owners(store, engine) == ["thief"]


def test_a_store_closed_in_the_block(target: str, engine: str) -> None:
    store = alkstore.open(target)
    with pytest.raises(StoreClosed), store.lock("l", 60):
        store.close()


def test_a_renewal_that_fails_is_tried_again(
    sqlite_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    path = str(sqlite_path)
    with (
        alkstore.open(path, busy_timeout_s=0) as store,
        alkstore.open(path) as other,
        store.lock("l", 6) as lock,
    ):
        with other.transaction():  # nobody else can write
            until(lambda: any("was not renewed" in message for message in caplog.messages))
            assert lock.held
        assert is_held_for(lock, 6)


def test_a_lock_that_cannot_be_renewed_is_lost_when_its_time_is_up(sqlite_path: Any) -> None:
    path = str(sqlite_path)
    with (
        alkstore.open(path, busy_timeout_s=0) as store,
        alkstore.open(path) as other,
        pytest.raises(LockLost),
        store.lock("l", 1) as lock,
        other.transaction(),
    ):
        until(lambda: not lock.held)


def test_a_lock_that_cannot_be_released_lapses(
    sqlite_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    path = str(sqlite_path)
    with alkstore.open(path, busy_timeout_s=0) as store, alkstore.open(path) as other:
        with other.transaction() as tx:
            tx.connection.execute("ROLLBACK")
            with store.lock("l", 60):
                tx.connection.execute("BEGIN IMMEDIATE")
        assert [record.levelno for record in caplog.records] == [logging.WARNING]
        assert "was not released and will lapse" in caplog.messages[0]
        assert store.acquire_lock("l", "other", 60) is False
