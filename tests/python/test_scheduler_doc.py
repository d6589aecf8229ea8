"""docs/scheduler.md: its commands and its Python do what they show."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import alkstore
from tests.python.test_readme import BLOCK, checkout, lines, run, run_python, sessions

__all__ = ["checkout"]  # the fixture

PAGE = Path(__file__).parents[2] / "docs" / "scheduler.md"


def blocks(kind: str) -> list[str]:
    return [text for found, text in BLOCK.findall(PAGE.read_text()) if found == kind]


@pytest.fixture
def installed(checkout: Path, empty_pg_url: str) -> Path:
    alkstore.install(empty_pg_url)
    alkstore.install("app.db")
    return checkout


def test_every_block_is_of_a_kind_that_is_run() -> None:
    # Those of kind sql run in test_fire_without_runner.py.
    assert {kind for kind, _ in BLOCK.findall(PAGE.read_text())} == {
        *("console", "python", "sh", "sql")
    }


# In place of the page's five seconds, in which a slow machine may not get so far.
TIMEOUT = """#!/bin/sh
shift 3
"$@" &
while kill -0 $! && ! grep -q leads log; do sleep 0.1; done
kill -TERM $!
wait $!
"""


@pytest.fixture
def patient_timeout(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = installed / "bin" / "timeout"
    program.parent.mkdir()
    program.write_text(TIMEOUT)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.usefixtures("patient_timeout")
def test_the_shells_answer_as_shown() -> None:
    for block in blocks("console"):
        for session in sessions(block):
            printed = run(session.command, "\n".join(session.typed) + "\n")
            assert lines(printed) == lines("\n".join(session.prints)), session


@pytest.mark.usefixtures("installed")
def test_commands_succeed() -> None:
    for block in blocks("sh"):
        for line in block.splitlines():
            assert run(line) == ""


@pytest.mark.usefixtures("installed")
def test_python_prints_what_its_comments_say(engine: str, empty_pg_url: str) -> None:
    for block in blocks("python"):
        run_python(block, "app.db" if engine == "sqlite" else empty_pg_url)
