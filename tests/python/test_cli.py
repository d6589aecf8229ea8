"""The command line: what it prints, its exit status, and never a traceback."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

import alkstore
from alkstore import _cli_setup
from alkstore._sql import SCHEMA_VERSION, installer
from tests.harness.server import free_port
from tests.python.commands import already_installed, failure, installed, run


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--version") == (0, f"alkstore {alkstore.__version__}\n", "")


@pytest.mark.parametrize("engine", ["postgres", "sqlite"])
def test_sql_prints_the_installer(capsys: pytest.CaptureFixture[str], engine: str) -> None:
    assert run(capsys, "sql", engine) == (0, installer(engine), "")


def test_what_sql_prints_installs_without_the_package(
    capsys: pytest.CaptureFixture[str], sqlite_path: Path, empty_pg_url: str
) -> None:
    _, sql, _ = run(capsys, "sql", "sqlite")
    with closing(sqlite3.connect(sqlite_path)) as connection:
        connection.executescript(sql)
    _, sql, _ = run(capsys, "sql", "postgres")
    with psycopg.connect(empty_pg_url) as connection:
        connection.execute(sql.encode())
    for target in (sqlite_path, empty_pg_url):
        with alkstore.open(target) as store:
            assert store.queue("q").enqueue(1) == 1


@pytest.mark.parametrize("form", ["{}", "sqlite:///{}"])
def test_install_into_a_file(
    capsys: pytest.CaptureFixture[str], sqlite_path: Path, form: str
) -> None:
    target = form.format(sqlite_path)
    assert run(capsys, "install", target) == (0, installed(sqlite_path), "")
    with alkstore.open(sqlite_path) as store:
        store.queue("q").enqueue(1)
    assert run(capsys, "install", target) == (0, already_installed(sqlite_path), "")
    with alkstore.open(sqlite_path) as store:
        assert store.queue("q").get_job(1) is not None


def test_install_into_a_file_whose_name_is_not_text(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.db")
    assert run(capsys, "install", file) == (0, installed(f"{tmp_path}/\\udcff.db"), "")
    assert os.path.exists(file)


def test_installing_leaves_the_journal_mode_of_a_file_alone(
    capsys: pytest.CaptureFixture[str], sqlite_path: Path
) -> None:
    run(capsys, "install", str(sqlite_path))
    with closing(sqlite3.connect(sqlite_path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchall() == [("delete",)]


def test_install_into_postgresql(capsys: pytest.CaptureFixture[str], empty_pg_url: str) -> None:
    assert run(capsys, "install", empty_pg_url) == (0, installed("schema alkstore"), "")
    with alkstore.open(empty_pg_url) as store:
        store.queue("q").enqueue(1)
    assert run(capsys, "install", empty_pg_url) == (0, already_installed("schema alkstore"), "")
    with alkstore.open(empty_pg_url) as store:
        assert store.queue("q").get_job(1) is not None


@pytest.mark.parametrize("schema", ["Jobs-2", "q\"'%I$$;--", "%s"])
def test_install_into_another_schema(
    capsys: pytest.CaptureFixture[str], empty_pg_url: str, schema: str
) -> None:
    install = ("install", empty_pg_url, "--schema", schema)
    assert run(capsys, *install) == (0, installed(f"schema {schema}"), "")
    assert run(capsys, *install) == (0, already_installed(f"schema {schema}"), "")
    with alkstore.open(empty_pg_url, schema=schema) as store:
        queue = store.queue("q")
        assert queue.enqueue_batch([1, alkstore.RawJson(" 2 ")]) == [1, 2]
        first, second = queue.claim_batch("w", 2)
        assert first.retry("x")
        assert second.ack()
        assert queue.get_job(1) is not None
        assert queue.sweep_expired() == (0, 0)
        assert queue.next_due() is not None


# -- failures -------------------------------------------------------------------------------------


def test_a_file_that_is_no_database(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("no database\n" * 200)
    assert "file is not a database" in failure(capsys, "install", str(file))
    assert str(tmp_path) in failure(capsys, "install", str(tmp_path / "missing" / "app.db"))


def test_a_server_that_is_down(capsys: pytest.CaptureFixture[str]) -> None:
    url = f"postgresql://postgres:secret@127.0.0.1:{free_port()}/postgres"
    error = failure(capsys, "install", url)
    assert "Connection refused" in error
    assert "secret" not in error


def test_a_target_of_neither_engine(capsys: pytest.CaptureFixture[str]) -> None:
    assert "sqlite:///PATH" in failure(capsys, "install", "mysql://localhost/app")


@pytest.mark.parametrize("target", [":memory:", "sqlite://", "sqlite:///"])
def test_installing_into_memory(capsys: pytest.CaptureFixture[str], target: str) -> None:
    assert "name a file" in failure(capsys, "install", target)


def test_a_schema_that_cannot_be(capsys: pytest.CaptureFixture[str], empty_pg_url: str) -> None:
    install = ("install", empty_pg_url, "--schema")
    assert failure(capsys, *install, "") == "alkstore: invalid_name: schema must not be empty\n"
    assert failure(capsys, *install, "pg_x") == (
        'alkstore: cannot use the PostgreSQL database: unacceptable schema name "pg_x"\n'
    )
    error = failure(capsys, *install, "public")
    assert "schema public " in error
    assert ". alkstore needs a schema of its own" in error
    assert "CONTEXT" not in error


def test_a_user_who_may_not_create_a_schema(
    capsys: pytest.CaptureFixture[str], empty_pg_url: str
) -> None:
    role = "pg_monitor"  # may connect to nothing by itself, so as the session's role
    url = f"{empty_pg_url}?options=-c%20role%3D{role}"
    assert "permission denied for database" in failure(capsys, "install", url)


def test_another_version(capsys: pytest.CaptureFixture[str], sqlite_path: Path) -> None:
    with closing(sqlite3.connect(sqlite_path)) as connection:
        connection.execute("CREATE VIEW alkstore_version(version) AS SELECT '9.9.9'")
    error = failure(capsys, "install", str(sqlite_path))
    assert "9.9.9" in error
    assert SCHEMA_VERSION in error


@pytest.mark.parametrize("arguments", [(), ("sql",), ("sql", "oracle"), ("run",)])
def test_wrong_usage(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]) -> None:
    status, output, error = run(capsys, *arguments)
    assert (status, output) == (2, "")
    assert error.startswith("usage: alkstore")


def test_output_that_cannot_be_written() -> None:
    command = [sys.executable, "-m", "alkstore", "sql", "postgres"]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr == "alkstore: cannot write: No space left on device\n"


def test_ctrl_c(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(engine: str) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(_cli_setup, "installer", interrupted)
    assert run(capsys, "sql", "sqlite") == (130, "", "")


def test_a_reader_that_has_seen_enough() -> None:
    command = [sys.executable, "-m", "alkstore", "sql", "postgres"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert process.returncode == 1


@pytest.mark.parametrize(
    ("closed", "arguments", "ends"),
    [
        ("<&-", ("-",), (1, "", "alkstore: invalid_payload: the payload is not JSON text\n")),
        (">&-", ("1",), (0, "", "")),
        ("2>&-", ("no JSON",), (1, "", "")),
        ("<&- >&- 2>&-", ("1",), (0, "", "")),
    ],
)
def test_a_stream_that_is_closed_is_as_the_null_device(
    sqlite_path: Path, closed: str, arguments: tuple[str, ...], ends: tuple[int, str, str]
) -> None:
    alkstore.install(sqlite_path)
    command = [sys.executable, "-m", "alkstore", "--url", str(sqlite_path), "enqueue", "q"]
    shell = ["sh", "-c", f'exec "$@" {closed}', "sh", *command, *arguments]
    done = subprocess.run(shell, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == ends
    with alkstore.open(sqlite_path) as store:
        assert (store.queue("q").get_job(1) is not None) == (ends[0] == 0)


def test_a_folder_that_is_gone(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    command = [sys.executable, "-m", "alkstore", "stats", "--url", "app.db"]
    shell = ["sh", "-c", f'rmdir {gone} && exec "$@"', "sh", *command]
    done = subprocess.run(shell, cwd=gone, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (
        1,
        "",
        "alkstore: cannot open app.db as an SQLite database: "
        "the current folder: No such file or directory\n",
    )


def test_the_target_may_come_from_the_environment(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, sqlite_path: Path
) -> None:
    monkeypatch.delenv("ALKSTORE_URL", raising=False)
    says = "alkstore: name a database by --url TARGET, or set ALKSTORE_URL\n"
    assert failure(capsys, "install") == says
    monkeypatch.setenv("ALKSTORE_URL", str(sqlite_path))
    assert run(capsys, "install") == (0, installed(sqlite_path), "")


def test_running_schedules_of_a_file_that_is_not_there(
    capsys: pytest.CaptureFixture[str], sqlite_path: Path
) -> None:
    error = failure(capsys, "run-schedules", str(sqlite_path))
    assert error.startswith(f"alkstore: there is no file {sqlite_path}: ")
    assert not sqlite_path.exists()
