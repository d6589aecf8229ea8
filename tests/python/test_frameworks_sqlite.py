"""On the connections of Django, SQLAlchemy and sqlite-utils, in the application's transactions."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import django
import pytest
import sqlalchemy
import sqlite_utils
from django.conf import settings
from django.db import connections, transaction
from sqlalchemy.orm import Session

import alkstore
from alkstore import Queue
from tests.python.coexisting import ENQUEUE, Abandon, connect, queued, rows, run


@pytest.fixture
def queue(business: Path) -> Iterator[Queue]:
    with alkstore.open(business) as store:
        yield store.queue("q")


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
