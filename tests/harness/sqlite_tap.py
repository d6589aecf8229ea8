"""Runs the SQLite SQL suite, without the Python package at work: TAP out, exit status 1 on failure.

    python -m tests.harness.sqlite_tap
        [--apsw] [--file | --attached | --shell] [--pragma NAME=VALUE]… [FILE…]

A test file is a script for the sqlite3 shell, with what each statement must give in comments:

    -- [clause-id] title             starts a test, on a fresh database with the clock stopped
    SELECT 1, NULL;
    --> 1|NULL                       one such line for each line of output, exact and in order
    SELECT 1 WHERE 0;
    --> (no rows)
    SELECT missing;
    --! no such column               the statement fails, with a message that starts so

A statement with no such comment must succeed and give no rows. A test that expects nothing at all,
a file without tests and a title given twice are refused.

Each test runs through the standard library's sqlite3, or with --apsw through apsw: in memory; with
--file on a database file; with --attached on a file attached to an empty database. With --shell it
runs on a file through the sqlite3 shell, installed there by sql/sqlite/install.sql.
"""

from __future__ import annotations

import argparse
import functools
import re
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from alkstore._sql import compose

ROOT = Path(__file__).resolve().parents[2]
SUITE = ROOT / "tests/sql/sqlite"
CLOCK = SUITE / "clock.sql"
NO_ROWS = "(no rows)"


class BadTest(Exception):
    """A test file that does not say what it tests."""


@dataclass
class Step:
    """One statement and what it must give: lines of output, or an error."""

    sql: str
    line: int
    rows: list[str] = field(default_factory=list)
    error: str | None = None
    expects: bool = False

    def expect(self, mark: str, text: str) -> None:
        if self.error is not None or (self.expects and mark == "!"):
            raise BadTest(f"line {self.line}: an error is the only thing a statement can give")
        if self.expects and (text == NO_ROWS or not self.rows):
            raise BadTest(f"line {self.line}: {NO_ROWS} together with a row")
        if mark == "!":
            self.error = text
        elif text != NO_ROWS:
            self.rows.append(text)
        self.expects = True


@dataclass
class Case:
    title: str
    steps: list[Step] = field(default_factory=list)


@dataclass(frozen=True)
class Outcome:
    """What a statement gave."""

    rows: list[str]
    error: str | None = None


def parse(text: str) -> list[Case]:
    """Read a test file. BadTest where it is not one."""
    tests: list[Case] = []
    statement: list[str] = []
    for number, line in enumerate(text.split("\n"), start=1):
        mark = re.match(r"--([>!])(?: (.*))?$", line)
        starts_test = line.startswith("-- [")
        if (mark or starts_test) and statement:
            raise BadTest(f"line {number}: the statement before it has not ended")
        if starts_test:
            tests.append(Case(line.removeprefix("-- ").rstrip()))
        elif mark:
            if not tests or not tests[-1].steps:
                raise BadTest(f"line {number}: no statement to expect this of")
            tests[-1].steps[-1].expect(mark[1], mark[2] or "")
        elif statement or not re.match(r"\s*(--.*)?$", line):
            if not tests:
                raise BadTest(f"line {number}: a statement before the first test")
            statement.append(line)
            sql = "\n".join(statement)
            if sqlite3.complete_statement(sql + "\n"):
                tests[-1].steps.append(Step(sql, number - len(statement) + 1))
                statement = []
    if statement:
        raise BadTest("the last statement has not ended")
    if not tests:
        raise BadTest("no test")
    for test in tests:
        if not any(step.expects for step in test.steps):
            raise BadTest(f"{test.title}: expects nothing")
    return tests


# -- a driver -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Driver:
    """How Python runs SQL: the standard library's sqlite3, or apsw, which brings its own SQLite."""

    connect: Callable[[str], Any]
    errors: tuple[type[Exception], ...]

    def open(self, setup: str, database: str | Path = ":memory:") -> Any:
        connection = self.connect(str(database))
        if self is STDLIB:
            connection.executescript(setup)
        else:
            connection.execute(setup).fetchall()
        return connection

    def copy(self, template: Any, pragmas: str, database: str | Path) -> Any:
        """Open a new database with all that the template has: faster than to install again."""
        connection = self.open(pragmas, database)
        if self is STDLIB:
            template.backup(connection)
        else:
            with connection.backup("main", template, "main") as backup:
                backup.step()
        return connection

    def run(self, connection: Any, sql: str) -> Outcome:
        try:
            rows = connection.execute(sql).fetchall()
        except self.errors as error:
            # apsw once put the class of the error before the message.
            return Outcome([], str(error).removeprefix(f"{type(error).__name__}: "))
        # Lines, not rows: a text with a newline in it takes two, as in the shell.
        return Outcome([line for row in rows for line in "|".join(map(show, row)).split("\n")])


STDLIB = Driver(
    functools.partial(sqlite3.connect, isolation_level=None), (sqlite3.Error, sqlite3.Warning)
)


def apsw_driver() -> Driver:
    import apsw

    return Driver(apsw.Connection, (apsw.Error,))


def version(driver: Driver, connection: Any) -> str:
    return driver.run(connection, "SELECT sqlite_version()").rows[0]


def run(driver: Driver, steps: list[Step], connection: Any) -> list[Outcome]:
    with closing(connection):
        return [driver.run(connection, step.sql) for step in steps]


def show(value: object) -> str:
    """A value as the shell shows it."""
    if value is None:
        return "NULL"
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


# -- the shell ----------------------------------------------------------------------------------

BOUNDARY = "-- end of statement --"

