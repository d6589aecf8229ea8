"""Runs the isolation specs: steps of several sessions in a given order, by isolationtester.

    python -m tests.harness.isolation [--accept] [SPEC…]

It needs a server: python -m tests.harness.server run -- python -m tests.harness.isolation
Each spec's output is compared with expected/<spec>.out beside it; --accept writes that file.
"""

from __future__ import annotations

import argparse
import difflib
import os
import subprocess
import sys
from pathlib import Path

from tests.harness.pgtap import INSTALL, ROOT, psql
from tests.harness.server import system_servers

SUITE = ROOT / "tests/sql/isolation"
DATABASE = "alkstore_isolation"
# Not a superuser: row security, by which setup.sql stops a call, does not bind those.
OWNER = "alkstore_isolation_owner"


def isolationtester() -> Path:
    """It comes with a server, or with Debian's client package; any version does for any server."""
    for _, bin_dir in sorted(system_servers().items(), reverse=True):
        program = bin_dir.parent / "lib/pgxs/src/test/isolation/isolationtester"
        if program.exists():
            return program
    sys.exit("no isolationtester beside the programs of any PostgreSQL server")


def check(program: Path, url: str, spec: Path, *, accept: bool) -> list[str]:
    """Run a spec; the difference to what is expected, if any."""
    # A step that waits when no step is left to end that is given up after 30 s, not six minutes.
    env = os.environ | {"PGISOLATIONTIMEOUT": "30"}
    with spec.open() as script:
        done = subprocess.run([program, url], stdin=script, capture_output=True, text=True, env=env)
    expected = spec.parent / "expected" / f"{spec.stem}.out"
    if accept and done.returncode == 0:
        expected.write_text(done.stdout)
    wanted = expected.read_text() if expected.exists() else ""
    difference = difflib.unified_diff(
        wanted.splitlines(), done.stdout.splitlines(), str(expected), "output", lineterm=""
    )
    return [*done.stderr.splitlines(), *difference]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--accept", action="store_true", help="take the output as the expected one")
    parser.add_argument("specs", nargs="*", type=Path)
    options = parser.parse_args(arguments)

    server = os.environ.get("ALKSTORE_TEST_PG_URL")
    if not server:
        sys.exit("ALKSTORE_TEST_PG_URL is not set: run this through tests.harness.server")
    program = isolationtester()
    url = server.rpartition("/")[0] + "/" + DATABASE
    drop = f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)"
    drop_role = f"DROP ROLE IF EXISTS {OWNER}"
    create = (f"CREATE ROLE {OWNER}", f"CREATE DATABASE {DATABASE} OWNER {OWNER}")
    for statement in (drop, drop_role, *create):
        psql("-c", statement, database=server)
    psql("-c", f"SET ROLE {OWNER}", "-f", INSTALL, database=url)
    psql("-f", SUITE / "setup.sql", database=url)

    failed = 0
    specs = options.specs or sorted(SUITE.glob("*.spec"))
    for number, spec in enumerate(specs, start=1):
        wrong = check(program, url, spec, accept=options.accept)
        failed += bool(wrong)
        print(f"{'not ok' if wrong else 'ok'} {number} - {spec.stem}", flush=True)
        for line in wrong:
            print(f"#   {line}")
    print(f"1..{len(specs)}")
    for statement in (drop, drop_role):
        psql("-c", statement, database=server)
    return 1 if failed or not specs else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
