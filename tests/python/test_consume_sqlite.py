"""Waiting on SQLite: the watcher of data_version, and that it wakes nobody for nothing."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

import alkstore
from alkstore import AlkstoreError, JobHandle, Store, StoreClosed, _sqlite_wakes
from alkstore._bell import Bell
from alkstore._complaints import Complaints
from alkstore._sqlite_wakes import SqliteWakes
from alkstore.sqlite import SqliteSession
from tests.python.consuming import Consumer, Seen, assert_no_flood, until_idle, wakes_threads
from tests.python.waiting import until


@pytest.fixture
def store(sqlite_path: Path) -> Iterator[Store]:
    with alkstore.open(sqlite_path) as store:
        yield store


class Application:
    """Commits that have nothing to do with any queue, and who else commits."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA wal_autocheckpoint = 0")
        self._connection.execute("CREATE TABLE counter (n)")
        self._connection.execute("INSERT INTO counter VALUES (0)")
        self._third = sqlite3.connect(path, isolation_level=None)
        self._wal = path.with_name(path.name + "-wal")

    def commit(self) -> None:
        self._connection.execute("UPDATE counter SET n = n + 1")

    def pages(self) -> int:
        """How many pages of the WAL anybody has written."""
        return (self._wal.stat().st_size - 32) // (4096 + 24)

    def data_version(self) -> int:
        [(version,)] = self._third.execute("PRAGMA data_version")
        return int(version)

    def close(self) -> None:
        self._connection.close()
        self._third.close()


@pytest.fixture
def application(sqlite_path: Path, store: Store) -> Iterator[Application]:
    with closing(Application(sqlite_path)) as application:
        yield application


class Looks:
    """Counts what the watcher does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.versions = self.questions = 0
        data_version, next_due_s = SqliteSession.data_version, SqliteSession.next_due_s

        def counted_version(session: SqliteSession) -> tuple[int, int]:
            self.versions += 1
            return data_version(session)

        def counted_question(session: SqliteSession, queue: str) -> float | None:
            self.questions += threading.current_thread().name == "wakes"
            return next_due_s(session, queue)

        monkeypatch.setattr(SqliteSession, "data_version", counted_version)
        monkeypatch.setattr(SqliteSession, "next_due_s", counted_question)

    def pass_by(self) -> None:
        """Wait until the watcher has seen everything committed up to now."""
        versions = self.versions
        until(lambda: self.versions >= versions + 2)


# -- no herd --------------------------------------------------------------------------------------


def test_unrelated_commits_make_no_consumer_look(
    store: Store, application: Application, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = Looks(monkeypatch)
    store.queue("q").enqueue("delayed", delay_s=1000)
    store.queue("other").enqueue("of another queue")
    with ExitStack() as stack:
        for number in range(16):
            stack.enter_context(Consumer(store.queue("q"), f"w{number}"))
        until_idle(seen, "", 16)
        looks.pass_by()
        seen.clear()
        questions, pages = looks.questions, application.pages()
        for _ in range(50):
            application.commit()
            looks.pass_by()
        assert application.pages() == pages + 50
        assert looks.questions - questions == 50  # read-only, whoever's 16 wait
        assert (seen.looks, seen.claims) == ([], [])


def test_idle_consumers_write_nothing(
    store: Store, application: Application, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = Looks(monkeypatch)
    with ExitStack() as stack:
        for number in range(4):
            stack.enter_context(Consumer(store.queue("q"), f"w{number}", poll_s=0.05))
        until_idle(seen, "", 4)
        version, pages = application.data_version(), application.pages()
        seen.clear()
        until(lambda: len(seen.looks) >= 20)  # by polls
        looks.pass_by()
        assert seen.claims == []
        assert (application.data_version(), application.pages()) == (version, pages)


WAITS = """
import sys, alkstore
class Told(alkstore.StopToken):
    def is_set(self):
        print("looks", flush=True)
        return super().is_set()
with alkstore.open(sys.argv[1]) as store:
    for job in store.queue("q").consume("w", stop=Told(), poll_s=600):
        print(job.payload, flush=True)
        job.ack()
        break
