"""Every code block of the README does what it shows; the documents' links lead somewhere.

Blocks are run in the order of the page, those of one kind one after another on the same databases:

- `console`: commands after `$`, and what psql and sqlite3 answer to the lines after their prompts
- `python`: a `print(…)  # text` prints that text; run on both engines
- `sh`: commands that succeed; make's and pip's are only looked up
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import threading
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

import alkstore
from alkstore import cli
from tests.python.waiting import until

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# The page's database, and how its prompts tell which shell is meant.
URL = "postgresql://localhost/app"
PROMPT = re.compile(r"(?:(?P<psql>app[=-]\*?>)|sqlite>|   \.\.\.>) (?P<text>.*)")


def blocks(kind: str) -> list[str]:
    return [text for found, text in BLOCK.findall(README) if found == kind]


def test_every_block_is_of_a_kind_that_is_run() -> None:
    kinds = [kind for kind, _ in BLOCK.findall(README)]
    assert set(kinds) == {"console", "python", "sh"}
    assert README.count("```") == 2 * len(kinds)


@pytest.fixture
def checkout(tmp_path: Path, empty_pg_url: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory like a checkout's root, where psql finds the server and the package is in use."""
    (tmp_path / "sql").symlink_to(ROOT / "sql")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))  # no .psqlrc, no .sqliterc
    for name, value in conninfo_to_dict(empty_pg_url).items():
        monkeypatch.setenv({"dbname": "PGDATABASE"}.get(name, f"PG{name.upper()}"), str(value))
    monkeypatch.setenv("PGOPTIONS", "-c client_min_messages=warning")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    with psycopg.connect(empty_pg_url) as connection:
        connection.execute(ACCOUNT)
    run("sqlite3 app.db", ACCOUNT)
    return tmp_path


ACCOUNT = "CREATE TABLE account (id integer PRIMARY KEY, name text);"


def run(command: str, script: str = "") -> str:
    done = subprocess.run(
        ["bash", "-c", command], input=script, text=True, capture_output=True, timeout=300
    )
    assert (done.returncode, done.stderr) == (0, ""), f"{command}: {done.stderr}{done.stdout}"
    return done.stdout


@dataclass
class Session:
    """A command, the lines typed into it, and the lines that the page says it prints."""

    command: str
    typed: list[str] = field(default_factory=list)
    prints: list[str] = field(default_factory=list)


def sessions(block: str) -> Iterator[Session]:
    session: Session | None = None
    for line in block.splitlines():
        if line.startswith("$ "):
            if session:
                yield session
            session = Session(line[2:])
        elif match := PROMPT.fullmatch(line):
            session = session or Session("psql" if match["psql"] else "sqlite3 app.db")
            session.typed.append(match["text"])
        else:
            assert session, f"output of nothing: {line}"
            session.prints.append(line)
    assert session
    yield session


def lines(text: str) -> list[str]:
    """Without what an editor strips: spaces at a line's end, and the blank line after a table."""
    return [line.rstrip() for line in text.splitlines() if line.strip()]


@pytest.mark.usefixtures("checkout")
def test_the_shells_answer_as_shown() -> None:
    for block in blocks("console"):
        for session in sessions(block):
            printed = run(session.command, "\n".join(session.typed) + "\n")
            assert lines(printed) == lines("\n".join(session.prints)), session


@pytest.mark.usefixtures("checkout")
def test_python_prints_what_its_comments_say(
    engine: str, pg_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(pg_url) as connection:
        connection.execute(ACCOUNT)
    target = "app.db" if engine == "sqlite" else pg_url
    monkeypatch.setattr(alkstore.StopToken, "on_signals", lambda: stop_without_work(target))
    for block in blocks("python"):
        run_python(block, target)


def run_python(block: str, target: str = "app.db") -> None:
    """Run a block on that database; it must print what its comments say."""
    expected = re.findall(r"print\(.*\)  # (.*)", block)
    assert len(expected) == block.count("print(")
    code = block.replace('"app.db"', repr(target))
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(code, "a block", "exec"), {})  # noqa: S102
    assert output.getvalue().splitlines() == expected


def stop_without_work(target: str) -> alkstore.StopToken:
    """When the worker has done all there is."""
    return stop_when(target, lambda store: store.queue("emails").next_due() is None)


def stop_when(target: str, done: Callable[[alkstore.Store], bool]) -> alkstore.StopToken:
    """A stop that comes, in place of a signal, when what a page shows is done."""
    stop = alkstore.StopToken()

    def watch() -> None:
        try:
            with alkstore.open(target) as store:
                until(lambda: done(store))
        finally:
            stop.set()

    threading.Thread(target=watch).start()
    return stop


def test_python_on_postgres_is_the_same_but_for_the_url() -> None:
    assert all(block.count('"app.db"') == 1 for block in blocks("python"))
    assert f'"app.db") as store:  # or "{URL}"' in README


@pytest.mark.usefixtures("checkout")
def test_commands_succeed(empty_pg_url: str) -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    for line in "".join(blocks("sh")).splitlines():
        match shlex.split(line, comments=True):
            case []:
                pass
            case ["make", target]:
                assert target in targets
            case ["pip", "install", what]:
                assert what == "." or what in [f".[{extra}]" for extra in extras]
            case ["alkstore", "work", *arguments]:  # which would not end
                cli.parser().parse_args(["work", *arguments])
            case _:
                run(line.replace(URL, shlex.quote(empty_pg_url)))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    text = BLOCK.sub("", document.read_text())
    for link in re.findall(r"\]\(([^)]+)\)", text):
        path, _, anchor = link.partition("#")
        target = document.parent / path if path else document
        assert target.exists(), link
        if anchor:
            headings = re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE)
            assert anchor in [re.sub(r"[^\w -]", "", h).lower().replace(" ", "-") for h in headings]
