"""Calls inside the caller's transaction, a store's or the caller's own connection."""

from __future__ import annotations

import inspect
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

import alkstore
from alkstore import (
    AlkstoreError,
    Busy,
    InvalidOption,
    InvalidPayload,
    JobHandle,
    Outbox,
    Queue,
    Store,
)


class Abandon(Exception):
    pass


@pytest.fixture
def queue(store: Store) -> Queue:
    with store.transaction() as tx:
        tx.connection.execute("CREATE TABLE orders (id integer)")
    return store.queue("q")


@pytest.fixture
def connect(engine: str, target: str) -> Callable[[], AbstractContextManager[Any]]:
    """Opens a connection of the caller's own, as the driver makes it by default."""
    if engine == "postgres":
        return lambda: psycopg.connect(target)
    return lambda: closing(sqlite3.connect(target))


def orders(connection: Any) -> list[int]:
    return [row[0] for row in connection.execute("SELECT id FROM orders ORDER BY id").fetchall()]


def test_every_method_takes_tx_by_its_name_alone() -> None:
    methods = [getattr(c, name) for c in (Queue, Outbox, JobHandle, Store) for name in dir(c)]
    kinds = [
        inspect.signature(method).parameters["tx"].kind
        for method in methods
        if inspect.isfunction(method) and not method.__name__.startswith("_")
        if "tx" in inspect.signature(method).parameters
    ]
    assert kinds == [inspect.Parameter.KEYWORD_ONLY] * 20


# -- store.transaction() --------------------------------------------------------------------------


def test_commit_shows_the_job_and_the_business_row_together(
    store: Store, queue: Queue, target: str, connect: Any
) -> None:
    with alkstore.open(target) as second, store.transaction() as tx, connect() as reader:
        tx.connection.execute("INSERT INTO orders VALUES (1)")
        job_id = queue.enqueue({"order": 1}, tx=tx)
        ids = queue.enqueue_batch([1, 2], tx=tx)
        assert queue.get_job(job_id, tx=tx) is not None
        # Before the commit nobody else sees anything.
        elsewhere = second.queue("q")
        assert elsewhere.get_job(job_id) is None
        assert elsewhere.next_due() is None
        assert orders(reader) == []
    handles = queue.claim_batch("w", 9)
    assert [handle.id for handle in handles] == [job_id, *ids]
    with store.transaction() as tx:
        assert orders(tx.connection) == [1]


def test_an_exception_drops_the_job_and_the_business_row_together(
    store: Store, queue: Queue
) -> None:
    with suppress(Abandon), store.transaction() as tx:
        tx.connection.execute("INSERT INTO orders VALUES (1)")
        job_id = queue.enqueue({"order": 1}, tx=tx)
        raise Abandon
    assert queue.get_job(job_id) is None
    assert queue.claim_one("w") is None
    with store.transaction() as tx:
        assert orders(tx.connection) == []


def test_the_caller_s_own_errors_come_out_unchanged(store: Store, queue: Queue) -> None:
    own_errors = (sqlite3.OperationalError, psycopg.errors.UndefinedTable)
    with pytest.raises(own_errors), store.transaction() as tx:
        tx.connection.execute("INSERT INTO missing VALUES (1)")
    assert queue.enqueue(1) > 0


def test_every_call_can_be_part_of_a_transaction(store: Store, queue: Queue) -> None:
    ids = queue.enqueue_batch(range(6))
    with suppress(Abandon), store.transaction() as tx:
        first = queue.claim_one("w", tx=tx)
        assert first is not None
        rest = queue.claim_batch("w", 4, tx=tx)
        assert first.ack(tx=tx)
        assert rest[0].retry("x", tx=tx)
        assert rest[1].fail("x", tx=tx)
        assert rest[2].heartbeat(5, tx=tx)
        assert rest[2].release(tx=tx)
        assert queue.ack_batch([rest[3]], tx=tx) == 1
        assert queue.cancel(ids[5], tx=tx)
        assert queue.sweep_expired(tx=tx) == (0, 0)
        assert queue.next_due(tx=tx) is not None
        states = [job and job.state for job in (queue.get_job(i, tx=tx) for i in ids)]
        assert states == [None, "pending", "dead", "pending", None, None]
        raise Abandon
    jobs = [queue.get_job(job_id) for job_id in ids]
    assert [job and (job.state, job.attempts) for job in jobs] == [("pending", 0)] * 6