"""


def test_unrelated_commits_wake_no_other_process_into_a_write(
    sqlite_path: Path, store: Store, application: Application
) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", WAITS, sqlite_path], stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "looks\n"  # and claims
        assert process.stdout.readline() == "looks\n"  # and waits
    pages = application.pages()
    for _ in range(300):
        application.commit()
    assert application.pages() == pages + 300
    # Nor had anybody a wake to look for: what comes next is the job.
    for number in range(3):
        store.queue("q").enqueue(number)
    told = [process.communicate(timeout=60)[0].splitlines() for process in processes]
    payloads = sorted(line for lines in told for line in lines if line != "looks")
    assert payloads == ["0", "1", "2"]
    assert [process.returncode for process in processes] == [0, 0, 0]


def test_a_job_is_asked_about_once_and_wakes_one_however_long_its_claim_takes(
    store: Store, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = Looks(monkeypatch)
    claim, begun, go_on = SqliteSession.claim, [], threading.Event()

    def long_claim(session: SqliteSession, tx: Any, queue: str, worker_id: str, n: int) -> Any:
        begun.append(worker_id)
        assert go_on.wait(60)
        return claim(session, tx, queue, worker_id, n)

    monkeypatch.setattr(SqliteSession, "claim", long_claim)
    with ExitStack() as stack:
        for number in range(4):
            stack.enter_context(Consumer(store.queue("q"), f"w{number}"))
        until_idle(seen, "", 4)
        looks.pass_by()
        seen.clear()
        questions = looks.questions
        store.queue("q").enqueue(1)
        until(lambda: begun)
        for _ in range(5):
            looks.pass_by()
        assert (len(begun), looks.questions - questions) == (1, 1)
        go_on.set()
        until(lambda: len(seen.looks) >= 2)
        until_idle(seen, "", 4)
        assert sum(found for _, found in seen.looks) == 1


# -- the watcher ----------------------------------------------------------------------------------


class Clock:
    """In place of the watcher's time: its pauses take none, and are written down."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        self.pauses: list[float] = []
        self.after_pause: Callable[[], object] = lambda: None
        monkeypatch.setattr(_sqlite_wakes, "time", self)

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds
        self.after_pause()


class Database:
    """In place of a session."""

    def __init__(self) -> None:
        self.version = (1, 1)
        self.due_s: float | None = None
        self.questions = 0

    def data_version(self) -> tuple[int, int]:
        return self.version

    def next_due_s(self, queue: str) -> float | None:
        self.questions += 1
        return self.due_s


