"""The map of the contract: python -m tests.lint.clauses prints which SQL tests pin each clause.

A test's title starts with the clause's id and is the same on both engines; what one engine alone
can be asked is listed here, with the reason.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Clauses that SQL alone cannot pin on an engine, and what does.
WITHOUT_SQL_TESTS = {
    "poll-net": "what a consumer does: tests/python",
    "runner": "what the Python package does: tests/python/test_runner.py",
    "dump": "what other programs do: tests/python/test_dump_pg.py, test_coexistence_sqlite.py",
}
POSTGRES_CLAUSES = {
    "privileges": "SQLite has no roles",
    "wake": "SQLite consumers watch PRAGMA data_version",
}
OTHER_IDS = {
    "lint": "rules for the SQL itself",
    "queue-stats": "a view, which the contract describes among the columns",
}
POSTGRES_TITLES = {
    "SQLite's call takes rows, not arrays": {
        "[ack-batch] PostgreSQL: NULL for the ids and arrays of two lengths are AK003",
        "[options] a batch refuses what enqueue refuses",
        "[options] the options of a batch hold for each of its jobs",
        "[payload] a batch is one JSON array",
        "[payload] a batch keeps the bytes of each of its elements",
    },
    "PostgreSQL has types for them": {
        "[options] run_at is cut to the second",
        "[payload] a json, a jsonb and a number are taken as their text",
        "[payload] schedule: json and jsonb are taken as well as text",
    },
    "only PostgreSQL notes where a costly walk ended": {
        "[claim-order] a claim may go on from where a costly walk ended, and finds the rest all "
        "the same",
        "[claim-order] the next second begins at the head again",
    },
    "SQLite's clock is unixepoch()": {
        "[clock] a call reads the clock once",
        "[clock] the clock tells the time of day",
        "[clock] the clock tells whole seconds",
    },
    "SQLite has one writer, and cannot catch an error": {
        "[fire] a serialization failure does not stand in last_error",
        "[fire] a serialization failure is the caller's",
    },
    "an engine's plans are its own; SQLite's: tests/python/test_plans_sqlite.py": {
        "[plans] a call on a job reads the primary key",
        "[plans] a claim reads the partial indexes, the statistics being those of empty tables "
        "or fresh",
        "[plans] get_job reads the primary keys",
    },
    "SQLite's messages are literals": {"[refusals] schedule: the message quotes the spec"},
}
SQLITE_TITLES = {
    "PostgreSQL's text holds neither NUL nor bytes that are no UTF-8, and takes no bytea": {
        "[error-text] an error given to fail as bytes becomes text, cut at the first NUL",
        "[error-text] an error given to retry as bytes becomes text, cut at the first NUL",
        "[name] a name is text without NUL",
        "[payload] bytes in a string that are not UTF-8 come back as they went in",
        "[payload] text with a NUL byte is refused",
    },
    "PostgreSQL's functions have no such argument": {
        "[options] a job's id is the queue's to choose",
        "[outbox] queue and outbox together are refused",
        "[outbox] stamps cannot be given with an outbox",
    },
    "a matter of SQLite's types and statements": {
        "[payload] a number is taken as its text",
        "[refusals] a refusal in a transaction undoes its own statement only",
        "[refusals] the caller's conflict clause changes nothing about a refusal",
    },
}


def clauses(contract: Path) -> list[str]:
    return re.findall(r"^### \[([a-z-]+)\]", contract.read_text(encoding="utf-8"), re.MULTILINE)


def titles(suite: Path, pattern: str) -> list[str]:
    """The titles in all files of a suite, in their order."""
    return [
        match[1].replace("''", "'").rstrip()
        for file in sorted(suite.rglob("*.sql"))
        for match in re.finditer(pattern, file.read_text(encoding="utf-8"), re.MULTILINE)
    ]


def postgres_titles(root: Path) -> list[str]:
    return titles(root / "tests/sql/postgres", r"'(\[[a-z-]+\] (?:[^']|'')+)'")


def sqlite_titles(root: Path) -> list[str]:
    return titles(root / "tests/sql/sqlite", r"^-- (\[[a-z-]+\] .*)$")


def clause(title: str) -> str:
    return title[1 : title.index("]")]


def check(
    ids: Iterable[str],
    postgres: Iterable[str],
    sqlite: Iterable[str],
    postgres_alone: Mapping[str, set[str]] = POSTGRES_TITLES,
    sqlite_alone: Mapping[str, set[str]] = SQLITE_TITLES,
) -> Iterator[str]:
    """The complaints about two suites."""
    ids, postgres, sqlite = set(ids), set(postgres), set(sqlite)
    for title in sorted(postgres | sqlite):
        if clause(title) not in ids | OTHER_IDS.keys():
            yield f"{title}: the contract has no such clause"
    for engine, here, there, alone in (
        ("PostgreSQL", postgres, sqlite, postgres_alone),
        ("SQLite", sqlite, postgres, sqlite_alone),
    ):
        excused = set().union(*alone.values())
        for title in sorted(here - there - excused):
            if engine != "PostgreSQL" or clause(title) not in {*POSTGRES_CLAUSES, "lint"}:
                yield f"{title}: on {engine} alone"
        for title in sorted(excused - (here - there)):
            yield f"{title}: is listed as on {engine} alone, and is not"
    for id in sorted(ids - WITHOUT_SQL_TESTS.keys()):
        for engine, suite in (("PostgreSQL", postgres), ("SQLite", sqlite)):
            pinned = any(clause(title) == id for title in suite)
            if not pinned and not (engine == "SQLite" and id in POSTGRES_CLAUSES):
                yield f"[{id}] is pinned by no test on {engine}"


def table(ids: list[str], postgres: list[str], sqlite: list[str]) -> Iterator[str]:
    for id in ids:
        pinned = [title for title in dict.fromkeys(postgres + sqlite) if clause(title) == id]
        yield f"[{id}]" + (f" {WITHOUT_SQL_TESTS[id]}" if id in WITHOUT_SQL_TESTS else "")
        for title in pinned:
            engines = {(True, True): "both", (True, False): "PostgreSQL", (False, True): "SQLite"}
            where = engines[title in postgres, title in sqlite]
            yield f"  {where:10}  {title.removeprefix(f'[{id}] ')}"


def complaints(root: Path = ROOT) -> list[str]:
    """The complaints about a checkout."""
    ids = clauses(root / "docs/contract.md")
    return list(check(ids, postgres_titles(root), sqlite_titles(root)))


def main() -> int:
    ids = clauses(ROOT / "docs/contract.md")
    postgres, sqlite = postgres_titles(ROOT), sqlite_titles(ROOT)
    counts = f"{len(ids)} clauses, {len(postgres)} tests on PostgreSQL, {len(sqlite)} on SQLite"
    wrong = complaints()
    print("\n".join([*table(ids, postgres, sqlite), counts, *wrong]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
