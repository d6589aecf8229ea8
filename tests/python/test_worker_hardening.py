"""Worker and consume under what is rare: errors that cannot be told, disks that are full."""

from __future__ import annotations

import logging
import signal
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

import alkstore
from alkstore import Fail, JobHandle, Retry, StopToken, Store, Unavailable, Worker, sqlite
from alkstore._bell import Bell
from alkstore._claimer import Claimed
from alkstore._postgres_calls import PostgresCalls
from alkstore._sqlite_calls import SqliteCalls
from alkstore._sqlite_connection import switch_to_wal
from alkstore._work import Run
from tests.python.consuming import Consumer, Seen, until_idle
from tests.python.waiting import until
from tests.python.working import is_gone, record, running, settled, until_prolonged, warnings

# -- what a handler raises or returns -------------------------------------------------------------


class NotesRaise(Exception):
    __notes__ = property(lambda self: 1 / 0)


class FailWhoseTextExits(Fail):
    def __str__(self) -> str:
        raise SystemExit


class RetryWhoseTextInterrupts(Retry):
    def __str__(self) -> str:
        raise KeyboardInterrupt


UNTELLABLE: list[tuple[BaseException, str]] = [
    (NotesRaise(), "NotesRaise"),
    (SyntaxError("bad", ("f", 1, "no offset", "text")), "SyntaxError"),  # type: ignore[arg-type]
    (FailWhoseTextExits(), "FailWhoseTextExits"),
    (RetryWhoseTextInterrupts(delay_s=1000), "RetryWhoseTextInterrupts"),
]


