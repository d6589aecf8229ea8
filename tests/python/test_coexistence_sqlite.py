"""In the application's own database, on the application's own connections, on SQLite."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import apsw
import django
import pytest
import sqlalchemy
import sqlite_utils
from django.conf import settings
from django.db import connections, transaction
from sqlalchemy.orm import Session

import alkstore
from alkstore import Queue, Store
from alkstore._sql import installer

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

ENQUEUE = "INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', {}) RETURNING job_id"


class Abandon(Exception):
    pass


def connect(path: Path, **options: Any) -> sqlite3.Connection:
    return sqlite3.connect(path, **{"isolation_level": None, "timeout": 0, **options})


def rows(connection: sqlite3.Connection, sql: str) -> list[tuple[Any, ...]]:
    return connection.execute(sql).fetchall()


def queued(path: Path, queue: str = "q") -> list[str]:
    """The payloads of a queue, as another connection sees them."""
    with closing(connect(path)) as other:
        sql = f"SELECT payload FROM alkstore_jobs WHERE queue = '{queue}' ORDER BY job_id"
        return [payload for (payload,) in rows(other, sql)]


@pytest.fixture
def business(sqlite_path: Path) -> Path:
    """A database with alkstore and one table of the application's, empty."""
    alkstore.install(sqlite_path)
    with closing(connect(sqlite_path)) as connection:
        connection.execute("CREATE TABLE business (id INTEGER PRIMARY KEY)")
    return sqlite_path


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


# -- Django ---------------------------------------------------------------------------------------

DJANGO = {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}


@pytest.fixture(params=["DEFERRED", "IMMEDIATE"])
def django_connection(request: pytest.FixtureRequest, business: Path) -> Iterator[Any]:
    if not settings.configured:
        settings.configure(DATABASES={"default": DJANGO})
        django.setup()
    connection = connections["default"]
    connection.close()
    before = connection.settings_dict
    connection.settings_dict = before | {
        "NAME": str(business),
        "OPTIONS": {"transaction_mode": request.param, "timeout": 0},
    }
    yield connection
    connection.close()
    connection.settings_dict = before


def test_django_s_atomic_holds_the_job_and_the_business_row(
    django_connection: Any, business: Path, queue: Queue
) -> None:
    def order(number: int) -> None:
        with django_connection.cursor() as cursor:
            cursor.execute("INSERT INTO business VALUES (%s)", [number])
            cursor.execute(ENQUEUE.format("%s"), [json.dumps(number)])
            assert cursor.fetchall() == [(1,)]
        assert queue.enqueue(-number, tx=django_connection.connection) == 2
        assert queued(business) == []

    with suppress(Abandon), transaction.atomic():
        order(1)
        raise Abandon
    assert queued(business) == []
    with transaction.atomic():
        with suppress(Abandon), transaction.atomic():  # a savepoint
            order(2)
            raise Abandon
        order(3)
    assert queued(business) == ["3", "-3"]
    with closing(connect(business)) as other:
        assert rows(other, "SELECT id FROM business") == [(3,)]


def test_django_s_autocommit_makes_each_call_a_transaction(
    django_connection: Any, business: Path, queue: Queue
) -> None:
    with django_connection.cursor() as cursor:
        cursor.execute(ENQUEUE.format("%s"), ["1"])
        assert cursor.fetchall() == [(1,)]
    assert queued(business) == ["1"]
    handle = queue.claim_one("w", tx=django_connection.connection)
    assert handle is not None
    assert handle.ack()


def test_django_s_own_error_carries_the_code(django_connection: Any, business: Path) -> None:
    with django_connection.cursor() as cursor, pytest.raises(django.db.IntegrityError) as refusal:
        cursor.execute(ENQUEUE.format("'not JSON'"))
    assert str(refusal.value).startswith("AK002 ")