class Watched:
    """A watcher of a database that is none, run in this thread."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.database, self.clock, self.bell = Database(), Clock(monkeypatch), Bell()

        @contextmanager
        def session() -> Iterator[Any]:
            yield self.database

        self.wakes = SqliteWakes(session, Complaints())

    def run(self, pauses: int, after_pause: Callable[[int], object] = lambda number: None) -> None:
        with monkeypatched_thread(self.wakes), self.wakes.subscribe("q", self.bell) as subscription:
            self.subscription = subscription
            subscription.look()

            def step() -> None:
                after_pause(len(self.clock.pauses))
                if len(self.clock.pauses) == pauses:
                    self.wakes._subscriptions.clear()

            self.clock.after_pause = step
            self.wakes._serve()


@contextmanager
def monkeypatched_thread(wakes: SqliteWakes) -> Iterator[None]:
    """Let it have no thread of its own."""
    wakes._thread = threading.current_thread()
    yield
    wakes._thread = None


def test_the_watcher_slows_down_the_longer_nothing_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch)
    watched.database.due_s = 0
    watched.run(7000)
    pauses = watched.clock.pauses
    assert pauses[0] == 0.0005
    assert pauses == sorted(pauses)
    assert pauses[-1] == 0.025
    began, at = 0.0, {}
    for pause in pauses:
        at[round(began, 1)] = pause
        began += pause
    assert (at[1.0], at[5.0], at[10.0]) == pytest.approx((0.001, 0.005, 0.01), rel=0.05)
    assert watched.database.questions == 1


def test_before_the_first_job_the_watcher_is_as_slow_as_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watched = Watched(monkeypatch)
    watched.run(10)
    assert watched.clock.pauses == [0.025] * 10
    assert watched.database.questions == 1


def test_unrelated_commits_do_not_make_the_watcher_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch)

    def commit(number: int) -> None:
        watched.database.version = (1, number + 1)

    watched.run(100, commit)
    assert watched.clock.pauses == [0.025] * 100
    assert watched.database.questions == 100
    assert not watched.subscription.woken


def test_a_job_makes_the_watcher_fast_again(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch)

    def commit(number: int) -> None:
        if number == 10:
            watched.database.version, watched.database.due_s = (1, 2), 0

    watched.run(11, commit)
    assert watched.clock.pauses == [0.025] * 10 + [0.0005]
    assert watched.bell.wait(0)


def test_the_watcher_wakes_when_a_job_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch)
    watched.database.due_s = 3.0
    due_at = watched.clock.now + 3
    woken_at: list[float] = []

    def pass_time(number: int) -> None:
        watched.database.due_s = max(0.0, due_at - watched.clock.now)
        if watched.subscription.woken:
            woken_at.append(watched.clock.now)

    watched.run(200, pass_time)
    assert due_at <= woken_at[0] <= due_at + 0.03
    assert watched.database.questions == 2


def test_a_watcher_of_long_idleness_costs_little(store: Store, seen: Seen) -> None:
    with Consumer(store.queue("q")), Consumer(store.queue("p")):
        until_idle(seen, "", 2)

        def used() -> float:
            began, cpu = time.monotonic(), time.process_time()
            threading.Event().wait(1)
            return (time.process_time() - cpu) / (time.monotonic() - began)

        # It may cost more where others crowd it out of the caches.
        assert any(used() <= 0.02 for _ in range(20))


def test_a_watcher_that_fails_says_so_and_comes_back(
    store: Store,
    seen: Seen,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    data_version = SqliteSession.data_version

    def fail(session: SqliteSession) -> tuple[int, int]:
        raise sqlite3.OperationalError("disk I/O error")

    with Consumer(store.queue("q"), poll_s=0.1) as consumer:
        until_idle(seen, "")
        monkeypatch.setattr(SqliteSession, "data_version", fail)
        until(lambda: "wakes: disk I/O error; polling until they are back" in caplog.messages)
        store.queue("q").enqueue("polled")
        consumer.expect("polled")
        monkeypatch.setattr(SqliteSession, "data_version", data_version)
        looks = Looks(monkeypatch)
        until(lambda: looks.versions)


# -- what else SQLite has -------------------------------------------------------------------------


def test_a_database_in_memory(seen: Seen) -> None:
    with alkstore.open(":memory:") as store, ExitStack() as stack:
        queue = store.queue("q")
        consumers = [
            stack.enter_context(Consumer(queue, f"w{number}", ends_with=StoreClosed))
            for number in range(2)
        ]
        for number in range(20):
            until_idle(seen, "", 2)
            queue.enqueue(number)
            until(lambda number=number: sum(len(c.jobs) for c in consumers) == number + 1)
        until_idle(seen, "", 2)
        queue.enqueue("delayed", delay_s=1)
        until(lambda: sum(len(c.jobs) for c in consumers) == 21)
        until_idle(seen, "", 2)
        store.close()
    until(lambda: wakes_threads() == [])


def test_a_commit_of_any_client_wakes_it(store: Store, sqlite_path: Path, seen: Seen) -> None:
    with (
        closing(sqlite3.connect(sqlite_path)) as connection,
        Consumer(store.queue("q")) as consumer,
    ):
        until_idle(seen, "")
        connection.execute("INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1')")
        connection.commit()
        consumer.expect(1)


def test_a_locked_file_is_waited_for(
    sqlite_path: Path, seen: Seen, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        alkstore.open(sqlite_path, busy_timeout_s=0.05) as store,
        closing(sqlite3.connect(sqlite_path, isolation_level=None)) as writer,
    ):
        store.queue("q").enqueue(1)
        writer.execute("BEGIN IMMEDIATE")
        with Consumer(store.queue("q")) as consumer:
            until(lambda: len(seen.claims) >= 4)
            assert caplog.messages[0] == "queue 'q': database is locked; trying again in 0.1 s"
            assert_no_flood(caplog)
            writer.execute("COMMIT")
            consumer.expect(1)


def test_within_a_transaction_of_the_store_it_is_an_error(store: Store) -> None:
    with store.transaction(), pytest.raises(AlkstoreError, match="pass tx="):
        next(store.queue("q").consume("w"))


def test_an_ack_with_the_work_in_a_transaction(
    store: Store, application: Application, seen: Seen
) -> None:
    def work(job: JobHandle) -> None:
        with store.transaction() as tx:
            tx.connection.execute("UPDATE counter SET n = n + 1")
            assert job.ack(tx=tx)

    with Consumer(store.queue("q"), work=work) as consumer:
        until_idle(seen, "")
        store.queue("q").enqueue_batch([1, 2])
        consumer.expect(1, 2)
