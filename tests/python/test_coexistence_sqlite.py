"""In the application's own database, on the application's own connections, on SQLite."""

from __future__ import annotations

import sqlite3
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

import alkstore
from alkstore import Queue, Store
from alkstore._sql import installer
from tests.python.coexisting import ENQUEUE, Abandon, connect, queued, rows, run

# An application that had the good names first, and enqueues by a trigger of its own.
APPLICATION = """
CREATE TABLE job (id INTEGER PRIMARY KEY, title TEXT NOT NULL);
CREATE TABLE queue_stats (id INTEGER PRIMARY KEY, job_id INTEGER REFERENCES job ON DELETE CASCADE);
CREATE VIEW jobs AS SELECT id AS job_id, title AS queue FROM job;
CREATE TABLE claim (id INTEGER PRIMARY KEY);
CREATE VIEW locks AS SELECT id AS name FROM claim;
CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE orders (
  id INTEGER PRIMARY KEY,
  customer_id INTEGER NOT NULL REFERENCES customer DEFERRABLE INITIALLY DEFERRED,
  note TEXT
);
CREATE TRIGGER orders_mail AFTER INSERT ON orders
BEGIN
  INSERT INTO alkstore_enqueue(queue, payload) VALUES ('mail', coalesce(NEW.note, NEW.id));
  INSERT INTO alkstore_enqueue(queue, payload) VALUES ('report', NEW.id);
END;
CREATE TRIGGER orders_no_mail AFTER DELETE ON orders
BEGIN
  INSERT INTO alkstore_cancel(queue, job_id)
  SELECT queue, job_id FROM alkstore_jobs WHERE queue = 'mail' AND payload = CAST(OLD.id AS TEXT);
END;
INSERT INTO job VALUES (1, 'mine');
INSERT INTO queue_stats VALUES (1, 1);
INSERT INTO customer VALUES (1, 'Ada');
"""


@pytest.fixture
def queue(business: Path) -> Iterator[Queue]:
    with alkstore.open(business) as store:
        yield store.queue("q")


# -- an application's own schema ------------------------------------------------------------------


@pytest.fixture(params=["application first", "alkstore first"])
def application(request: pytest.FixtureRequest, sqlite_path: Path) -> Iterator[sqlite3.Connection]:
    """A connection with all the checks on that SQLite has."""
    scripts = [APPLICATION, installer("sqlite")]
    with closing(connect(sqlite_path)) as connection:
        for script in scripts if request.param == "application first" else reversed(scripts):
            connection.executescript(script)
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA recursive_triggers = ON")
        if sqlite3.sqlite_version_info >= (3, 41):  # before, it kept triggers from json_valid()
            connection.execute("PRAGMA trusted_schema = OFF")
        yield connection


def test_names_of_the_application_are_left_alone(
    application: sqlite3.Connection, sqlite_path: Path
) -> None:
    with closing(sqlite3.connect(":memory:")) as alone:
        alone.executescript(APPLICATION)
        names = {name for (name,) in rows(alone, "SELECT name FROM sqlite_schema")}
        schema = "SELECT name, sql FROM sqlite_schema ORDER BY name"
        kept = [row for row in rows(application, schema) if row[0] in names]
        assert kept == rows(alone, schema)
    with alkstore.open(sqlite_path) as store:
        queue = store.queue("q")
        queue.enqueue(1)
        handle = queue.claim_one("w", tx=application)
        assert handle is not None
        assert handle.fail("x", tx=application)
        assert queue.sweep_expired(tx=application) == (0, 0)
    assert rows(application, "SELECT * FROM jobs") == [(1, "mine")]
    assert rows(application, "SELECT * FROM queue_stats") == [(1, 1)]
    assert rows(application, "SELECT * FROM locks") == []
    stats = "SELECT queue, ready, dead FROM alkstore_queue_stats"
    assert rows(application, stats) == [("q", 0, 1)]


def test_a_trigger_of_the_application_enqueues_and_cancels(
    application: sqlite3.Connection, sqlite_path: Path
) -> None:
    order = application.execute("INSERT INTO orders(customer_id) VALUES (1)")
    assert (order.lastrowid, order.rowcount) == (1, 1)  # the order's, not the job's
    application.execute("INSERT INTO orders(customer_id) VALUES (1), (1)")
    assert queued(sqlite_path, "mail") == queued(sqlite_path, "report") == ["1", "2", "3"]
    application.execute("DELETE FROM orders WHERE id = 2")
    assert queued(sqlite_path, "mail") == ["1", "3"]
    assert rows(application, "PRAGMA foreign_key_check") == []


def test_a_foreign_key_that_fails_at_commit_takes_the_jobs_with_it(
    application: sqlite3.Connection, sqlite_path: Path
) -> None:
    application.execute("BEGIN")
    application.execute("INSERT INTO orders(customer_id) VALUES (99)")
    assert rows(application, "SELECT count(*) FROM alkstore_jobs") == [(2,)]
    with pytest.raises(sqlite3.IntegrityError):
        application.execute("COMMIT")
    application.execute("ROLLBACK")
    assert queued(sqlite_path, "mail") == queued(sqlite_path, "report") == []


@pytest.mark.parametrize("conflict", ["", "OR ABORT", "OR FAIL", "OR IGNORE", "OR REPLACE"])
def test_a_refusal_undoes_the_statement_that_fired_the_trigger(
    application: sqlite3.Connection, conflict: str
) -> None:
    application.execute("BEGIN")
    with pytest.raises(sqlite3.IntegrityError, match=r"^AK002 "):
        application.execute(
            f"INSERT {conflict} INTO orders(customer_id, note) VALUES (1, '1'), (1, 'not JSON')"
        )
    application.execute("COMMIT")
    assert rows(application, "SELECT * FROM orders") == []
    assert rows(application, "SELECT * FROM alkstore_jobs") == []