def test_django_s_deferred_transactions_may_have_read_too_early(
    django_connection: Any, business: Path, queue: Queue
) -> None:
    # What "transaction_mode": "IMMEDIATE" is for.
    immediate = django_connection.settings_dict["OPTIONS"]["transaction_mode"] == "IMMEDIATE"
    with alkstore.open(business, busy_timeout_s=0) as store:
        other = store.queue("q")
        with transaction.atomic(), django_connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM business")
            assert cursor.fetchall() == [(0,)]
            if immediate:
                with pytest.raises(alkstore.Busy):
                    other.enqueue("other")
                cursor.execute(ENQUEUE.format("'\"mine\"'"))
            else:
                other.enqueue("other")
                with pytest.raises(alkstore.Busy):
                    queue.enqueue("mine", tx=django_connection.connection)
    assert queued(business) == ['"mine"' if immediate else '"other"']


# -- SQLAlchemy -----------------------------------------------------------------------------------

SQLALCHEMY: list[dict[str, Any]] = [{}, {"isolation_level": "AUTOCOMMIT"}]
if sys.version_info >= (3, 12):
    SQLALCHEMY.append({"connect_args": {"autocommit": False}})


@pytest.fixture(params=SQLALCHEMY, ids=str)
def sqlalchemy_engine(
    request: pytest.FixtureRequest, business: Path
) -> Iterator[sqlalchemy.Engine]:
    engine = sqlalchemy.create_engine(f"sqlite:///{business}", **request.param)
    yield engine
    engine.dispose()


def test_sqlalchemy_s_session_holds_the_job_and_the_business_row(
    sqlalchemy_engine: sqlalchemy.Engine, business: Path, queue: Queue
) -> None:
    autocommit = sqlalchemy_engine.dialect._on_connect_isolation_level == "AUTOCOMMIT"
    enqueue = sqlalchemy.text(ENQUEUE.format(":payload"))

    def order(session: Session, number: int) -> None:
        session.execute(sqlalchemy.text(f"INSERT INTO business VALUES ({number})"))
        session.execute(enqueue, {"payload": f"{number}"}).scalar_one()
        driver = session.connection().connection.dbapi_connection
        assert isinstance(driver, sqlite3.Connection)
        queue.enqueue(-number, tx=driver)

    with Session(sqlalchemy_engine) as session:
        order(session, 1)
        assert queued(business) == (["1", "-1"] if autocommit else [])
        session.rollback()
        first = ["1", "-1"] if autocommit else []
        assert queued(business) == first
        order(session, 2)
        session.commit()
    assert queued(business) == [*first, "2", "-2"]
    with closing(connect(business)) as other:
        assert len(rows(other, "SELECT id FROM business")) == 1 + autocommit


def test_sqlalchemy_s_session_claims_and_acks(
    sqlalchemy_engine: sqlalchemy.Engine, business: Path, queue: Queue
) -> None:
    queue.enqueue_batch([1, 2])
    claim = sqlalchemy.text(
        "INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', :worker, :n)"
        " RETURNING (SELECT jobs FROM alkstore_claimed_json)"
    )
    ack = sqlalchemy.text(
        "INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('q', :job_id, :attempt)"
        " RETURNING job_id"
    )
    with Session(sqlalchemy_engine) as session:
        jobs = json.loads(session.execute(claim, {"worker": "w", "n": 2}).scalar_one())
        assert [job["payload"] for job in jobs] == ["1", "2"]
        session.commit()
        for job in jobs:
            assert session.execute(ack, job).scalar_one() == job["job_id"]
            assert session.execute(ack, job).all() == []
        session.commit()
    assert queued(business) == []


# -- sqlite-utils ---------------------------------------------------------------------------------


def test_sqlite_utils_on_its_own_connection(business: Path, queue: Queue) -> None:
    database = sqlite_utils.Database(business)
    with closing(database.conn):
        with suppress(Abandon), database.atomic():
            database["business"].insert({"id": 1})
            assert list(database.query(ENQUEUE.format("'1'"))) == [{"job_id": 1}]
            raise Abandon
        assert queued(business) == []
        with database.atomic():
            database["business"].insert({"id": 2})
            database.execute(ENQUEUE.format("?"), ["2"]).fetchall()
            queue.enqueue(3, tx=database.conn)
        assert queued(business) == ["2", "3"]
        assert [row["id"] for row in database["business"].rows] == [2]
        assert queue.enqueue(4) == 3  # nothing of the above holds the write lock


