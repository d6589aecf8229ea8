"""[dump] pg_dump and restore: into another server, of a later version where there is one."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from alkstore._sql import SCHEMA_VERSION, installer
from tests.harness.server import PYPI_RELEASES, Server
from tests.python.catalog import snapshot
from tests.python.every_call import Calls, make_every_call


@pytest.fixture(scope="module")
def other() -> Iterator[Server]:
    """Another server, of the newest version."""
    with Server(max(PYPI_RELEASES)) as server:
        yield server


@pytest.fixture
def restored_url(other: Server) -> Iterator[str]:
    """An empty database of the other server."""
    other.psql("CREATE DATABASE restored")
    yield other.database_url("restored")
    other.psql("DROP DATABASE restored WITH (FORCE)")


@pytest.fixture(params=["alkstore", "My Jobs"])
def schema(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def install(connection: psycopg.Connection, schema: str) -> None:
    connection.execute("SELECT set_config('alkstore.schema', %s, false)", [schema])
    connection.execute(installer("postgres").encode())


@pytest.fixture
def source(empty_pg_url: str, schema: str) -> Iterator[psycopg.Connection]:
    """A database with alkstore and something of everything in it."""
    with psycopg.connect(empty_pg_url, autocommit=True) as connection:
        install(connection, schema)
        call = Calls(connection, schema)
        call("enqueue_batch", "q", '[1, "zwei", {"b":1, "a":[1.0,1e2], "a":null}]', priority=5)
        call("claim", "q", "worker", 3)
        call("retry", "q", 1, 1, "an error\nof two lines", delay_s=60)
        call("fail", "q", 2, 1, "failed for good")
        call("enqueue", "q", "4", delay_s=3600, expires_s=7200, dead_letter_retention_s=60)
        call("enqueue", "__long " + "ü" * 100, '"5"')
        call("enqueue", "q", "6")
        call("cancel", "q", 6)  # the last id is not to be had from the rows
        call("outbox_enqueue", "box", '"a message"')
        call("outbox_enqueue", "box", '"another"')
        call("outbox_cancel", "box", 8)
        call("schedule", "nightly", "@every 1d", "q", "{}", priority=3)
        call("acquire_lock", "lock", "owner", 3600)
        yield connection


def move(url: str, target: Server, file: Path, kind: str, *options: str) -> None:
    """pg_dump by the old server's program, restored by the new one's; any error is one too many."""
    dump = ["pg_dump", "-d", url, f"--format={kind}", f"--file={file}", *options]
    subprocess.run(dump, check=True)
    programs, to = target.bin_dir, ["-d", target.database_url("restored")]
    psql = [programs / "psql", "-Xq", "-v", "ON_ERROR_STOP=1", *to, "-f", file]
    restore = [programs / "pg_restore", "--exit-on-error", *to, file]
    command = psql if kind == "plain" else restore
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def contents(connection: psycopg.Connection, schema: str) -> dict[str, list[str]]:
    """All that is to be seen in the views, exactly."""
    return {
        view: [
            json.dumps(row)
            for row in connection.execute(
                SQL("SELECT v::text FROM {} v ORDER BY 1").format(Identifier(schema, view))
            )
        ]
        for view in ("jobs", "dead_jobs", "schedules", "locks", "queue_stats")
    }


def catalog(connection: psycopg.Connection, schema: str) -> list[str]:
    """What the catalogs say, but for what a dump writes in another way that means the same.

    It leaves out privileges that are the owner's alone, and words views anew.
    """
    owners = re.compile(r'"(rel|nsp)acl":\["owner=\w+/owner"\]')
    texts = [owners.sub(r'"\1acl":null', text) for text in snapshot(connection, schema)]
    return [re.sub('"pg_get_viewdef":"[^"]*"', "", text) for text in texts]


@pytest.mark.parametrize("kind", ["plain", "custom"])
def test_a_dump_brings_everything(
    empty_pg_url: str,
    source: psycopg.Connection,
    schema: str,
    other: Server,
    restored_url: str,
    tmp_path: Path,
    kind: str,
) -> None:
    move(empty_pg_url, other, tmp_path / "dump", kind)
    with psycopg.connect(restored_url, autocommit=True) as restored:
        restored.execute("SET search_path = ''")
        assert contents(restored, schema) == contents(source, schema)
        assert len(contents(restored, schema)["jobs"]) == 6
        call = Calls(restored, schema)
        assert call("version") == SCHEMA_VERSION
        assert call("enqueue", "r", "9") == 9  # 8 was the last
        assert call("ack", "q", 3, 1) is True  # by its holder, who has moved too
        make_every_call(restored, schema)
        moved = catalog(restored, schema)
        restored.execute(SQL("DROP SCHEMA {} CASCADE").format(Identifier(schema)))
        install(restored, schema)
        assert moved == catalog(restored, schema)


@pytest.mark.parametrize("kind", ["plain", "custom"])
def test_a_dump_of_the_schema_only_installs(
    empty_pg_url: str,
    source: psycopg.Connection,
    schema: str,
    other: Server,
    restored_url: str,
    tmp_path: Path,
    kind: str,
) -> None:
    move(empty_pg_url, other, tmp_path / "dump", kind, "--schema-only", "--no-comments")
    with psycopg.connect(restored_url, autocommit=True) as restored:
        restored.execute("SET search_path = ''")
        assert not any(contents(restored, schema).values())
        call = Calls(restored, schema)
        assert call("version") == SCHEMA_VERSION
        assert call("enqueue", "r", "1") == 1
        make_every_call(restored, schema)
        # It is an installation like any other.
        install(restored, schema)
        assert call("get_job", "r", 1) != []


def test_a_dump_of_the_data_only_fills_an_installation(
    empty_pg_url: str,
    source: psycopg.Connection,
    schema: str,
    other: Server,
    restored_url: str,
    tmp_path: Path,
) -> None:
    with psycopg.connect(restored_url, autocommit=True) as restored:
        install(restored, schema)
        move(empty_pg_url, other, tmp_path / "dump", "custom", "--data-only")
        assert contents(restored, schema) == contents(source, schema)
        assert Calls(restored, schema)("enqueue", "r", "9") == 9