def test_the_application_may_still_change_its_schema(application: sqlite3.Connection) -> None:
    # Each of these reads every trigger and view of the database again.
    for change in (
        "ALTER TABLE orders RENAME TO purchase",
        "ALTER TABLE purchase RENAME COLUMN note TO remark",
        "ALTER TABLE job ADD COLUMN done INTEGER",
        "ALTER TABLE job DROP COLUMN done",
        "DROP VIEW jobs",
        "ALTER TABLE job RENAME TO jobs",
        "VACUUM",
        "REINDEX",
        "ANALYZE",
    ):
        application.execute(change)
    application.execute("INSERT INTO purchase(customer_id) VALUES (1)")
    assert rows(application, "SELECT queue, payload FROM alkstore_jobs ORDER BY job_id") == [
        ("mail", "1"),
        ("report", "1"),
    ]


# -- the modes of a connection --------------------------------------------------------------------

LEVELS = (None, "", "DEFERRED", "IMMEDIATE", "EXCLUSIVE")
MODES: list[dict[str, Any]] = [{"isolation_level": level} for level in LEVELS]
if sys.version_info >= (3, 12):
    MODES += [{"autocommit": True}, {"autocommit": False}]


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_calls_follow_the_mode_of_the_connection(
    business: Path, queue: Queue, mode: dict[str, Any]
) -> None:
    # Nothing is begun or committed but what the connection begins and commits by itself.
    commits_itself = mode in ({"isolation_level": None}, {"autocommit": True})
    queue.enqueue(0)
    with closing(sqlite3.connect(business, **mode)) as own:
        own.execute("INSERT INTO business VALUES (1)")
        queue.enqueue(1, tx=own)
        own.execute(ENQUEUE.format("2")).fetchall()
        handle = queue.claim_one("w", tx=own)
        assert handle is not None
        assert handle.ack(tx=own)
        assert own.in_transaction is not commits_itself
        own.rollback()
        assert queued(business) == (["1", "2"] if commits_itself else ["0"])
        with own:
            own.execute("INSERT INTO business VALUES (3)")
            queue.enqueue(3, tx=own)
        assert queued(business)[-1] == "3"
        assert rows(own, "SELECT max(id) FROM business") == [(3,)]


# -- threads --------------------------------------------------------------------------------------


def test_two_threads_share_a_store(business: Path) -> None:
    """Transactions and single calls of both, in one another's way all the time."""
    together = threading.Barrier(2, timeout=60)

    def work(store: Store, worker: int) -> int:
        queue = store.queue(f"q{worker}")
        acked = 0
        together.wait()
        for number in range(worker, 100, 2):
            with suppress(Abandon), store.transaction() as tx:
                tx.connection.execute("INSERT INTO business VALUES (?)", (number,))
                queue.enqueue(number, tx=tx)
                if number % 10 == worker:
                    raise Abandon
            if handle := queue.claim_one("w"):
                acked += handle.ack()
        return acked

    with alkstore.open(business) as store, ThreadPoolExecutor(2) as pool:
        done = [pool.submit(work, store, worker) for worker in (0, 1)]
        assert [future.result() for future in done] == [40, 40]
    with closing(connect(business)) as other:
        kept = [number for number in range(100) if number % 10 > 1]
        assert rows(other, "SELECT id FROM business ORDER BY id") == [(n,) for n in kept]


# -- forks ----------------------------------------------------------------------------------------

FORK = """
import os, sys, alkstore

store = alkstore.open(sys.argv[1])
queue = store.queue("q")
queue.enqueue("before")
to_parent, to_child = os.pipe(), os.pipe()
if os.fork() == 0:
    queue.enqueue("child")
    os.write(to_parent[1], b".")
    os.read(to_child[0], 1)
    queue.enqueue("child alone")
    os._exit(0)  # as if killed: nothing is closed or copied into the database file
os.read(to_parent[0], 1)
queue.enqueue("parent")
store.close()
os.write(to_child[1], b".")
_, status = os.wait()
with alkstore.open(sys.argv[1]) as store:
    print(status, [job.payload for job in store.queue("q").claim_batch("w", 9)])
"""


def test_a_fork_keeps_what_either_side_commits_whoever_closes_first(sqlite_path: Path) -> None:
    # The last process to close a file removes its WAL. With an inherited connection the child
    # would not count, and go on writing into the removed one.
    assert run(FORK, sqlite_path) == "0 ['before', 'child', 'parent', 'child alone']\n"


FORK_IN_TRANSACTION = """
import os, sys, threading, warnings, alkstore

warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of forks beside threads
store = alkstore.open(sys.argv[1], busy_timeout_s=0.05)
queue = store.queue("q")

def fork():
    if os.fork() == 0:
        for use in (lambda: queue.enqueue("child"), lambda: alkstore.open(sys.argv[1])):
            try:
                use()
            except alkstore.Unavailable as error:
                print(str(error).removeprefix(sys.argv[1]), flush=True)
        os._exit(0)
    os.wait()

with store.transaction() as tx:
    queue.enqueue("parent", tx=tx)
    thread = threading.Thread(target=fork)
    thread.start()
    thread.join()
    fork()
    queue.enqueue("parent again", tx=tx)
print([job.payload for job in queue.claim_batch("w", 9)])
"""


def test_a_child_forked_within_a_transaction_is_refused_the_file(sqlite_path: Path) -> None:
    refusal = (
        " cannot be opened in this process: it was forked while a transaction of its parent was "
        "open, and has inherited the connection\n"
    )
    told = run(FORK_IN_TRANSACTION, sqlite_path)
    assert told == refusal * 4 + "['parent', 'parent again']\n"
