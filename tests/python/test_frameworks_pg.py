"""On PostgreSQL connections of Django and SQLAlchemy, in the application's transactions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import django
import psycopg
import pytest
import sqlalchemy
from django.conf import settings
from django.db import connections, transaction
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy.orm import Session

import alkstore
from alkstore import Queue
from tests.python.coexisting import Abandon

ENQUEUE = "SELECT alkstore.enqueue('q', {})"
NONE = {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}


@pytest.fixture
def queue(pg_url: str) -> Iterator[Queue]:
    with psycopg.connect(pg_url) as connection:
        connection.execute("CREATE TABLE business (id integer PRIMARY KEY)")
    with alkstore.open(pg_url) as store:
        yield store.queue("q")


def stored(pg_url: str) -> tuple[list[int], list[str]]:
    """The business rows and the payloads that others see."""
    with psycopg.connect(pg_url) as connection:
        business = connection.execute("SELECT id FROM business ORDER BY id").fetchall()
        jobs = connection.execute("SELECT payload::text FROM alkstore.jobs ORDER BY job_id")
        return [number for (number,) in business], [payload for (payload,) in jobs.fetchall()]


@pytest.fixture(params=[False, True], ids=["bound here", "bound by the server"])
def django_connection(request: pytest.FixtureRequest, pg_url: str) -> Iterator[Any]:
    if not settings.configured:
        settings.configure(DATABASES={"default": NONE})
        django.setup()
    given = conninfo_to_dict(pg_url)
    own = {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": given["dbname"],
        "HOST": given["host"],
        "PORT": given["port"],
        "USER": given["user"],
        "OPTIONS": {"server_side_binding": request.param},
    }
    connections.settings["pg"] = connections.configure_settings({"default": NONE, "pg": own})["pg"]
    yield connections["pg"]
    connections["pg"].close()
    del connections["pg"]
    del connections.settings["pg"]


def test_django_s_atomic_holds_the_job_and_the_business_row(
    django_connection: Any, pg_url: str, queue: Queue
) -> None:
    def order(number: int) -> None:
        with django_connection.cursor() as cursor:
            cursor.execute("INSERT INTO business VALUES (%s)", [number])
            cursor.execute(ENQUEUE.format("%s"), [json.dumps(number)])
        queue.enqueue({"of": number}, delay_s=0, priority=-1, tx=django_connection.connection)

    with suppress(Abandon), transaction.atomic("pg"):
        order(1)
        raise Abandon
    assert stored(pg_url) == ([], [])
    with transaction.atomic("pg"):
        order(2)
        assert stored(pg_url) == ([], [])
    assert stored(pg_url) == ([2], ["2", '{"of": 2}'])


def test_django_s_connection_claims_and_settles(
    django_connection: Any, pg_url: str, queue: Queue
) -> None:
    queue.enqueue_batch([1, 2, 3])
    with transaction.atomic("pg"), django_connection.cursor():
        tx = django_connection.connection
        first, second, third = queue.claim_batch("w", 3, tx=tx)
        assert first.retry("100 % 'no'", tx=tx)
        assert second.ack(tx=tx)
        assert queue.ack_batch([third], tx=tx) == 1
    assert stored(pg_url) == ([], ["1"])
    record = queue.get_job(first.id)
    assert record is not None
    assert record.retry_error == "100 % 'no'"


def test_sqlalchemy_s_session_holds_the_job_and_the_business_row(pg_url: str, queue: Queue) -> None:
    engine = sqlalchemy.create_engine(pg_url.replace("postgresql://", "postgresql+psycopg://"))

    def order(session: Session, number: int) -> None:
        session.execute(sqlalchemy.text(f"INSERT INTO business VALUES ({number})"))
        session.execute(sqlalchemy.text(ENQUEUE.format(":payload")), {"payload": f"{number}"})
        driver = session.connection().connection.dbapi_connection
        assert isinstance(driver, psycopg.Connection)
        queue.enqueue({"of": number}, tx=driver)

    with Session(engine) as session:
        order(session, 1)
        session.rollback()
        order(session, 2)
        assert stored(pg_url) == ([], [])
        session.commit()
    engine.dispose()
    assert stored(pg_url) == ([2], ["2", '{"of": 2}'])
