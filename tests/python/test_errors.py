"""Refusals and failures: the same class on both engines, and nothing changed."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import psycopg
import pytest

import alkstore
from alkstore import (
    AlkstoreError,
    Busy,
    InvalidName,
    InvalidOption,
    NotInstalled,
    Queue,
    Store,
    StoreClosed,
    Unavailable,
    VersionMismatch,
)
from alkstore._sql import SCHEMA_VERSION
from tests.harness.server import free_port
from tests.python.names import BAD_NAMES, GOOD_NAMES, NOT_TEXT, RESERVED_NAMES, refusal, short


@pytest.fixture
def queue(store: Store) -> Queue:
    return store.queue("q")


# -- names ----------------------------------------------------------------------------------------


def test_every_allowed_name_has_a_queue_of_its_own(store: Store) -> None:
    ids = {name: store.queue(name).enqueue(name) for name in GOOD_NAMES}
    for name, job_id in ids.items():
        queue = store.queue(name)
        assert queue.next_due() is not None
        [handle] = queue.claim_batch(name, 10)
        assert (handle.id, handle.queue, handle.worker_id) == (job_id, name, name)
        assert handle.payload == name
        assert handle.heartbeat()
        assert handle.release()
        assert queue.cancel(job_id)
        assert queue.sweep_expired() == (0, 0)


@pytest.mark.parametrize("name", [*BAD_NAMES, *RESERVED_NAMES, *NOT_TEXT], ids=short)
def test_a_queue_refuses_a_bad_or_reserved_name_when_it_is_made(store: Store, name: Any) -> None:
    with pytest.raises(InvalidName):
        store.queue(name)


def test_the_name_rule_of_the_package_is_that_of_the_engines(store: Store, queue: Queue) -> None:
    can_reach_sql = [name for name in BAD_NAMES if "\0" not in name and name.isascii()]
    for name in [*GOOD_NAMES, *can_reach_sql, *RESERVED_NAMES, "é" * 128]:
        queue.name = name  # past the package's own check
        by_engine = refusal(lambda: queue.enqueue(1))
        assert refusal(lambda name=name: store.queue(name)) == by_engine, name


@pytest.mark.parametrize("name", [*BAD_NAMES, *NOT_TEXT], ids=short)
def test_a_claim_refuses_a_bad_worker_name(queue: Queue, name: Any) -> None:
    queue.enqueue(1)
    with pytest.raises(InvalidName):
        queue.claim_one(name)
    handle = queue.claim_one("__alkstore_ is reserved for queues only")
    assert handle is not None
    assert handle.attempt == 1


# -- options --------------------------------------------------------------------------------------

INT32 = 2**31 - 1
RANGES = {
    "delay_s": (0, INT32),
    "priority": (-(2**31), INT32),
    "expires_s": (1, INT32),
    "max_attempts": (1, INT32),
    "visibility_timeout_s": (1, INT32),
    "backoff_base_s": (0, INT32),
    "dead_letter_retention_s": (0, INT32),
}
OF_THE_CALL = ("delay_s", "priority", "expires_s")
NOT_INTEGERS: list[Any] = [True, 1.0, "1", b"1", [1]]


def enqueue_with(store: Store, option: str, value: Any) -> alkstore.JobRecord:
    of_the_queue: dict[str, Any] = {} if option in OF_THE_CALL else {option: value}
    of_the_call: dict[str, Any] = {option: value} if option in OF_THE_CALL else {}
    queue = store.queue("q", **of_the_queue)
    [job_id] = queue.enqueue_batch([1], **of_the_call)
    job = queue.get_job(job_id)
    assert job is not None
    return job


@pytest.mark.parametrize("option", RANGES)
def test_an_option_is_stored_from_its_least_to_its_greatest_value(
    store: Store, option: str
) -> None:
    for value in RANGES[option]:
        job = enqueue_with(store, option, value)
        stored = {
            "delay_s": lambda job: (job.run_at - job.created_at).total_seconds(),
            "expires_s": lambda job: (job.expires_at - job.created_at).total_seconds(),
        }.get(option, lambda job: getattr(job, option))
        assert stored(job) == value


@pytest.mark.parametrize("option", RANGES)
def test_an_option_out_of_its_range_is_refused_by_name(
    store: Store, queue: Queue, option: str
) -> None:
    least, greatest = RANGES[option]
    for value in (least - 1, greatest + 1, 2**63 - 1, -(2**63), 2**63, 2**70, *NOT_INTEGERS):
        with pytest.raises(InvalidOption, match=option):
            enqueue_with(store, option, value)
    assert queue.next_due() is None


@pytest.mark.parametrize(
    "run_at",
    [
        datetime(2030, 1, 1),
        datetime(2030, 1, 1, tzinfo=UTC).isoformat(),
        datetime(2030, 1, 1, tzinfo=UTC).date(),
        1_900_000_000,
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1))),
        datetime(9999, 12, 31, 23, 30, tzinfo=timezone(timedelta(hours=-1))),
    ],
    ids=str,
)
def test_run_at_is_refused_unless_an_instant_of_the_years_1_to_9999(
    queue: Queue, run_at: Any
) -> None:
    with pytest.raises(InvalidOption, match="run_at"):
        queue.enqueue(1, run_at=run_at)
    with pytest.raises(InvalidOption, match="run_at"):
        queue.enqueue_batch([1], run_at=run_at)
    assert queue.next_due() is None


def test_a_refused_option_leaves_the_claim_as_it_was(queue: Queue) -> None:
    queue.enqueue(1)
    handle = queue.claim_one("w")
    assert handle is not None
    before = queue.get_job(handle.id)
    for value in (-1, 2**31, 2**63, *NOT_INTEGERS):
        with pytest.raises(InvalidOption, match="delay_s"):
            handle.retry("x", delay_s=value)
        with pytest.raises(InvalidOption, match="extend_s"):
            handle.heartbeat(value)
    with pytest.raises(InvalidOption, match="extend_s"):
        handle.heartbeat(0)
    assert queue.get_job(handle.id) == before
    assert handle.ack()


def test_an_id_or_a_count_that_is_no_number_is_refused(queue: Queue) -> None:
    for value in (2**63, *NOT_INTEGERS):
        with pytest.raises(InvalidOption, match="n "):
            queue.claim_batch("w", value)
        with pytest.raises(InvalidOption, match="job_id"):
            queue.get_job(value)
        with pytest.raises(InvalidOption, match="job_id"):
            queue.cancel(value)
        with pytest.raises(InvalidOption, match="job_id"):
            queue.ack_batch([value])


# -- closed, busy, gone ---------------------------------------------------------------------------


def test_a_closed_store_refuses_every_call(target: str) -> None:
    with alkstore.open(target) as store:
        queue = store.queue("q")
        queue.enqueue(1)
        handle = queue.claim_one("w")
    assert handle is not None
    store.close()
    calls: list[Callable[[], object]] = [
        lambda: queue.enqueue(1),
        lambda: queue.enqueue_batch([1]),
        lambda: queue.claim_one("w"),
        lambda: queue.claim_batch("w", 1),
        lambda: queue.ack_batch([handle]),
        lambda: queue.cancel(1),
        lambda: queue.get_job(1),
        queue.sweep_expired,
        queue.next_due,
        handle.ack,
        handle.retry,
        handle.release,
        handle.fail,
        handle.heartbeat,
        store.transaction().__enter__,
    ]
    for call in calls:
        with pytest.raises(StoreClosed):
            call()


def test_a_write_lock_kept_by_others_is_busy_after_the_timeout(sqlite_path: Path) -> None:
    with (
        alkstore.open(sqlite_path, busy_timeout_s=0.05) as store,
        closing(sqlite3.connect(sqlite_path, isolation_level=None)) as other,
    ):
        queue = store.queue("q")
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Busy):
            queue.enqueue(1)
        with pytest.raises(Busy), store.transaction():
            pass
        assert queue.next_due() is None  # reading goes on
        other.execute("ROLLBACK")
        assert queue.enqueue(1) == 1


def test_a_lock_timeout_is_busy(pg_url: str) -> None:
    with alkstore.open(f"{pg_url}?options=-c%20lock_timeout%3D50ms") as store:
        queue = store.queue("q")
        job_id = queue.enqueue(1)
        with store.transaction() as tx:
            assert queue.claim_one("w", tx=tx) is not None
            with pytest.raises(Busy):
                queue.cancel(job_id)
        assert queue.cancel(job_id) is True


def test_a_pool_replaces_the_connections_that_the_server_ended(pg_url: str) -> None:
    with alkstore.open(pg_url) as store:
        queue = store.queue("q")
        queue.enqueue(1)
        with psycopg.connect(pg_url, autocommit=True) as other:
            ended = other.execute(
                "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                " AND backend_type = 'client backend'"
            ).fetchall()
        assert ended == [(True,)]
        assert queue.enqueue(2) == 2


def test_a_connection_that_breaks_within_a_call_is_unavailable(pg_url: str) -> None:
    with (
        alkstore.open(pg_url) as store,
        psycopg.connect(pg_url) as own,
        psycopg.connect(pg_url, autocommit=True) as other,
    ):
        other.execute("SELECT pg_terminate_backend(%s, 10000)", (own.info.backend_pid,))
        with pytest.raises(Unavailable):
            store.queue("q").enqueue(1, tx=own)


# -- opening --------------------------------------------------------------------------------------


def one_line(error: pytest.ExceptionInfo[AlkstoreError]) -> str:
    text = str(error.value)
    assert "\n" not in text
    return text


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("not a database, and long enough to be seen as none\n" * 100)
    for call in (alkstore.open, alkstore.install):
        with pytest.raises(Unavailable) as error:
            call(file)
        assert one_line(error) == (
            f"cannot open {file} as an SQLite database: file is not a database"
        )
    assert file.read_text().startswith("not a database")


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("folder", "it is a folder"),
        ("missing/app.db", "there is no folder {folder}/missing"),
        ("file/app.db", "unable to open database file"),
    ],
)
def test_a_path_that_cannot_be_opened(tmp_path: Path, path: str, reason: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    for call in (alkstore.open, alkstore.install):
        with pytest.raises(Unavailable) as error:
            call(tmp_path / path)
        assert one_line(error) == (
            f"cannot open {tmp_path / path} as an SQLite database: {reason.format(folder=tmp_path)}"
        )


def test_a_server_that_is_down() -> None:
    url = f"postgresql://postgres:secret@127.0.0.1:{free_port()}/postgres"
    for call in (alkstore.open, alkstore.install):
        with pytest.raises(Unavailable) as error:
            call(url)
        assert "Connection refused" in one_line(error)
        assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:sec%zzret@h/db",
        "postgresql://u:sec ret@h/db",
        "postgresql://u:secret@[::1]x/db",
        "postgresql://u:secret@[::1/db",
        "postgresql://u:se@ret@127.0.0.1:1/db",
        "postgresql://u:se/ret@127.0.0.1:1/db",
    ],
)
def test_a_url_that_is_broken_is_not_shown_as_it_may_hold_a_password(url: str) -> None:
    for call in (alkstore.open, alkstore.install):
        with pytest.raises(Unavailable, match=r"^not a PostgreSQL URL: ") as error:
            call(url)
        assert error.value.__cause__ is None
        assert "sec" not in str(error.value)
        assert "ret" not in str(error.value)


@pytest.mark.parametrize("url", ["postgresql://[::1", "postgresql://localhost/?nonsense=1"])
def test_a_url_that_is_none(url: str) -> None:
    with pytest.raises(Unavailable, match="not a PostgreSQL URL"):
        alkstore.open(url)


@pytest.mark.parametrize(
    "target",
    [
        "",
        "a\0b",
        "mysql://user:secret@localhost/app",
        "sqlite+x:///app.db",
        "Postgresql://localhost/app",
        "postgresql:/localhost/app",
        "postgres:app",
        "sqlite:app.db",
        "file:app.db?mode=ro",
        "host=localhost dbname=app password=secret",
        "dbname = app",
    ],
)
def test_a_target_of_neither_engine(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for call in (alkstore.open, alkstore.install):
        with pytest.raises(InvalidOption) as error:
            call(target)
        expected = "a file path, sqlite:///PATH or postgresql://URL"
        assert one_line(error) == f"invalid_option: the target must be {expected}"
    assert list(tmp_path.iterdir()) == []


def test_a_file_may_have_any_name_after_a_folder(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("host=localhost", "sqlite:app.db"):
        assert alkstore.install(f"./{name}")
        assert (tmp_path / name).exists()


@pytest.mark.parametrize("schema", ["", "a\0b", None, 5])
def test_a_schema_name_that_is_none(schema: Any) -> None:
    for call in (alkstore.open, alkstore.install):
        with pytest.raises(InvalidName, match="schema"):
            call("postgresql://localhost/app", schema=schema)


@pytest.mark.parametrize("pool_size", [0, -1, "x", None, 1.5])
def test_a_pool_size_that_is_none(pool_size: Any) -> None:
    with pytest.raises(InvalidOption, match="pool_size"):
        alkstore.open("postgresql://localhost/app", pool_size=pool_size)


@pytest.mark.parametrize("timeout", [-1, float("nan"), float("inf")])
def test_a_busy_timeout_that_is_none(sqlite_path: Path, timeout: float) -> None:
    with pytest.raises(InvalidOption, match="busy_timeout_s"):
        alkstore.open(sqlite_path, busy_timeout_s=timeout)
    assert not sqlite_path.exists()


def test_a_postgresql_database_without_the_schema(empty_pg_url: str, pg_url: str) -> None:
    with pytest.raises(NotInstalled, match="alkstore install URL"):
        alkstore.open(empty_pg_url)
    with pytest.raises(NotInstalled, match="in schema a b; run: alkstore install --schema 'a b' U"):
        alkstore.open(pg_url, schema="a b")


def test_postgresql_without_its_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "alkstore.postgres", raising=False)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(Unavailable, match=r"pip install 'alkstore\[postgres\]'"):
        alkstore.open("postgresql://localhost/app")


def test_sqlite_older_than_the_floor(sqlite_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 37, 2))
    with pytest.raises(Unavailable, match=r"SQLite 3\.38 or later is needed"):
        alkstore.open(sqlite_path)
    assert not sqlite_path.exists()


def test_a_schema_of_another_version_is_named_before_a_job_is_touched(
    engine: str, target: str
) -> None:
    with alkstore.open(target) as store:
        job_id = store.queue("q").enqueue(1)
    pretend_version(engine, target, "9.9.9")
    for call in (alkstore.open, alkstore.install):
        with pytest.raises(VersionMismatch) as error:
            call(target)
        assert "9.9.9" in one_line(error)
        assert SCHEMA_VERSION in str(error.value)
    pretend_version(engine, target, SCHEMA_VERSION)
    with alkstore.open(target) as store:
        assert store.queue("q").get_job(job_id) is not None


def pretend_version(engine: str, target: str, version: str) -> None:
    if engine == "postgres":
        with psycopg.connect(target) as connection:
            connection.execute(
                "CREATE OR REPLACE FUNCTION alkstore.version() RETURNS text LANGUAGE sql"
                f" AS $$ SELECT '{version}' $$".encode()
            )
    else:
        with closing(sqlite3.connect(target)) as connection:
            connection.executescript(
                "DROP VIEW alkstore_version;"
                f"CREATE VIEW alkstore_version(version) AS SELECT '{version}';"
            )


def test_the_forms_of_a_sqlite_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "app.db"
    for number, target in enumerate(
        ["app.db", file, str(file), "sqlite:///app.db", f"sqlite:///{file}"], start=1
    ):
        with alkstore.open(target) as store:
            assert store.queue("q").enqueue(1) == number
    assert [path.name for path in tmp_path.iterdir()] == ["app.db"]
    for target in (":memory:", "sqlite://", "sqlite:///:memory:"):
        with alkstore.open(target) as store:
            assert store.queue("q").enqueue(1) == 1


def test_a_database_in_utf_16_is_refused(sqlite_path: Path) -> None:
    with closing(sqlite3.connect(sqlite_path)) as connection:
        connection.executescript("PRAGMA encoding = 'UTF-16le'; CREATE TABLE mine (x)")
    with pytest.raises(Unavailable, match="needs a database in UTF-8; this one is in UTF-16le"):
        alkstore.open(sqlite_path)


def test_a_call_on_a_file_that_cannot_be_written(sqlite_path: Path) -> None:
    with alkstore.open(sqlite_path) as store, store.transaction() as tx:
        tx.connection.execute("CREATE TABLE mine (x)")
    reading = sqlite3.connect(f"file:{sqlite_path}?mode=ro", uri=True)
    with (
        closing(reading),
        alkstore.open(":memory:") as store,
        pytest.raises(Unavailable, match="the SQLite file cannot be used"),
    ):
        store.queue("q").enqueue(1, tx=reading)
