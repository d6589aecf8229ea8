"""The one write lock of a SQLite file: how long a call waits for it, and that all give it back."""

from __future__ import annotations

import inspect
import itertools
import multiprocessing
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest

import alkstore
from alkstore import Busy, InvalidName, InvalidOption, JobHandle, Queue, Store
from alkstore.locks import LockCalls
from alkstore.scheduler import SchedulerCalls
from tests.python.waiting import until


def connect(path: Path, timeout: float = 0) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None, timeout=timeout)


def rows(connection: sqlite3.Connection, sql: str) -> list[tuple[Any, ...]]:
    return connection.execute(sql).fetchall()


# -- every call -----------------------------------------------------------------------------------


@dataclass
class Scene:
    """A database in which each call has something to do."""

    store: Store
    queue: Queue
    pending: int
    claimed: JobHandle


CALLS: dict[str, Callable[[Scene, Any], object]] = {
    "Queue.enqueue": lambda s, tx: s.queue.enqueue(1, tx=tx),
    "Queue.enqueue_batch": lambda s, tx: s.queue.enqueue_batch([1, 2], tx=tx),
    "Queue.claim_one": lambda s, tx: s.queue.claim_one("w", tx=tx),
    "Queue.claim_batch": lambda s, tx: s.queue.claim_batch("w", 2, tx=tx),
    "Queue.ack_batch": lambda s, tx: s.queue.ack_batch([s.claimed], tx=tx),
    "Queue.cancel": lambda s, tx: s.queue.cancel(s.pending, tx=tx),
    "Queue.get_job": lambda s, tx: s.queue.get_job(s.pending, tx=tx),
    "Queue.sweep_expired": lambda s, tx: s.queue.sweep_expired(tx=tx),
    "Queue.next_due": lambda s, tx: s.queue.next_due(tx=tx),
    "JobHandle.ack": lambda s, tx: s.claimed.ack(tx=tx),
    "JobHandle.retry": lambda s, tx: s.claimed.retry("x", tx=tx),
    "JobHandle.release": lambda s, tx: s.claimed.release(tx=tx),
    "JobHandle.fail": lambda s, tx: s.claimed.fail("x", tx=tx),
    "JobHandle.heartbeat": lambda s, tx: s.claimed.heartbeat(60, tx=tx),
    "SchedulerCalls.schedule": lambda s, tx: s.store.schedule("t", "@every 1h", "q", 1, tx=tx),
    "SchedulerCalls.unschedule": lambda s, tx: s.store.unschedule("due", tx=tx),
}
WITHOUT_TX: dict[str, Callable[[Scene, Any], object]] = {
    "SchedulerCalls.fire_schedules": lambda s, _: s.store.fire_schedules(),
    "SchedulerCalls.lead_schedules": lambda s, _: s.store.lead_schedules("me", 60),
    "SchedulerCalls.resign_schedules": lambda s, _: s.store.resign_schedules("me"),
    "LockCalls.acquire_lock": lambda s, _: s.store.acquire_lock("free", "me", 60),
    "LockCalls.renew_lock": lambda s, _: s.store.renew_lock("mine", "me", 60),
    "LockCalls.release_lock": lambda s, _: s.store.release_lock("mine", "me"),
}
ALL = {**CALLS, **WITHOUT_TX}
READING = ("Queue.get_job", "Queue.next_due")


def test_every_method_is_tried() -> None:
    methods = {
        f"{cls.__name__}.{name}"
        for cls in (Queue, JobHandle, SchedulerCalls, LockCalls)
        for name, member in inspect.getmembers(cls, inspect.isfunction)
        if not name.startswith("_")
    }
    loops = {"Queue.consume", "SchedulerCalls.run_schedules", "LockCalls.lock"}
    assert methods - loops == set(ALL)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "app.db"
    with alkstore.open(path) as store:
        store.schedule("due", "@every 1h", "q", 1)
        with store.transaction() as tx:
            tx.connection.execute("UPDATE __alkstore_schedule SET next_run_at = unixepoch()")
            tx.connection.execute("CREATE TABLE business (id INTEGER PRIMARY KEY)")
        store.queue("q").enqueue_batch(range(4))
        assert store.lead_schedules("me", 60)
        assert store.acquire_lock("mine", "me", 60)
    return path


