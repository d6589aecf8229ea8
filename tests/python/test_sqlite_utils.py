"""The commands that sqlite-utils gains, the migration set, and calls on its connections."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
import sqlite_utils

import alkstore
from alkstore._sql import SCHEMA_VERSION
from alkstore.sqlite_utils_plugin import migrations


def run(*arguments: str | Path, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sqlite_utils", "alkstore", *map(str, arguments)]
    return subprocess.run(command, input=stdin, capture_output=True, text=True)


def rows(*arguments: str | Path) -> Any:
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_install_enqueue_and_look(sqlite_path: Path) -> None:
    assert run("install", sqlite_path).stdout == f"installed alkstore {SCHEMA_VERSION}\n"
    assert run("install", sqlite_path).stdout == f"already installed: alkstore {SCHEMA_VERSION}\n"
    assert run("enqueue", sqlite_path, "q", "[1, 2]", "--priority", "3").stdout == "1\n"
    assert run("enqueue", sqlite_path, "p", "-", stdin='{"a":1}\n').stdout == "2\n"
    with alkstore.open(sqlite_path) as store:
        job = store.queue("p").claim_one("w")
        assert job is not None
        assert job.payload_text == '{"a":1}'
        job.fail("no use")
    assert [(row["queue"], row["ready"], row["dead"]) for row in rows("stats", sqlite_path)] == [
        ("p", 0, 1),
        ("q", 1, 0),
    ]
    assert [(row["job_id"], row["state"]) for row in rows("jobs", sqlite_path)] == [
        (1, "pending"),
        (2, "dead"),
    ]
    assert [row["payload"] for row in rows("jobs", sqlite_path, "q")] == ["[1, 2]"]
    assert rows("dead", sqlite_path, "q") == []
    assert [row["last_error"] for row in rows("dead", sqlite_path)] == ["no use"]
    assert run("stats", sqlite_path, "--csv").stdout.splitlines()[1].startswith("p,0,0,0,0,0,1,")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("enqueue", "q", "not json"), "Error: invalid_payload: the payload is not JSON text\n"),
        (("enqueue", "", "1"), "Error: invalid_name: queue must be"),
        (("enqueue", "q", "1", "--max-attempts", "0"), "Error: invalid_option: max_attempts"),
    ],
)
def test_a_refusal_is_one_line(sqlite_path: Path, arguments: tuple[str, ...], message: str) -> None:
    run("install", sqlite_path)
    command, *more = arguments
    done = run(command, sqlite_path, *more)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(message)
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["stats", "jobs", "dead"])
def test_looking_does_not_install(sqlite_path: Path, command: str) -> None:
    with closing(sqlite_utils.Database(sqlite_path).conn) as connection:
        connection.execute("CREATE TABLE mine (x)")
    done = run(command, sqlite_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"Error: no alkstore in {sqlite_path}: sqlite-utils alkstore install {sqlite_path}\n"
    )


def test_the_schema_is_a_migration_set_too(sqlite_path: Path) -> None:
    database = sqlite_utils.Database(sqlite_path)
    migrations.apply(database)
    assert [done.name for done in migrations.applied(database)] == [SCHEMA_VERSION]
    migrations.apply(database)
    with closing(database.conn), alkstore.open(sqlite_path) as store:
        queue = store.queue("q")
        with database.atomic():
            queue.enqueue(1, tx=database.conn)
        with suppress(ZeroDivisionError), database.atomic():
            queue.enqueue(2, tx=database.conn)
            raise ZeroDivisionError
        assert [job.payload for job in queue.claim_batch("w", 9)] == [1]
