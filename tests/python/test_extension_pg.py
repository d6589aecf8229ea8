"""alkstore as an extension: make install, CREATE EXTENSION, dump and restore, DROP EXTENSION.

On a server of its own, because `make install` puts files into it.
"""

from __future__ import annotations

import itertools
import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.errors import ObjectNotInPrerequisiteState as NotInPrerequisiteState

from alkstore._sql import SCHEMA_VERSION, installer
from tests.harness.server import PYPI_RELEASES, URL_VARIABLE, Server
from tests.python.catalog import snapshot, without_schema

ROOT = Path(__file__).parents[2]
UNINSTALL = (ROOT / "sql/postgres/uninstall.sql").read_text()
FILES = {"alkstore.control", f"alkstore--{SCHEMA_VERSION}.sql"}

_numbers = itertools.count(1)


def make(*arguments: str) -> str:
    """make, as a user types it: not as a part of the make that runs the tests."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    command = ["make", "-C", ROOT, *arguments]
    return subprocess.run(
        command, env=environment, check=True, capture_output=True, text=True
    ).stdout


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with psycopg.connect(os.environ[URL_VARIABLE]) as connection:
        major = connection.info.server_version // 10000
    if major not in PYPI_RELEASES:
        pytest.skip(f"PyPI has no PostgreSQL {major} to put the extension's files into")
    with Server(major, own_files=True) as server:
        make("install", f"PG_CONFIG={server.bin_dir}/pg_config")
        yield server


@pytest.fixture
def url(server: Server) -> str:
    """A new database."""
    name = f"extension_{next(_numbers)}"
    server.psql(f"CREATE DATABASE {name}")
    return server.database_url(name)


@pytest.fixture
def connection(url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def plain(connection: psycopg.Connection) -> list[str]:
    """What an installation without CREATE EXTENSION looks like."""
    connection.execute("SET alkstore.schema = 'plain'")
    connection.execute(installer("postgres").encode())
    return snapshot(connection, "plain")


# -- CREATE EXTENSION -----------------------------------------------------------------------------


def test_it_gets_a_schema_of_its_own(connection: psycopg.Connection, plain: list[str]) -> None:
    connection.execute("CREATE EXTENSION alkstore")
    assert snapshot(connection) == plain
    assert connection.execute("SELECT alkstore.enqueue('q', '1')").fetchall() == [(1,)]


@pytest.mark.parametrize("schema", ["tasks", "Jobs-2", "a.b", "ÜX-日本-😀", "plain "])
def test_any_schema(connection: psycopg.Connection, plain: list[str], schema: str) -> None:
    connection.execute(f'CREATE SCHEMA "{schema}"'.encode())
    connection.execute(f'CREATE EXTENSION alkstore SCHEMA "{schema}"'.encode())
    assert without_schema(snapshot(connection, schema)) == without_schema(plain)
    run = f"SELECT \"{schema}\".enqueue('q', '1')"
    assert connection.execute(run.encode()).fetchall() == [(1,)]
    assert connection.execute("SELECT to_regnamespace('alkstore')").fetchall() == [(None,)]


def test_public_is_left_alone(connection: psycopg.Connection, plain: list[str]) -> None:
    before = connection.execute(
        "SELECT nspacl FROM pg_namespace WHERE nspname = 'public'"
    ).fetchall()
    connection.execute("CREATE EXTENSION alkstore SCHEMA public")
    assert snapshot(connection) == plain
    found = connection.execute("""
        SELECT nspacl, (SELECT count(*) FROM pg_class WHERE relnamespace = n.oid)
        FROM pg_namespace n WHERE nspname = 'public'""").fetchall()  # fmt: skip
    assert found == [(*before[0], 0)]


def test_an_ordinary_owner_of_the_database(server: Server, url: str) -> None:
    role = f"owner_{next(_numbers)}"
    database = url.rpartition("/")[2]
    server.psql(f"CREATE ROLE {role} LOGIN; ALTER DATABASE {database} OWNER TO {role}")
    with psycopg.connect(url.replace("postgres@", f"{role}@"), autocommit=True) as connection:
        connection.execute("CREATE EXTENSION alkstore")
        assert connection.execute("SELECT alkstore.enqueue('q', '1')").fetchall() == [(1,)]
        owners = connection.execute("""
            SELECT DISTINCT proowner::regrole::text FROM pg_proc
            WHERE pronamespace = 'alkstore'::regnamespace""")
        assert owners.fetchall() == [(role,)]
        connection.execute("DROP EXTENSION alkstore")


def test_not_beside_what_is_there(connection: psycopg.Connection) -> None:
    connection.execute(installer("postgres").encode())
    sentence = f"alkstore {SCHEMA_VERSION} is installed in schema alkstore already, not as an"
    with pytest.raises(NotInPrerequisiteState, match=sentence) as error:
        connection.execute("CREATE EXTENSION alkstore")
    assert len(error.value.diag.context or "") < 6000
    connection.execute("CREATE TABLE t (a int)")
    connection.execute("CREATE SCHEMA jobs CREATE TABLE t (a int)")
    with pytest.raises(NotInPrerequisiteState, match="schema jobs is not empty"):
        connection.execute("CREATE EXTENSION alkstore SCHEMA jobs")
    connection.execute("CREATE ROLE somebody")
    connection.execute("CREATE SCHEMA theirs AUTHORIZATION somebody")
    with pytest.raises(NotInPrerequisiteState, match="schema theirs belongs to somebody"):
        connection.execute("CREATE EXTENSION alkstore SCHEMA theirs")
    assert connection.execute("SELECT extname FROM pg_extension").fetchall() == [("plpgsql",)]


def test_the_other_installers_find_it_installed(connection: psycopg.Connection) -> None:
    connection.execute("CREATE EXTENSION alkstore")
    before = snapshot(connection)
    notices: list[str] = []
    connection.add_notice_handler(lambda n: notices.append(n.message_primary or ""))
    connection.execute(installer("postgres").encode())
    assert notices == [f"alkstore {SCHEMA_VERSION} is installed already"]
    assert snapshot(connection) == before


@pytest.mark.parametrize("schema", ["alkstore", "jobs"])
def test_out_of_it(connection: psycopg.Connection, schema: str) -> None:
    count = "SELECT count(*) FROM pg_depend"
    before = connection.execute(count).fetchall()
    if schema == "jobs":
        connection.execute("CREATE SCHEMA jobs")
    connection.execute(
        f"CREATE EXTENSION alkstore SCHEMA {schema.replace('alkstore', 'public')}".encode()
    )
    connection.execute(f"SELECT {schema}.enqueue('q', '1')".encode())
    connection.execute("SELECT set_config('alkstore.schema', %s, false)", (schema,))
    with pytest.raises(NotInPrerequisiteState, match=f"schema {schema} holds jobs"):
        connection.execute(UNINSTALL.encode())
    connection.execute("SET alkstore.uninstall = 'with jobs'")
    connection.execute(UNINSTALL.encode())
    assert connection.execute(count).fetchall() == before


# -- dump and restore -----------------------------------------------------------------------------

WORK = """
    SELECT {0}.enqueue_batch('q', '[1, 2, 3, {{"b":1, "a":[1.0,1e2], "b":2}}]', max_attempts => 2);
    SELECT {0}.claim('q', 'w', 3);
    SELECT {0}.fail('q', 1, 1, 'e'), {0}.ack('q', 3, 1);
    SELECT {0}.schedule('s', '@every 1s', 'q', '4'), {0}.acquire_lock('l', 'o', 1000);
    SELECT {0}.outbox_enqueue('o', '5');
    SELECT {0}.grant_worker('dumper')
