"""docs/sqlite.md: what it shows is run, in the order of the page."""

from __future__ import annotations

import os
import re
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from alkstore._sql import installer
from tests.harness import sqlite_matrix
from tests.python.test_readme import ACCOUNT, BLOCK, ROOT, lines, run, run_python, sessions

PAGE = (ROOT / "docs/sqlite.md").read_text()


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Like a checkout's root, with a table of the application's and a database to attach."""
    (tmp_path / "sql").symlink_to(ROOT / "sql")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))  # no .sqliterc
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    for name, script in (("app.db", ACCOUNT), ("jobs.db", installer("sqlite"))):
        with closing(sqlite3.connect(name)) as connection:
            connection.executescript(script)


def run_console(block: str) -> None:
    for session in sessions(block):
        printed = lines(run(session.command, "\n".join(session.typed) + "\n"))
        shown = lines("\n".join(session.prints))
        assert len(printed) == len(shown), session
        for line, pattern in zip(printed, shown, strict=True):
            assert re.fullmatch(re.escape(pattern).replace("…", ".*"), line), session


def run_sql(block: str) -> None:
    with closing(sqlite3.connect("app.db", isolation_level=None)) as connection:
        connection.executescript(block)


@pytest.mark.usefixtures("checkout")
def test_every_block_does_what_it_shows() -> None:
    run_block = {"console": run_console, "python": run_python, "sql": run_sql}
    blocks = BLOCK.findall(PAGE)
    assert PAGE.count("```") == 2 * len(blocks)
    for kind, text in blocks:
        run_block[kind](text)


def test_the_versions_are_those_of_the_matrix() -> None:
    _, _, versions = PAGE.partition("## Versions")
    tested = {release.rpartition(".")[0].rpartition(".")[0] for release in sqlite_matrix.APSW}
    assert set(re.findall(r"\b3\.\d\d\b", versions)) == {"3.38", *tested}