LIBRARY = """
import sys
import sqlite_utils

print([row["queue"] for row in sqlite_utils.Database(sys.argv[1]).query(sys.argv[2])])
"""


def test_sqlite_utils_alone_opens_a_database(business: Path, queue: Queue) -> None:
    # It loads its plugins then, ours among them, which must not load them again.
    queue.enqueue(1)
    assert run(LIBRARY, business, "SELECT queue FROM alkstore_queue_stats") == "['q']\n"


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


def run(script: str, *arguments: object) -> str:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


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


# -- another SQLite library -----------------------------------------------------------------------

APSW_DRAIN = """
import json, sys, apsw

connection = apsw.Connection(sys.argv[1])
connection.set_busy_timeout(60_000)
claim = '''INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'apsw', 3)
           RETURNING (SELECT jobs FROM alkstore_claimed_json)'''
ack = "INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('q', :job_id, :attempt) RETURNING 1"
done = []
while not done or done[-1] != "last":
    [(jobs,)] = connection.execute(claim).fetchall()
    for job in json.loads(jobs):
        assert connection.execute(ack, job).fetchall() == [(1,)]
        done.append(json.loads(job["payload"]))
print(done)
"""


def test_another_library_in_another_process_takes_turns(queue: Queue, business: Path) -> None:
    command = [sys.executable, "-c", APSW_DRAIN, str(business)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        numbers = [queue.enqueue(number) for number in range(1, 201)]
        queue.enqueue("last")
        assert process.communicate(timeout=60)[0] == f"{[*numbers, 'last']}\n"
    assert queued(business) == []


def enqueue(connection: Any, number: int) -> None:
    assert connection.execute(ENQUEUE.format(number)).fetchall() == [(number,)]


@pytest.mark.parametrize("journal_mode", ["wal", "delete"])
def test_another_library_in_this_process_before_and_after(
    business: Path, journal_mode: str
) -> None:
    numbers = iter(range(1, 7))
    for _ in range(3):
        with closing(connect(business)) as stdlib:
            rows(stdlib, f"PRAGMA journal_mode = {journal_mode}")
            enqueue(stdlib, next(numbers))
        with closing(apsw.Connection(str(business))) as other:
            enqueue(other, next(numbers))
    assert queued(business) == ["1", "2", "3", "4", "5", "6"]


LOOK = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
print([row[0] for row in connection.execute("SELECT payload FROM alkstore_jobs ORDER BY job_id")])
"""

bundled = pytest.mark.skipif(not apsw.using_amalgamation, reason="apsw uses the same library")


@bundled
def test_another_library_in_this_process_between_calls_without_wal(business: Path) -> None:
    # Without WAL a connection has no lock between its transactions that the other could drop.
    with closing(connect(business)) as stdlib:
        rows(stdlib, "PRAGMA journal_mode = delete")
        enqueue(stdlib, 1)
        with closing(apsw.Connection(str(business))) as other:
            enqueue(other, 2)
            enqueue(stdlib, 3)
        enqueue(stdlib, 4)
        assert run(LOOK, business) == "['1', '2', '3', '4']\n"


@bundled
def test_two_libraries_in_one_process_endanger_each_other(business: Path) -> None:
    """Why docs/sqlite.md says no to it: nothing here could prevent it."""
    with closing(connect(business)) as stdlib:
        rows(stdlib, "PRAGMA journal_mode = wal")
        enqueue(stdlib, 1)
        with closing(apsw.Connection(str(business))) as other:
            stdlib.execute("BEGIN IMMEDIATE")
            other.execute("BEGIN IMMEDIATE")  # two writers
            other.execute("ROLLBACK")
            stdlib.execute("ROLLBACK")
            enqueue(other, 2)
        enqueue(stdlib, 3)  # into the WAL that the other's close has removed
        assert run(LOOK, business) == "['1', '2']\n"