SHELL_ERROR = re.compile(r"(?:Runtime error|Parse error|Error:?) near line (\d+): (.*?)( \(\d+\))?")


def run_shell(steps: list[Step], setup: str, database: str | Path) -> list[Outcome]:
    # The shell says on standard error which line of the script failed, and goes on after it.
    script = [".bail on", ".mode list", ".nullvalue NULL", setup, ".bail off", f".print {BOUNDARY}"]
    line = sum(part.count("\n") + 1 for part in script) + 1
    spans = []
    for step in steps:
        spans.append(range(line, line + step.sql.count("\n") + 1))
        script += [step.sql, f".print {BOUNDARY}"]
        line = spans[-1].stop + 1
    done = subprocess.run(
        ["sqlite3", "-batch", "-init", "/dev/null", database],
        input=("\n".join(script) + "\n").encode(),
        capture_output=True,
        cwd=ROOT,
    )
    stderr = done.stderr.decode()
    outputs = done.stdout.decode().split(BOUNDARY + "\n")
    if outputs[0] or len(outputs) != len(steps) + 2:
        return [Outcome([], f"the shell's setup failed: {outputs[0]}{stderr}")] * len(steps)
    errors = shell_errors(stderr)
    return [
        Outcome(output.split("\n")[:-1], next((errors[n] for n in span if n in errors), None))
        for output, span in zip(outputs[1:], spans, strict=False)
    ]


def shell_errors(text: str) -> dict[int, str]:
    """The messages on the shell's standard error, by line of the script."""
    errors = {}
    for line in text.splitlines():
        if match := SHELL_ERROR.fullmatch(line):
            errors[int(match[1])] = match[2]
        elif not line.startswith("  "):  # it shows the statement indented
            raise RuntimeError(f"an unknown message of the sqlite3 shell: {line}")
    return errors


# -- judging and telling --------------------------------------------------------------------------


def complaint(step: Step, outcome: Outcome) -> list[str]:
    """What is wrong with an outcome; nothing when it is as the step expects."""
    if step.error is not None:
        got = outcome.error or "success"
        right = outcome.error is not None and outcome.error.startswith(step.error)
        return [] if right else [f"expected error: {step.error}", f"got: {got}"]
    if outcome.error is not None:
        return [f"unexpected error: {outcome.error}"]
    if outcome.rows == step.rows:
        return []
    if not step.expects:
        return ["rows that nothing expects:", *outcome.rows]
    return ["expected:", *(step.rows or [NO_ROWS]), "got:", *(outcome.rows or [NO_ROWS])]


def judge(test: Case, outcomes: Iterable[Outcome]) -> list[str]:
    """The first complaint about a test, with its statement."""
    for step, outcome in zip(test.steps, outcomes, strict=True):
        if wrong := complaint(step, outcome):
            return [f"line {step.line}:", *step.sql.splitlines(), *wrong]
    return []


def load(files: Iterable[Path]) -> Iterator[tuple[Path, Case]]:
    titles: set[str] = set()
    for file in files:
        try:
            tests = parse(file.read_text(encoding="utf-8"))
        except BadTest as error:
            raise BadTest(f"{file}: {error}") from None
        for test in tests:
            if test.title in titles:
                raise BadTest(f"{file}: a second test with the title {test.title}")
            titles.add(test.title)
            yield file, test


def suite() -> list[Path]:
    files = [f for f in sorted(SUITE.rglob("*.sql")) if f != CLOCK and not f.name.startswith("_")]
    if not files:
        raise BadTest(f"no test under {SUITE}")
    return files


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--apsw", action="store_true", help="run by apsw, on its own SQLite")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--file", action="store_true", help="a database file, not memory")
    where.add_argument("--attached", action="store_true", help="a file, attached to another")
    where.add_argument("--shell", action="store_true", help="run by the sqlite3 shell")
    parser.add_argument("--pragma", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("files", nargs="*", type=Path)
    options = parser.parse_args(arguments)

    driver = apsw_driver() if options.apsw else STDLIB
    pragmas = "\n".join(f"PRAGMA {pragma};" for pragma in options.pragma)
    setup = "\n".join([pragmas, compose("sqlite", ROOT / "sql"), CLOCK.read_text()])
    # .output: a pragma such as journal_mode answers.
    shell_setup = f"""\
.output /dev/null
{pragmas}
.output stdout
.read sql/sqlite/install.sql
.read {CLOCK}"""

    failed = 0
    try:
        tests = list(load(options.files or suite()))
    except BadTest as error:
        print(f"Bail out! {error}")
        return 1
    with closing(driver.open(setup)) as template, tempfile.TemporaryDirectory() as folder:
        print(f"# SQLite {'of the shell' if options.shell else version(driver, template)}")
        for number, (file, test) in enumerate(tests, start=1):
            database = Path(folder, f"{number}.db")
            if options.shell:
                outcomes = run_shell(test.steps, shell_setup, database)
            elif options.attached:
                driver.copy(template, pragmas, database).close()
                connection = driver.open(f"{pragmas}\nATTACH '{database}' AS attached;")
                outcomes = run(driver, test.steps, connection)
            else:
                connection = driver.copy(
                    template, pragmas, database if options.file else ":memory:"
                )
                outcomes = run(driver, test.steps, connection)
            wrong = judge(test, outcomes)
            failed += bool(wrong)
            print(f"{'not ok' if wrong else 'ok'} {number} - {file.stem}: {test.title}")
            for line in [str(file), *wrong] if wrong else []:
                print(f"#   {line}")
    print(f"1..{len(tests)}")
    if failed:
        print(f"# {failed} of {len(tests)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