def test_a_transaction_that_has_ended_is_refused(store: Store, queue: Queue) -> None:
    with store.transaction() as tx:
        pass
    with pytest.raises(AlkstoreError, match="the transaction has ended"):
        queue.enqueue(1, tx=tx)
    with pytest.raises(AlkstoreError, match="the transaction has ended"):
        _ = tx.connection


@pytest.mark.parametrize("tx", ["tx", 1, object()], ids=["text", "number", "object"])
def test_what_is_no_transaction_is_refused(queue: Queue, tx: Any) -> None:
    with pytest.raises(TypeError, match="tx must be a Transaction or"):
        queue.enqueue(1, tx=tx)


def test_the_other_engine_s_connection_is_refused(queue: Queue, engine: str, pg_url: str) -> None:
    other = sqlite3.connect(":memory:") if engine == "postgres" else psycopg.connect(pg_url)
    with closing(other), pytest.raises(TypeError, match="tx must be a Transaction or"):
        queue.enqueue(1, tx=other)


def test_on_sqlite_a_call_without_tx_inside_a_transaction_is_refused(sqlite_path: Path) -> None:
    # It could neither commit by itself nor be meant to vanish with a rollback.
    with alkstore.open(sqlite_path) as store:
        queue = store.queue("q")
        with store.transaction() as tx:
            queue.enqueue(1, tx=tx)
            with pytest.raises(AlkstoreError, match="pass tx="):
                queue.enqueue(2)
            with pytest.raises(AlkstoreError, match="pass tx="), store.transaction():
                pass
            queue.enqueue(3, tx=tx)
        assert [handle.payload for handle in queue.claim_batch("w", 9)] == [1, 3]


# -- refusals inside a transaction ----------------------------------------------------------------


def test_on_sqlite_a_refusal_undoes_its_own_statement_only(sqlite_path: Path) -> None:
    with alkstore.open(sqlite_path) as store:
        queue = store.queue("q")
        with closing(sqlite3.connect(sqlite_path)) as own:
            own.execute("CREATE TABLE orders (id integer)")
            own.execute("INSERT INTO orders VALUES (1)")
            with pytest.raises(InvalidOption):
                queue.enqueue(1, delay_s=-1, tx=own)
            with pytest.raises(InvalidPayload):
                queue.enqueue_batch([1, alkstore.RawJson("{")], tx=own)
            assert own.in_transaction
            good = queue.enqueue(2, tx=own)
            own.commit()
            assert orders(own) == [1]
        [handle] = queue.claim_batch("w", 9)
        assert handle.id == good


def test_on_postgresql_a_refusal_is_undone_by_a_savepoint(pg_url: str) -> None:
    with alkstore.open(pg_url) as store:
        queue = store.queue("q")
        with psycopg.connect(pg_url) as own:
            with pytest.raises(InvalidOption), own.transaction():
                queue.enqueue(1, delay_s=-1, tx=own)
            good = queue.enqueue(2, tx=own)
        [handle] = queue.claim_batch("w", 9)
        assert handle.id == good
        with psycopg.connect(pg_url) as own:
            with pytest.raises(InvalidPayload):
                queue.enqueue_batch([1, alkstore.RawJson("{")], tx=own)
            with pytest.raises(psycopg.errors.InFailedSqlTransaction):
                queue.enqueue(3, tx=own)
        assert queue.claim_one("w") is None


# -- the caller's own connection ------------------------------------------------------------------


def test_on_the_caller_s_connection_nothing_is_committed_or_begun(
    queue: Queue, connect: Any
) -> None:
    with connect() as own:
        own.execute("INSERT INTO orders VALUES (1)")
        job_id = queue.enqueue(1, tx=own)
        own.rollback()
        assert queue.get_job(job_id, tx=own) is None
        assert orders(own) == []
        own.rollback()
        kept = queue.enqueue(2, tx=own)
        own.execute("INSERT INTO orders VALUES (2)")
        own.commit()
        assert orders(own) == [2]
    [handle] = queue.claim_batch("w", 9)
    assert handle.id == kept


