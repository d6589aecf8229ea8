"""Which statements of the SQLite triggers the SQL suite runs, and which of their refusals it meets.

    python -m tests.harness.sqlite_coverage

SQLite traces a trigger's statements as comments, each with its text as EXPLAIN shows it.
Fails when one that did not run, or was not met, has no reason below.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from contextlib import closing
from typing import Any

import apsw

from alkstore._sql import compose
from tests.harness.sqlite_tap import CLOCK, ROOT, Case, apsw_driver, load, suite
from tests.lint.sqlite import statement

# Why the suite cannot run a statement or meet a refusal, by its trigger and its text.
REASONS: dict[tuple[str, str], str] = {}

TRIGGER = "-- TRIGGER "
REFUSAL = re.compile(r"RAISE\(ABORT, '((?:[^']|'')*)'\)")


def bodies(connection: Any) -> dict[str, list[str]]:
    """The statements of each trigger, as SQLite traces them."""
    triggers = connection.execute(
        "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE type = 'trigger'"
    ).fetchall()
    found: dict[str, list[str]] = {name: [] for _, name, *_ in triggers}
    for kind, name, table, sql in triggers:
        body: list[str] = []
        fires = statement(connection, kind, name, table, sql)
        for _, opcode, _, _, _, text, *_ in connection.execute(f"EXPLAIN {fires}"):
            if opcode == "Init":  # of the statement, then of each trigger that it may fire
                body = found[name] if text == TRIGGER + name else []
            elif opcode == "Trace":
                body.append(text.removeprefix("-- "))
    return found


class Tracer:
    """Follows a connection's trace: which statement of which trigger is running."""

    def __init__(self, bodies: dict[str, list[str]]) -> None:
        self.bodies = bodies
        self.ran: set[tuple[str, str]] = set()
        # Triggers within one another, each with how many of its statements have begun.
        self.stack: list[tuple[str, int]] = []

    def __call__(self, event: dict[str, Any]) -> None:
        sql = event["sql"]
        if not event["trigger"]:
            self.stack = []
        elif sql.startswith("TRIGGER "):
            self.stack.append((sql.removeprefix("TRIGGER "), 0))
        else:
            self.begin(sql)

    def begin(self, sql: str) -> None:
        while self.stack:
            name, begun = self.stack.pop()
            if self.bodies.get(name, [])[begun : begun + 1] == [sql]:
                self.stack.append((name, begun + 1))
                self.ran.add((name, sql))
                return
            # That trigger has ended, or RAISE(IGNORE) left it.

    def refused(self, message: str) -> None:
        """The statement that is running raised this."""
        if self.stack:
            self.ran.add((self.stack[-1][0], message))


Item = tuple[str, str]  # a trigger and one of its statements, or of its refusals


def measure(setup: str, tests: Iterable[Case]) -> tuple[list[Item], list[Item], set[Item]]:
    """All statements and all refusals of the triggers, and those that ran."""
    driver = apsw_driver()
    with closing(driver.open(setup)) as template:
        tracer = Tracer(bodies(template))
        for test in tests:
            with closing(driver.copy(template, "", ":memory:")) as connection:
                connection.trace_v2(apsw.SQLITE_TRACE_STMT, tracer)
                for step in test.steps:
                    if message := driver.run(connection, step.sql).error:
                        tracer.refused(message)
    statements = [(name, text) for name, body in tracer.bodies.items() for text in body]
    refusals = [(name, m) for name, text in statements for m in REFUSAL.findall(text)]
    return statements, refusals, tracer.ran


def tell(what: str, wanted: list[Item], ran: set[Item]) -> bool:
    gaps = [item for item in wanted if item not in ran]
    share = 100 * (len(wanted) - len(gaps)) / len(wanted)
    print(f"{share:.1f} % of {len(wanted)} {what}")
    for name, text in gaps:
        print(f"  {name}: {text}\n    {REASONS.get((name, text), 'no reason is known')}")
    return all(gap in REASONS for gap in gaps)


def main() -> int:
    setup = compose("sqlite", ROOT / "sql") + CLOCK.read_text()
    statements, refusals, ran = measure(setup, (test for _, test in load(suite())))
    complete = tell("statements of triggers are run by the SQLite SQL suite", statements, ran)
    met = tell("refusals of triggers are met by the SQLite SQL suite", refusals, ran)
    stale = [item for item in REASONS if item in ran or item not in {*statements, *refusals}]
    for name, text in stale:
        print(f"a reason for what runs or is not there: {name}: {text}")
    return 0 if complete and met and not stale else 1


if __name__ == "__main__":
    sys.exit(main())