"""
TABLES = ("_job", "_dead_job", "_schedule", "_lock")


@pytest.mark.parametrize("schema", ["alkstore", "Jobs-2"])
@pytest.mark.parametrize("form", ["plain", "custom"])
def test_a_dump_keeps_everything(
    server: Server, url: str, schema: str, form: str, tmp_path: Path
) -> None:
    """Every row, the id sequence, and who was granted what."""
    server.psql("DO $$ BEGIN CREATE ROLE dumper; EXCEPTION WHEN duplicate_object THEN END $$")
    copy = f"extension_{next(_numbers)}"
    server.psql(f"CREATE DATABASE {copy}")
    quoted = f'"{schema}"'

    def state(connection: psycopg.Connection) -> list[object]:
        rows = [
            connection.execute(
                f"SELECT t::text FROM {quoted}.{table} t ORDER BY 1".encode()
            ).fetchall()
            for table in TABLES
        ]
        assert [len(table) for table in rows] == [3, 1, 1, 1]
        return [*rows, snapshot(connection, schema)]

    with psycopg.connect(url, autocommit=True) as connection:
        if schema != "alkstore":
            connection.execute(f"CREATE SCHEMA {quoted}".encode())
            connection.execute(f"CREATE EXTENSION alkstore SCHEMA {quoted}".encode())
        else:
            connection.execute("CREATE EXTENSION alkstore")
        connection.execute(WORK.format(quoted).encode())
        before = state(connection)

    dump = tmp_path / "dump"
    environment = os.environ | server.environment
    pg_dump = [server.bin_dir / "pg_dump", f"--format={form}", "-f", dump, url]
    subprocess.run(pg_dump, check=True, env=environment)
    target = server.database_url(copy)
    restore = {
        "plain": ("psql", "-Xq", "-v", "ON_ERROR_STOP=1", "-o", os.devnull, "-f", dump, target),
        "custom": ("pg_restore", "--exit-on-error", "-d", target, dump),
    }
    program, *arguments = restore[form]
    subprocess.run([server.bin_dir / program, *arguments], check=True, env=environment)

    with psycopg.connect(target, autocommit=True) as connection:
        assert state(connection) == before
        call = f"SELECT {quoted}.enqueue('q', '6'), {quoted}.version()"
        assert connection.execute(call.encode()).fetchall() == [(6, SCHEMA_VERSION)]
        extension = connection.execute(
            "SELECT extversion FROM pg_extension WHERE extname = 'alkstore'"
        )
        assert extension.fetchall() == [(SCHEMA_VERSION,)]
        connection.execute("DROP EXTENSION alkstore")


# -- make install ---------------------------------------------------------------------------------


@pytest.mark.parametrize("pgxs", [True, False])
def test_make_install_puts_the_files_under_destdir(
    server: Server, tmp_path: Path, pgxs: bool
) -> None:
    """And without the server's development files too, into a folder whose name has a space."""
    pg_config = server.bin_dir / "pg_config"
    destination = tmp_path / "dest"
    if not pgxs:
        destination = tmp_path / "a dest"
        script = tmp_path / "pg_config"
        script.write_text(f'#!/bin/sh\n[ "$1" = --pgxs ] || exec {pg_config} "$@"\necho /none\n')
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        pg_config = script
    where = (f"PG_CONFIG={pg_config}", f"DESTDIR={destination}")
    make("install", *where)
    made = {path for path in destination.rglob("*") if path.is_file()}
    assert {path.name for path in made} == FILES
    share = subprocess.check_output([pg_config, "--sharedir"], text=True).strip()
    assert {path.parent for path in made} == {Path(f"{destination}{share}/extension")}
    assert {stat.S_IMODE(path.stat().st_mode) for path in made} == {0o644}
    make("uninstall", *where)
    assert not any(path.is_file() for path in destination.rglob("*"))