@pytest.mark.parametrize("row_factory", [sqlite3.Row, lambda cursor, row: None])
def test_a_sqlite_connection_may_shape_its_rows_and_text(
    sqlite_path: Path, row_factory: Any
) -> None:
    with alkstore.open(sqlite_path) as store, closing(sqlite3.connect(sqlite_path)) as own:
        own.row_factory = row_factory
        own.text_factory = bytes
        queue = store.queue("q")
        ids = [queue.enqueue("é", tx=own), *queue.enqueue_batch([2], tx=own)]
        assert ids == [1, 2]
        handle = queue.claim_one("w", tx=own)
        assert handle is not None
        assert (handle.queue, handle.payload, handle.worker_id) == ("q", "é", "w")
        job = queue.get_job(1, tx=own)
        assert job is not None
        assert (job.queue, job.state, job.payload) == ("q", "processing", "é")
        assert queue.next_due(tx=own) == job.created_at
        assert queue.sweep_expired(tx=own) == (0, 0)
        assert queue.ack_batch([handle], tx=own) == 1


@pytest.mark.parametrize("cursor", [psycopg.Cursor, psycopg.ClientCursor, psycopg.RawCursor])
def test_a_psycopg_connection_may_shape_its_rows_and_cursors(pg_url: str, cursor: Any) -> None:
    connection = psycopg.connect(pg_url, row_factory=dict_row, cursor_factory=cursor)
    with alkstore.open(pg_url) as store, connection as own:
        queue = store.queue("q")
        assert queue.enqueue("é", tx=own) == 1
        handle = queue.claim_one("w", tx=own)
        assert handle is not None
        assert handle.payload == "é"
        job = queue.get_job(1, tx=own)
        assert job is not None
        assert job.state == "processing"
        assert handle.ack(tx=own)


LEGACY: list[dict[str, Any]] = [{"isolation_level": level} for level in (None, "", "IMMEDIATE")]
PEP_249: list[dict[str, Any]] = [{"autocommit": on} for on in (True, False)]
MODES = [*LEGACY, *(PEP_249 if sys.version_info >= (3, 12) else [])]


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_on_sqlite_a_claim_follows_the_transaction_mode_of_its_connection(
    sqlite_path: Path, mode: dict[str, Any]
) -> None:
    commits_itself = mode in ({"isolation_level": None}, {"autocommit": True})
    with alkstore.open(sqlite_path) as store:
        queue = store.queue("q")
        queue.enqueue(1)
        with closing(sqlite3.connect(sqlite_path, **mode)) as own:
            handle = queue.claim_one("w", tx=own)
            assert handle is not None
            assert own.in_transaction is not commits_itself
        job = queue.get_job(handle.id)  # the connection was closed without a commit
        assert job is not None
        assert job.state == ("processing" if commits_itself else "pending")
        if not commits_itself:
            with closing(sqlite3.connect(sqlite_path, **mode)) as own:
                handle = queue.claim_one("w", tx=own)
                own.commit()
        assert handle is not None
        assert handle.ack()


