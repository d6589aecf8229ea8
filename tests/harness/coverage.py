"""Which statements of the PostgreSQL functions the pgTAP suite runs, counted by plpgsql_check.

Type: python -m tests.harness.coverage

It starts a server of its own, PG=<major> names which, since the profiler has to be loaded with it.
Fails when less than 98 % ran, or when a statement that did not run has no reason below.
"""

from __future__ import annotations

import os
import sys
from typing import NamedTuple

import psycopg

from tests.harness import pgtap
from tests.harness.server import Server

LEAST = 98.0

# Why no test of the suite can run a statement, by its function and its line.
REASONS: dict[tuple[str, str], str] = {}

SETTINGS = {
    "shared_preload_libraries": "plpgsql_check",
    "plpgsql_check.profiler": "on",
    "track_functions": "all",
}

# The profiler counts statements; or lines, where the arguments may be of any type, and none when
# such a function never ran. It does not know SQL functions: these count as one statement each, but
# for those that the planner puts into their callers' queries: nothing counts their calls.
COUNTS = """
    WITH f AS (
        SELECT p.oid, p.proname, p.prosrc, l.lanname,
          p.prosecdef OR p.proconfig IS NOT NULL AS is_called,
          'anycompatible'::regtype = ANY (p.proargtypes) AS takes_any
        FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
        WHERE p.pronamespace = 'alkstore'::regnamespace
    ),
    by_statement AS MATERIALIZED (SELECT * FROM f WHERE lanname = 'plpgsql' AND NOT takes_any),
    by_line AS MATERIALIZED (SELECT * FROM f WHERE lanname = 'plpgsql' AND takes_any)
    SELECT c.name, c.line, btrim(coalesce(split_part(c.source, E'\n', c.line), '')), c.runs
    FROM (
        SELECT f.proname, f.prosrc, s.lineno, s.exec_stmts
        FROM by_statement f, tap.plpgsql_profiler_function_statements_tb(f.oid) s
        UNION ALL
        SELECT f.proname, f.prosrc, s.stmt_lineno, coalesce(s.exec_stmts, 0)
        FROM by_line f
        LEFT JOIN tap.plpgsql_profiler_function_tb(f.oid) s ON s.stmt_lineno IS NOT NULL
        UNION ALL
        SELECT f.proname, '', NULL, coalesce(s.calls, 0)
        FROM f LEFT JOIN pg_stat_user_functions s ON s.funcid = f.oid
        WHERE f.lanname = 'sql' AND f.is_called
    ) c (name, source, line, runs)
    ORDER BY c.name, c.line
"""


class Statement(NamedTuple):
    function: str
    line: int | None
    text: str
    runs: int


def measure(server: Server) -> tuple[int, list[Statement]]:
    """Run the suite; its exit status, and how often each statement ran."""
    with (
        pgtap.database(server.url) as url,
        psycopg.connect(url, autocommit=True) as connection,
    ):
        connection.execute("CREATE EXTENSION plpgsql_check SCHEMA tap")
        status = pgtap.prove(url, pgtap.suite())
        return status, [Statement(*row) for row in connection.execute(COUNTS)]


def report(statements: list[Statement]) -> int:
    """Print the coverage and what is not covered; the exit status."""
    missed = [s for s in statements if s.runs == 0]
    reasons = dict(REASONS)
    unexplained = 0
    for statement in missed:
        reason = reasons.pop((statement.function, statement.text), None)
        unexplained += reason is None
        place = f"{statement.function}, line {statement.line}: {statement.text}"
        print(f"not run: {place if statement.line else statement.function}")
        print(f"         {reason or 'NO REASON GIVEN'}")
    for function, text in reasons:
        print(f"a reason too many: {function}: {text}")
    functions = len({s.function for s in statements})
    ran = len(statements) - len(missed)
    percent = 100 * ran / len(statements)
    print(f"{ran} of {len(statements)} statements of {functions} functions ran: {percent:.1f} %")
    return 1 if percent < LEAST or unexplained or reasons else 0


def main() -> int:
    with Server(settings=SETTINGS) as server:
        os.environ.update(server.environment)
        status, statements = measure(server)
    return report(statements) or status


if __name__ == "__main__":
    sys.exit(main())
