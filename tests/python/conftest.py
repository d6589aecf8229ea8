"""Databases for the tests: each test gets its own, of either engine, with alkstore installed."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import psycopg
import pytest

import alkstore
from alkstore._sql import installer
from tests.harness.server import URL_VARIABLE
from tests.python.clock import Clock
from tests.python.coexisting import connect
from tests.python.commands import Command, run
from tests.python.consuming import Seen
from tests.python.roles import Roles
from tests.python.waiting import until
from tests.python.working import Gate

_numbers = itertools.count(1)


class Databases:
    """Makes and drops databases on the test server. Copying a prepared one takes some 50 ms."""

    def __init__(self, server_url: str) -> None:
        self._base = server_url.rpartition("/")[0]
        self._server = psycopg.connect(server_url, autocommit=True)
        self.template = self.create()
        with psycopg.connect(self.url(self.template), autocommit=True) as connection:
            connection.execute(installer("postgres"))

    def url(self, name: str) -> str:
        return f"{self._base}/{name}"

    def create(self, template: str = "template1", options: str = "") -> str:
        name = f"alkstore_{os.getpid()}_{next(_numbers)}"
        self._execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}" {options}')
        return name

    def drop(self, name: str) -> None:
        self._execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def _execute(self, statement: str) -> None:
        """Again, where sessions need more than the five seconds that they have to end."""

        def succeeds() -> bool:
            with suppress(psycopg.errors.ObjectInUse):
                self._server.execute(statement)
                return True
            return False

        until(succeeds)

    def close(self) -> None:
        self.drop(self.template)
        self._server.close()


@pytest.fixture(autouse=True)
def signals_as_before() -> Iterator[None]:
    """A handler that stayed would take ctrl-C away from the tests that follow."""
    before = {
        number: signal.getsignal(number)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM)
    }
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(scope="session")
def databases() -> Iterator[Databases]:
    url = os.environ.get(URL_VARIABLE)
    if not url:
        raise pytest.UsageError(f"{URL_VARIABLE} is not set: run the tests by `make test-python`")
    databases = Databases(url)
    yield databases
    databases.close()


@pytest.fixture
def empty_pg_url(databases: Databases) -> Iterator[str]:
    """A new PostgreSQL database without alkstore."""
    name = databases.create()
    yield databases.url(name)
    databases.drop(name)


@pytest.fixture
def pg_url(databases: Databases) -> Iterator[str]:
    """A new PostgreSQL database with alkstore installed."""
    name = databases.create(databases.template)
    yield databases.url(name)
    databases.drop(name)


@pytest.fixture
def sqlite_path(tmp_path: Path) -> Path:
    """Where a SQLite database may be made; opening it installs alkstore."""
    return tmp_path / "app.db"


@pytest.fixture
def business(sqlite_path: Path) -> Path:
    """A database with alkstore and one table of the application's, empty."""
    alkstore.install(sqlite_path)
    with closing(connect(sqlite_path)) as connection:
        connection.execute("CREATE TABLE business (id INTEGER PRIMARY KEY)")
    return sqlite_path


@pytest.fixture(params=["sqlite", "postgres"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def target(engine: str, request: pytest.FixtureRequest) -> str:
    """What alkstore.open takes, for both engines in turn."""
    return str(request.getfixturevalue("sqlite_path" if engine == "sqlite" else "pg_url"))


@pytest.fixture
def store(target: str) -> Iterator[alkstore.Store]:
    """An open store, for both engines in turn."""
    with alkstore.open(target) as store:
        yield store


@pytest.fixture
def clock(store: alkstore.Store, target: str) -> Clock:
    """The clock of the store's database, which stands still."""
    return Clock(target)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    """What consumers do, from here on."""
    return Seen(monkeypatch)


@pytest.fixture
def gate() -> Iterator[Gate]:
    """A handler that waits until the test opens it."""
    gate = Gate()
    yield gate
    gate.open()


@pytest.fixture
def roles(pg_url: str) -> Iterator[Roles]:
    """Makes login roles, which end with the test."""
    roles = Roles(pg_url)
    yield roles
    roles.close()


@pytest.fixture
def command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, target: str
) -> Command:
    """Runs a command on the test's database: exit status, output, errors."""
    monkeypatch.setenv("ALKSTORE_URL", target)
    monkeypatch.setenv("COLUMNS", "80")
    return lambda *arguments: run(capsys, *arguments)
