"""Runs the pgTAP suite: one new database, alkstore installed by psql, pgTAP, then pg_prove.

It needs a server: python -m tests.harness.server run -- python -m tests.harness.pgtap [FILE …]
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.harness.need import pgtap_sql

ROOT = Path(__file__).resolve().parents[2]
SUITE = ROOT / "tests/sql/postgres"
INSTALL = ROOT / "sql/postgres/install.sql"
DATABASE = "alkstore_pgtap"

# Away from public, so that a test can look whether anything was made there, and last on the path,
# so that the callers' usual path is in force.
LOAD_PGTAP = f"""
CREATE SCHEMA tap;
GRANT USAGE ON SCHEMA tap TO PUBLIC;
ALTER DATABASE {DATABASE} SET search_path = "$user", public, tap;
SET search_path = tap;
\\i {pgtap_sql()}
"""


def suite() -> list[Path]:
    """Every test file. clock.sql and files starting with _ are included by others."""
    helpers = {"clock.sql"}
    files = sorted(SUITE.rglob("*.sql"))
    return [f for f in files if f.name not in helpers and not f.name.startswith("_")]


def psql(*arguments: str | Path, database: str = DATABASE, script: str | None = None) -> None:
    command = ["psql", "-Xq", "-v", "ON_ERROR_STOP=1", "-d", database, *arguments]
    env = os.environ | {"PGOPTIONS": "-c client_min_messages=warning"}
    subprocess.run(command, input=script, text=True, check=True, stdout=subprocess.DEVNULL, env=env)


@contextmanager
def database(server: str) -> Iterator[str]:
    """The URL of a new database of a server with alkstore and pgTAP in it."""
    drop = ["-c", f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)"]
    psql(*drop, "-c", f"CREATE DATABASE {DATABASE}", database=server)
    url = server.rpartition("/")[0] + "/" + DATABASE
    psql("-f", INSTALL, database=url)
    psql(database=url, script=LOAD_PGTAP)
    yield url
    psql(*drop, database=server)


def prove(url: str, files: Sequence[Path]) -> int:
    """Run test files; the exit status."""
    return subprocess.run(["pg_prove", "--dbname", url, *files]).returncode


def main(arguments: list[str]) -> int:
    server = os.environ.get("ALKSTORE_TEST_PG_URL")
    if not server:
        sys.exit("ALKSTORE_TEST_PG_URL is not set: run this through tests.harness.server")
    files = [Path(argument) for argument in arguments] or suite()
    if not files:
        sys.exit(f"no test under {SUITE}")
    with database(server) as url:
        return prove(url, files)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