WRITE_AT_ONCE = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)
connection.execute("INSERT INTO alkstore_enqueue(queue, payload) VALUES ('other', '1')")
"""


def test_on_sqlite_another_process_can_write_as_soon_as_a_claim_is_done(sqlite_path: Path) -> None:
    with alkstore.open(sqlite_path) as store:
        queue = store.queue("q")
        queue.enqueue_batch(range(20))
        write = [sys.executable, "-c", WRITE_AT_ONCE, str(sqlite_path)]
        handles = queue.claim_batch("w", 10)
        subprocess.run(write, check=True)
        with closing(sqlite3.connect(sqlite_path)) as own:
            handles += queue.claim_batch("w", 10, tx=own)
            own.commit()
            subprocess.run(write, check=True)
        assert queue.ack_batch(handles) == 20


def test_on_sqlite_a_transaction_that_read_too_early_is_busy_at_once(sqlite_path: Path) -> None:
    with (
        alkstore.open(sqlite_path) as store,
        closing(sqlite3.connect(sqlite_path, isolation_level=None, timeout=3600)) as own,
    ):
        queue = store.queue("q")
        own.execute("BEGIN")
        assert queue.next_due(tx=own) is None
        first = queue.enqueue(1)
        with pytest.raises(Busy):
            queue.enqueue(2, tx=own)
        assert own.in_transaction
        own.execute("ROLLBACK")
        own.execute("BEGIN IMMEDIATE")
        second = queue.enqueue(3, tx=own)
        own.execute("COMMIT")
        assert [handle.id for handle in queue.claim_batch("w", 9)] == [first, second]


# -- threads and forks ----------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["transaction", "enqueue", "claim"])
def test_on_sqlite_ctrl_c_while_waiting_for_the_lock_leaves_no_lock_behind(
    sqlite_path: Path, call: str
) -> None:
    def wait(store: Store) -> None:
        timer.start()
        if call == "transaction":
            with store.transaction():
                pytest.fail("the block was entered")
        elif call == "enqueue":
            store.queue("q").enqueue(1)
        else:
            store.queue("q").claim_one("w")

    def interrupt() -> None:
        os.kill(os.getpid(), signal.SIGINT)  # is raised when SQLite returns
        time.sleep(0.2)
        other.execute("COMMIT")

    with (
        alkstore.open(sqlite_path) as store,
        closing(
            sqlite3.connect(sqlite_path, timeout=0, isolation_level=None, check_same_thread=False)
        ) as other,
    ):
        other.execute("BEGIN IMMEDIATE")
        timer = threading.Timer(0.2, interrupt)
        with pytest.raises(KeyboardInterrupt) as error:
            wait(store)
        timer.join()
        # The traceback, whose frames may hold what was in use, is still there.
        assert error.tb
        other.execute("BEGIN IMMEDIATE")
        other.execute("COMMIT")
        assert store.queue("p").enqueue(1) > 0


def test_another_thread_s_call_is_no_part_of_the_transaction(store: Store, queue: Queue) -> None:
    other = threading.Thread(target=queue.enqueue, args=(2,))
    with suppress(Abandon), store.transaction() as tx:
        queue.enqueue(1, tx=tx)
        other.start()
        raise Abandon
    other.join()
    assert [handle.payload for handle in queue.claim_batch("w", 9)] == [2]


def test_a_thread_that_waited_too_long_is_busy(sqlite_path: Path) -> None:
    with alkstore.open(sqlite_path, busy_timeout_s=0.05) as store:
        queue = store.queue("q")
        errors: list[Exception] = []

        def wait_for_the_lock() -> None:
            try:
                queue.enqueue(1)
            except Busy as error:
                errors.append(error)

        with store.transaction():
            waiter = threading.Thread(target=wait_for_the_lock)
            waiter.start()
            waiter.join()
        assert len(errors) == 1
        assert queue.enqueue(1) == 1


FORK = """
import os, sys, alkstore
store = alkstore.open(sys.argv[1])
queue = store.queue("q")
with store.transaction() as tx:
    queue.enqueue(1, tx=tx)
    inherited = tx.connection
child = os.fork()
if child == 0:
    with store.transaction() as tx:
        mine = tx.connection
    handle = queue.claim_one("child")
    done = handle is not None and handle.ack()
    store.close()
    sys.exit(0 if done and mine is not inherited else 1)
_, status = os.waitpid(child, 0)
queue.enqueue(2)
print(os.waitstatus_to_exitcode(status), [handle.payload for handle in queue.claim_batch("w", 9)])
store.close()
"""


def test_a_store_is_good_on_both_sides_of_a_fork(target: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORK, target], capture_output=True, text=True, check=True
    )
    assert done.stdout == "0 [2]\n"


NEVER_CLOSED = """
import sys, alkstore
print(alkstore.open(sys.argv[1]).queue("q").enqueue(1))
store = alkstore.open(sys.argv[1])
print(store.queue("q").enqueue(2))
"""


def test_a_store_that_is_never_closed_does_not_hold_up_the_program(target: str) -> None:
    program = [sys.executable, "-c", NEVER_CLOSED, target]
    done = subprocess.run(program, capture_output=True, text=True, check=True, timeout=60)
    assert (done.stdout, done.stderr) == ("1\n2\n", "")