def test_an_error_that_cannot_be_told_costs_no_thread(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    queue = store.queue("q", backoff_base_s=1000)

    def handle(job: JobHandle) -> None:
        raise UNTELLABLE[job.payload][0]

    with caplog.at_level(logging.INFO, "alkstore"):
        jobs = queue.enqueue_batch(range(len(UNTELLABLE)))
        with running(store, {"q": handle}):
            until(lambda: all(settled(queue, job_id)() for job_id in jobs))
    told = [(job := record(queue, job_id)).last_error or job.retry_error for job_id in jobs]
    for text, (_, name) in zip(told, UNTELLABLE, strict=True):
        assert name in (text or "")  # newer Pythons tell more than the name
    states = [record(queue, job_id).state for job_id in jobs]
    assert states == ["pending", "pending", "dead", "pending"]


class Unbound:
    """As a proxy for something that is not there."""

    __class__ = property(lambda self: 1 / 0)


def test_a_handler_may_return_what_cannot_be_asked_for_its_class(store: Store) -> None:
    queue = store.queue("q")
    job_id = queue.enqueue(1)
    with running(store, {"q": lambda job: Unbound()}):
        until(settled(queue, job_id))
    assert queue.get_job(job_id) is None


# -- databases that cannot be written for a while -------------------------------------------------


def test_a_connection_that_was_made_while_the_file_was_read_only_is_made_anew(
    sqlite_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    read_only = True

    def switch(connection: sqlite3.Connection, busy_timeout_s: float) -> None:
        switch_to_wal(connection, busy_timeout_s)
        if read_only:  # root may write to any file: so SQLite refuses, with the same code
            connection.execute("PRAGMA query_only = ON")

    begun: Counter[int] = Counter()

    def handle(job: JobHandle) -> None:
        nonlocal read_only
        begun[job.id] += 1
        until(lambda: any("heartbeats of 'q'" in text for text in warnings(caplog)))
        read_only = False
        until_prolonged(queue, job.id)

    with alkstore.open(sqlite_path) as store:
        queue = store.queue("q", visibility_timeout_s=10)
        monkeypatch.setattr(sqlite, "switch_to_wal", switch)
        job_id = queue.enqueue(1)
        with running(store, {"q": handle}):
            until(lambda: is_gone(queue, job_id))
    assert begun == {job_id: 1}


NO_SPACE = """
    CREATE FUNCTION public.no_space() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$;
    CREATE TRIGGER no_space BEFORE DELETE ON alkstore._job
    FOR EACH ROW EXECUTE FUNCTION public.no_space()"""


def test_a_full_disk_costs_no_claim_that_heartbeats_can_hold(
    pg_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    begun: Counter[int] = Counter()

    def handle(job: JobHandle) -> None:
        begun[job.id] += 1

    with (
        alkstore.open(pg_url) as store,
        psycopg.connect(pg_url, autocommit=True) as connection,
    ):
        connection.execute(NO_SPACE)
        queue = store.queue("q", visibility_timeout_s=10)
        job_id = queue.enqueue(1)
        with running(store, {"q": handle}):
            until(lambda: any("ack of 'q'" in text for text in warnings(caplog)))
            until_prolonged(queue, job_id)
            connection.execute("DROP TRIGGER no_space ON alkstore._job")
            until(lambda: is_gone(queue, job_id))
    assert begun == {job_id: 1}
    assert {text for text in warnings(caplog) if "heartbeats" not in text} == {
        "ack of 'q': PostgreSQL cannot be used: could not extend file; will be sent again"
    }


def test_a_server_that_is_read_only_is_unavailable_and_runners_get_over_it(
    pg_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        alkstore.open(pg_url) as store,
        psycopg.connect(pg_url, autocommit=True) as connection,
    ):
        store.schedule("s", "@every 1s", "q", 1)
        database = SQL("ALTER DATABASE {} ").format(Identifier(connection.info.dbname))
        connection.execute(database + SQL("SET default_transaction_read_only = on"))
        refused = "PostgreSQL cannot be used: cannot execute INSERT in a read-only transaction"
        with alkstore.open(pg_url) as later, pytest.raises(Unavailable, match=f"^{refused}$"):
            later.queue("q").enqueue(1)
        stop = StopToken()
        runner = threading.Thread(target=store.run_schedules, args=(stop,))
        runner.start()
        until(lambda: f"schedules: {refused}; trying again in 0.1 s" in warnings(caplog))
        connection.execute(database + SQL("RESET default_transaction_read_only"))
        until(lambda: store.queue("q").next_due())
        stop.set()
        runner.join(30)
        assert not runner.is_alive()


@pytest.fixture
def claims_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a worker does whose handlers have been quick so far, on a machine that never pauses."""
    monkeypatch.setattr(Run, "_ahead", lambda run: 100)


@contextmanager
def locked(target: str) -> Iterator[None]:
    """Nobody else can change a job."""
    if target.startswith("postgresql:"):
        with psycopg.connect(target) as connection:
            connection.execute("LOCK TABLE alkstore._job")
            yield
    else:
        with closing(sqlite3.connect(target, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            yield


@pytest.mark.usefixtures("claims_ahead")
@pytest.mark.parametrize("stops", [False, True])
def test_what_cannot_be_released_at_once_is_released_later(
    target: str, engine: str, monkeypatch: pytest.MonkeyPatch, stops: bool
) -> None:
    tried: list[str] = []
    calls: Any = {"sqlite": SqliteCalls, "postgres": PostgresCalls}[engine]
    settle = calls.settle

    def watched_settle(session: Any, call: str, *more: Any) -> Any:
        try:
            return settle(session, call, *more)
        finally:
            tried.append(call)

    def handle(job: JobHandle) -> None:
        if job.payload == "long":  # all others are claimed already
            with locked(target):
                if stops:
                    worker.stop.set()
                until(lambda: "release" in tried)
            until(lambda: all(record(queue, job_id).released for job_id in behind))

    monkeypatch.setattr(calls, "settle", watched_settle)
    with alkstore.open(target, busy_timeout_s=0.1) as store, alkstore.open(target) as observer:
        queue = observer.queue("q")
        long, *behind = queue.enqueue_batch(["long", *range(20)])
        with running(store, {"q": handle}) as worker:
            until(lambda: is_gone(queue, long))


# -- what is claimed ahead of handlers that turn out to be slow -----------------------------------


@pytest.mark.usefixtures("claims_ahead")
def test_what_has_waited_for_a_second_is_given_back_also_behind_jobs_of_less(store: Store) -> None:
    queue = store.queue("q")
    slow = queue.enqueue_batch(range(12))
    with running(store, {"q": lambda job: time.sleep(0.4)}):
        until(lambda: any((job := queue.get_job(id)) and job.released for id in slow))
        until(lambda: is_gone(queue, *slow))


def test_what_was_not_begun_does_not_pass_for_quick(store: Store) -> None:
    """Else more is claimed ahead the more has lapsed, until it is dead without a single run."""
    queue = store.queue("q")
    queue.enqueue(1)
    job = queue.claim_one("w")
    assert job is not None
    run = Run(Worker(store, {"q": print}))
    lapsed = Claimed(job, time.monotonic() - 300)
    run._in_hand.add(lapsed)
    run._unstarted.put(lapsed)
    run._unstarted.put(None)
    run._handle()
    assert run._in_hand == set()
    assert run._average_s is None


# -- wakes and stops ------------------------------------------------------------------------------


def test_rings_that_nobody_waits_for_do_not_pile_up() -> None:
    """As those of wakes for a consumer who always finds a job."""
    bell = Bell()
    for _ in range(1000):
        bell.ring()
    assert bell._rings.qsize() == 1
    assert bell.wait(0)
    assert not bell.wait(0)


def test_after_a_thread_that_could_not_be_started_there_are_wakes(
    store: Store, target: str, monkeypatch: pytest.MonkeyPatch, seen: Seen
) -> None:
    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    queue = store.queue("q")
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            next(queue.consume("w"))
    with Consumer(queue) as consumer:
        until_idle(seen, target)
        queue.enqueue("told by a wake")
        consumer.expect("told by a wake")


def test_a_signal_may_come_before_its_handler_is_known_to_be_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install = signal.signal

    def install_and_raise(number: int, handler: Any) -> Any:
        before = install(number, handler)
        if callable(handler):
            signal.raise_signal(number)
        return before

    monkeypatch.setattr(signal, "signal", install_and_raise)
    assert StopToken.on_signals(signal.SIGALRM).is_set()
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