@pytest.fixture
def path(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(template, tmp_path))


@pytest.fixture
def scene(path: Path) -> Iterator[Scene]:
    with alkstore.open(path, busy_timeout_s=0.1, synchronous="normal") as store:
        queue = store.queue("q")
        claimed = queue.claim_one("w")
        assert claimed is not None
        yield Scene(store, queue, claimed.id + 1, claimed)


# -- waiting for the lock -------------------------------------------------------------------------


def everything(path: Path) -> list[list[tuple[Any, ...]]]:
    with closing(connect(path)) as connection:
        kept = ("alkstore_jobs", "alkstore_schedules", "alkstore_locks", "sqlite_sequence")
        return [rows(connection, f"SELECT * FROM {name}") for name in kept]


@pytest.mark.parametrize("name", [name for name in ALL if name not in READING])
def test_a_call_waits_for_the_lock_and_then_is_busy_and_has_done_nothing(
    scene: Scene, path: Path, name: str
) -> None:
    before = everything(path)
    with closing(connect(path)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        began_at = time.monotonic()
        with pytest.raises(Busy):
            ALL[name](scene, None)
        assert time.monotonic() - began_at >= 0.1
        holder.execute("COMMIT")
    assert everything(path) == before
    assert ALL[name](scene, None)  # trying again is all it takes


@pytest.mark.parametrize("name", READING)
def test_reading_waits_for_nobody(scene: Scene, path: Path, name: str) -> None:
    with closing(connect(path)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        assert CALLS[name](scene, None)


# -- giving the lock back -------------------------------------------------------------------------

WRITE = """
import sqlite3, sys

for path in map(str.strip, sys.stdin):
    connection = sqlite3.connect(path, isolation_level=None, timeout=0)
    try:
        connection.execute("INSERT INTO business DEFAULT VALUES")
        print("written", flush=True)
    except sqlite3.Error as error:
        print(error, flush=True)
    connection.close()
"""


@pytest.fixture(scope="module")
def write() -> Iterator[Callable[[Path], str]]:
    """Writes to a database from another process, without waiting for anybody."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def write(path: Path) -> str:
            print(path, file=process.stdin, flush=True)
            return process.stdout.readline().strip()  # type: ignore[union-attr]

        yield write
        process.stdin.close()


@pytest.mark.parametrize("name", ALL)
def test_no_call_leaves_a_lock_behind(
    scene: Scene, path: Path, name: str, write: Callable[[Path], str]
) -> None:
    assert ALL[name](scene, None)
    assert write(path) == "written"


@pytest.mark.parametrize("name", CALLS)
def test_no_call_leaves_a_lock_behind_on_the_caller_s_connection(
    template: Path, path: Path, name: str, write: Callable[[Path], str]
) -> None:
    # With a rollback journal, where a half-read SELECT would be in the way as well.
    with closing(connect(path)) as own, alkstore.open(":memory:") as store:
        rows(own, "PRAGMA journal_mode = delete")
        queue = store.queue("q")
        claimed = queue.claim_one("w", tx=own)
        assert claimed is not None
        assert write(path) == "written"
        assert CALLS[name](Scene(store, queue, claimed.id + 1, claimed), own)
        assert not own.in_transaction
        assert write(path) == "written"


def test_no_refusal_leaves_a_lock_behind(
    scene: Scene, path: Path, write: Callable[[Path], str]
) -> None:
    refusals: list[tuple[type[Exception], Callable[[], object]]] = [
        (InvalidOption, lambda: scene.queue.enqueue(1, delay_s=-1)),
        (InvalidOption, lambda: scene.claimed.retry(delay_s=-1)),
        (InvalidOption, lambda: scene.claimed.heartbeat(0)),
        (InvalidName, lambda: scene.store.acquire_lock("", "me", 60)),
    ]
    for error, call in refusals:
        with pytest.raises(error):
            call()
        assert write(path) == "written"
    assert scene.claimed.ack()
    assert not scene.claimed.ack()
    assert write(path) == "written"


def test_rows_that_nobody_reads_keep_the_lock(path: Path, write: Callable[[Path], str]) -> None:
    """Why each call of the package reads to the end, and why docs/sqlite.md says to."""
    with closing(connect(path)) as own:
        unread = own.execute(
            "INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1') RETURNING job_id"
        )
        assert write(path) == "database is locked"
        assert len(unread.fetchall()) == 1
        assert write(path) == "written"


# -- a crowd --------------------------------------------------------------------------------------

FORK = multiprocessing.get_context("fork")
PATIENCE_S = 600  # SQLite lets them take turns as it comes


def enqueue_and_drain(path: Path, journal_mode: str, worker: int, together: Barrier) -> None:
    """Add 500 jobs, and work off jobs of anybody's, until all 2,000 are done."""
    with alkstore.open(":memory:") as store, closing(connect(path, timeout=PATIENCE_S)) as own:
        assert rows(own, "PRAGMA journal_mode") == [(journal_mode,)]
        own.execute("PRAGMA synchronous = OFF")
        queue = store.queue("q")
        together.wait()
        numbers = iter(range(worker * 500, worker * 500 + 500))
        while rows(own, "SELECT count(*) FROM done") < [(2000,)]:
            for number in itertools.islice(numbers, 10):
                queue.enqueue(number, tx=own)
            for handle in queue.claim_batch(f"w{worker}", 10, tx=own):
                own.execute("BEGIN IMMEDIATE")
                own.execute("INSERT INTO done VALUES (?, ?)", (handle.payload, handle.attempt))
                assert handle.ack(tx=own)
                own.execute("COMMIT")


@pytest.mark.parametrize("journal_mode", ["wal", "delete"])
def test_four_processes_work_around_a_writer_and_a_reader_that_keep_the_file(
    tmp_path: Path, journal_mode: str
) -> None:
    path = tmp_path / "app.db"
    alkstore.install(path)
    with closing(connect(path, timeout=PATIENCE_S)) as writer, closing(connect(path)) as reader:
        rows(writer, f"PRAGMA journal_mode = {journal_mode}")
        writer.execute("CREATE TABLE done (number INTEGER PRIMARY KEY, attempt INTEGER)")
        together = FORK.Barrier(5, timeout=PATIENCE_S)
        processes = [
            FORK.Process(
                target=enqueue_and_drain, args=(path, journal_mode, n, together), daemon=True
            )
            for n in range(4)
        ]
        for process in processes:
            process.start()
        together.wait()
        until(lambda: rows(writer, "SELECT count(*) FROM done") >= [(100,)])
        writer.execute("BEGIN IMMEDIATE")
        [done] = rows(writer, "SELECT count(*) FROM done")
        cursor = reader.execute("SELECT * FROM done")
        cursor.fetchone()
        time.sleep(3)
        assert rows(writer, "SELECT count(*) FROM done") == [done]
        if journal_mode == "delete":
            cursor.close()  # before which nobody could commit
        writer.execute("COMMIT")
        for process in processes:
            process.join(PATIENCE_S)
        assert [process.exitcode for process in processes] == [0] * 4  # and nobody was Busy
        cursor.close()
        assert rows(reader, "SELECT * FROM done") == [(number, 1) for number in range(2000)]
        assert rows(reader, "SELECT * FROM alkstore_jobs") == []
        assert rows(reader, "PRAGMA integrity_check") == [("ok",)]
