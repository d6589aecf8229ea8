"""Which database a command works on; and none is made or changed by a look."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from urllib.parse import unquote, urlsplit

import psycopg
import pytest

import alkstore
from alkstore import cli
from tests.python.commands import failure, installed, run
from tests.python.roles import KINDS, Roles
from tests.python.waiting import until

QUEUE_COMMANDS = [
    ("stats",),
    ("jobs", "q"),
    ("dead", "q"),
    ("get", "q", "1"),
    ("enqueue", "q", "1"),
    ("cancel", "q", "1"),
    ("sweep", "q"),
]
WITH_OUTBOX = [*QUEUE_COMMANDS, *((*command, "--outbox") for command in QUEUE_COMMANDS[1:])]
NEED_ALKSTORE = [*QUEUE_COMMANDS, ("run-schedules",), ("work", "q", "--exec", "true")]
ALL = [*NEED_ALKSTORE, ("install",)]


# By which function the role is granted what a command needs. grant_operator does for all.
GRANTS = {
    **dict.fromkeys(("stats", "jobs", "dead", "get", "cancel"), "operator"),
    **dict.fromkeys(("sweep", "work"), "worker"),
    "enqueue": "producer",
    "run-schedules": "scheduler",
}


def parsers() -> dict[str, argparse.ArgumentParser]:
    """The parser of each command."""
    [commands] = (
        action for action in cli.parser()._actions if isinstance(action, argparse._SubParsersAction)
    )
    return dict(commands.choices)


@pytest.fixture(autouse=True)
def no_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ALKSTORE_URL", raising=False)


def test_every_command_is_tested_here() -> None:
    assert {command[0] for command in ALL} == set(parsers()) - {"sql"}


@pytest.mark.parametrize("command", QUEUE_COMMANDS, ids=" ".join)
def test_url_and_schema(
    capsys: pytest.CaptureFixture[str], target: str, engine: str, command: tuple[str, ...]
) -> None:
    schema = ("--schema", "Jobs-%'\"2") if engine == "postgres" else ()
    alkstore.install(target, schema=schema[1] if schema else "alkstore")
    with alkstore.open(target, schema=schema[1] if schema else "alkstore") as store:
        store.queue("q").enqueue(1)
    status, output, error = run(capsys, *command, "--url", target, *schema)
    assert (status, error) == (0, "")
    assert output


def test_url_and_schema_before_the_command(
    capsys: pytest.CaptureFixture[str], sqlite_path: Path, empty_pg_url: str
) -> None:
    first = ("--url", empty_pg_url, "--schema", "jobs")
    assert run(capsys, *first, "install") == (0, installed("schema jobs"), "")
    assert run(capsys, *first, "enqueue", "q", "1") == (0, "1\n", "")
    assert run(capsys, *first, "enqueue", "q", "1") == (0, "2\n", "")
    alkstore.install(sqlite_path)
    later = ("--url", str(sqlite_path), "--schema", "alkstore")
    assert run(capsys, *first, "enqueue", "q", "1", *later) == (0, "1\n", "")


@pytest.mark.parametrize(
    "command",
    [
        *(("URL", "stats"), ("--uri", "URL", "stats"), ("--uri=URL", "stats"), ("stats", "URL")),
        *(("stats", "--uri=URL"), ("jobs", "q", "--limit", "URL"), ("get", "q", "URL")),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize(
    "url", ["postgresql://me:se cret's@h/app", 'postgresql://h/app?password=a"se cret']
)
def test_a_url_in_a_wrong_place_is_not_printed(
    capsys: pytest.CaptureFixture[str], command: tuple[str, ...], url: str
) -> None:
    status, output, error = run(capsys, *(word.replace("URL", url) for word in command))
    assert (status, output) == (2, "")
    assert error.startswith("usage: alkstore ")
    assert re.search(r"\nalkstore.*: error: .*postgresql://…\n\Z", error)


def test_install_takes_the_target_either_way(
    capsys: pytest.CaptureFixture[str], sqlite_path: Path
) -> None:
    assert run(capsys, "install", "--url", str(sqlite_path))[0] == 0
    assert sqlite_path.exists()
    says = "alkstore: name one database: TARGET, or --url TARGET\n"
    for command in ("install", "run-schedules"):
        assert failure(capsys, command, "a.db", "--url", "b.db") == says


@pytest.mark.parametrize("command", ALL, ids=" ".join)
def test_no_target(capsys: pytest.CaptureFixture[str], command: tuple[str, ...]) -> None:
    says = "alkstore: name a database by --url TARGET, or set ALKSTORE_URL\n"
    assert failure(capsys, *command) == says


@pytest.mark.parametrize("command", ALL, ids=" ".join)
def test_sqlite_has_no_schemas(
    capsys: pytest.CaptureFixture[str], sqlite_path: Path, command: tuple[str, ...]
) -> None:
    says = "alkstore: --schema is for PostgreSQL: an SQLite file has no schemas\n"
    assert failure(capsys, *command, "--url", str(sqlite_path), "--schema", "jobs") == says
    assert not sqlite_path.exists()


@pytest.mark.parametrize("command", NEED_ALKSTORE, ids=" ".join)
def test_only_install_makes_a_file(
    capsys: pytest.CaptureFixture[str], sqlite_path: Path, command: tuple[str, ...]
) -> None:
    for path in (sqlite_path, sqlite_path.with_name("100%#?.db")):
        assert failure(capsys, *command, "--url", str(path)) == (
            f"alkstore: there is no file {path}: only `alkstore install` makes one\n"
        )
        assert list(sqlite_path.parent.iterdir()) == []


@pytest.mark.parametrize("command", NEED_ALKSTORE, ids=" ".join)
def test_only_install_installs(
    capsys: pytest.CaptureFixture[str],
    sqlite_path: Path,
    empty_pg_url: str,
    command: tuple[str, ...],
) -> None:
    with closing(sqlite3.connect(sqlite_path)) as connection:
        connection.execute("CREATE TABLE mine (x)")
    before = sqlite_path.read_bytes()
    assert failure(capsys, *command, "--url", str(sqlite_path)) == (
        f"alkstore: there is no alkstore in {sqlite_path}: run `alkstore install`\n"
    )
    assert sqlite_path.read_bytes() == before
    error = failure(capsys, *command, "--url", empty_pg_url)
    assert error.startswith("alkstore: the database has no alkstore in schema alkstore; ")


@pytest.mark.parametrize("command", NEED_ALKSTORE, ids=" ".join)
def test_what_is_no_database(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, command: tuple[str, ...]
) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("no database\n" * 200)
    says = "as an SQLite database: file is not a database\n"
    assert failure(capsys, *command, "--url", str(file)).endswith(says)
    assert str(tmp_path) in failure(capsys, *command, "--url", str(tmp_path))
    file.unlink()
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE VIEW alkstore_version(version) AS SELECT '9.9.9'")
    assert "9.9.9" in failure(capsys, *command, "--url", str(file))


@pytest.mark.parametrize("command", QUEUE_COMMANDS[:4], ids=" ".join)
def test_a_look_leaves_the_file_as_it_is(
    capsys: pytest.CaptureFixture[str], sqlite_path: Path, command: tuple[str, ...]
) -> None:
    alkstore.install(sqlite_path)  # and no WAL, into which alkstore.open would turn it
    with closing(sqlite3.connect(sqlite_path)) as connection, connection:
        connection.execute("INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', '1')")
    sqlite_path.chmod(0o400)
    before = sqlite_path.read_bytes()
    assert run(capsys, *command, "--url", str(sqlite_path))[0] == 0
    assert sqlite_path.read_bytes() == before
    assert list(sqlite_path.parent.iterdir()) == [sqlite_path]


def test_text_that_is_not_utf8(capsys: pytest.CaptureFixture[str], sqlite_path: Path) -> None:
    alkstore.install(sqlite_path)
    sql = "INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', CAST(x'22ff22' AS TEXT))"
    with closing(sqlite3.connect(sqlite_path)) as connection, connection:
        connection.execute(sql)
    for command in (("jobs", "q"), ("get", "q", "1")):
        status, output, _ = run(capsys, *command, "--url", str(sqlite_path))
        assert (status, output.splitlines()[-1][-8:]) == (0, '"\\udcff"')
        _, output, _ = run(capsys, *command, "--json", "--url", str(sqlite_path))
        assert '"payload": "\\"\\udcff\\""' in output


def test_output_in_an_encoding_that_lacks_a_character(sqlite_path: Path) -> None:
    with alkstore.open(sqlite_path) as store:
        store.queue("中").enqueue(1)
    done = subprocess.run(
        [sys.executable, "-m", "alkstore", "stats", "--url", sqlite_path],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.splitlines()[1].startswith(b"\\u4e2d ")


@pytest.mark.parametrize("command", WITH_OUTBOX, ids=" ".join)
def test_the_grant_that_a_command_needs(
    capsys: pytest.CaptureFixture[str], roles: Roles, command: tuple[str, ...]
) -> None:
    with alkstore.open(roles.pg_url) as store:
        (store.outbox("q") if "--outbox" in command else store.queue("q")).enqueue(1)
    hint = rf"; alkstore\.grant_{GRANTS[command[0]]} allows it\n\Z"
    error = failure(capsys, *command, "--url", roles.create("stranger"))
    assert re.search(rf": permission denied for schema alkstore{hint}", error)
    for kind in KINDS:
        url = roles.create(kind)
        if kind in (GRANTS[command[0]], "operator"):
            assert run(capsys, *command, "--url", url)[0] == 0
        else:
            error = failure(capsys, *command, "--url", url)
            assert re.search(rf": permission denied for (view|function) \w+{hint}", error)


def test_the_right_that_install_needs(capsys: pytest.CaptureFixture[str], roles: Roles) -> None:
    url = roles.create()
    install = ("install", url, "--schema", "jobs")
    assert "permission denied for database" in failure(capsys, *install)
    user, database = unquote(str(urlsplit(url).username)), urlsplit(url).path[1:]
    roles.owner.execute(f'GRANT CREATE ON DATABASE "{database}" TO "{user}"')
    assert run(capsys, *install) == (0, installed("schema jobs"), "")


@pytest.mark.parametrize("kind", ["worker", "operator"])
@pytest.mark.parametrize("outbox", [(), ("--outbox",)], ids=["queue", "outbox"])
def test_the_grant_that_work_needs(roles: Roles, kind: str, outbox: tuple[str, ...]) -> None:
    with alkstore.open(roles.pg_url) as store:
        jobs = store.outbox("q") if outbox else store.queue("q")
        job_id = jobs.enqueue(1)
        work = ("work", "q", "--exec", "kill -TERM $PPID", *outbox, "--url", roles.create(kind))
        done = subprocess.run(
            [sys.executable, "-m", "alkstore", *work], capture_output=True, text=True, timeout=60
        )
        assert (done.returncode, done.stdout) == (0, "")
        assert "denied" not in done.stderr
        assert jobs.get_job(job_id) is None


@pytest.mark.parametrize("kind", ["scheduler", "operator"])
def test_the_grant_that_run_schedules_needs(roles: Roles, kind: str) -> None:
    command = ("run-schedules", "--url", roles.create(kind))
    with alkstore.open(roles.pg_url) as store:
        store.schedule("s", "@every 1s", "q", 1)
        with subprocess.Popen(
            [sys.executable, "-m", "alkstore", *command], stderr=subprocess.PIPE, text=True
        ) as process:
            try:
                until(lambda: store.queue("q").next_due() is not None)
            finally:
                process.terminate()
            _, error = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "denied" not in error


@pytest.mark.parametrize("kind", ["producer", "worker"])
def test_others_cannot_run_schedules(
    capsys: pytest.CaptureFixture[str], roles: Roles, kind: str
) -> None:
    error = failure(capsys, "run-schedules", "--url", roles.create(kind))
    hint = "alkstore.grant_scheduler allows it"
    assert error == f"alkstore: permission denied for function lead_schedules; {hint}\n"


@pytest.mark.parametrize(
    "command",
    [
        *[("jobs", "q", "--limit"), ("jobs", "q", "--limit", "1", "--all"), ("jobs",)],
        *[("jobs", "q", "--limit", "-1"), ("jobs", "q", "--limit", "x"), ("dead", "q", "--al")],
        *[("get", "q"), ("get", "q", "x"), ("cancel", "q"), ("sweep",), ("enqueue", "q")],
        *[("stats", "--watch", text) for text in ("0", "-1", "nan", "inf", "x")],
    ],
    ids=" ".join,
)
def test_wrong_usage(capsys: pytest.CaptureFixture[str], command: tuple[str, ...]) -> None:
    status, output, error = run(capsys, *command)
    assert (status, output) == (2, "")
    assert error.startswith("usage: alkstore ")


def test_a_name_that_looks_like_an_option(
    capsys: pytest.CaptureFixture[str], sqlite_path: Path
) -> None:
    alkstore.install(sqlite_path)
    url = ("--url", str(sqlite_path))
    assert run(capsys, "enqueue", *url, "--", "--all", "1") == (0, "1\n", "")
    assert run(capsys, "get", *url, "--", "--all", "1")[0] == 0


def test_each_help_has_examples_that_are_right(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, parser in parsers().items():
        status, output, _ = run(capsys, name, "--help")
        assert status == 0
        assert max(map(len, output.splitlines())) <= 80
        _, _, examples = output.partition("\nexamples:\n")
        assert examples
        for example in examples.splitlines():
            command, *_ = re.split(r" [|<] ", example)
            program, first, *arguments = shlex.split(command)
            assert (program, first) == ("alkstore", name)
            parser.parse_args(arguments)


def test_an_unread_list_keeps_no_transaction_open(target: str, engine: str) -> None:
    with alkstore.open(target) as store:
        store.queue("q").enqueue_batch(["x" * 2000] * 1000)  # more than a pipe takes
    command = [sys.executable, "-m", "alkstore", "jobs", "q", "--all", "--json", "--url", target]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert process.poll() is None
        if engine == "postgres":
            sql = """
                SELECT count(*) FROM pg_stat_activity
                WHERE datname = current_database() AND pid <> pg_backend_pid()
                  AND backend_type = 'client backend'"""
            with psycopg.connect(target, autocommit=True) as connection:
                # It is closed by now, but the server takes its time.
                until(lambda: connection.execute(sql).fetchall() == [(0,)])
        else:
            with closing(sqlite3.connect(target, timeout=0)) as connection:
                connection.execute("CREATE TABLE mine (x)")
                rows = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
                assert rows == [(0, 0, 0)]
        assert len(process.stdout.read().splitlines()) == 999
    assert process.returncode == 0
