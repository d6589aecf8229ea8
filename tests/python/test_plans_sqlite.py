"""What the calls cost on SQLite: steps of its virtual machine, which count every row looked at.

Never seconds, and no version of SQLite or shape of the statistics may change the answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from alkstore._sql import installer

CLOCK = Path(__file__).parents[1] / "sql/sqlite/clock.sql"  # stands still at 1000000000

# Jobs straight into storage: `n` runs from 1, and what a kind does not say is as for a ready job.
STORE = """
    INSERT INTO __alkstore_job(
        queue, payload, priority, attempts, max_attempts, visibility_timeout_s, backoff_base_s,
        created_at, run_at, expires_at, worker_id, claimed_at, claim_expires_at, ready, due_at)
    WITH RECURSIVE number(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM number WHERE n < {count})
    SELECT
        {queue}, '1', {priority}, 0, 3, 300, 5, 1000000000, {run_at}, {expires_at},
        {worker_id}, {claimed_at}, {claim_expires_at}, {ready}, {due_at}
    FROM number"""
READY = {
    "queue": "'q'",
    "priority": "0",
    "run_at": "1000000000",
    "expires_at": "NULL",
    "worker_id": "NULL",
    "claimed_at": "NULL",
    "claim_expires_at": "NULL",
    "ready": "1",
    "due_at": "1000000000",
}
DELAYED = READY | {"run_at": "1000000000 + n", "ready": "0", "due_at": "1000000000 + n"}
CLAIMED = READY | {
    "worker_id": "'w'",
    "claimed_at": "1000000000",
    "claim_expires_at": "1000000000 + n % 300",
    "ready": "0",
    "due_at": "1000000001 + n % 300",
}


class Database:
    def __init__(self) -> None:
        self.connection = apsw.Connection("")
        self.connection.execute(installer("sqlite"))
        self.connection.execute(CLOCK.read_text())

    def store(self, kind: dict[str, str], count: int, **columns: str) -> None:
        self.connection.execute(STORE.format(count=count, **kind | columns))

    def steps(self, sql: str) -> tuple[int, list[Any]]:
        """How many steps a statement took, and its rows."""
        seen = []

        def note(event: dict[str, Any]) -> None:
            seen.append(event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"])

        self.connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, note)
        # Not from the cache of statements: such a one counts on.
        rows = self.connection.cursor().execute(sql, can_cache=False).fetchall()
        self.connection.trace_v2(0, None)
        [steps] = seen
        return steps, rows

    def life(self) -> dict[str, int]:
        """The steps of each call, on the first jobs of queue q; nothing of it stays."""
        with self.connection as connection:
            connection.execute("SAVEPOINT life")
            steps = {}
            for name, (sql, expected) in LIFE.items():
                steps[name], rows = self.steps(sql)
                assert rows == expected, name
            connection.execute("ROLLBACK TO life")
        return steps


def by_id(call: str, job_id: int, columns: str = "", values: str = "") -> str:
    return (
        f"INSERT INTO alkstore_{call}(queue, job_id, attempt{columns})"
        f" VALUES ('q', {job_id}, 1{values}) RETURNING job_id"
    )


CLAIM = """
    INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', {n})
    RETURNING (SELECT group_concat(job_id) FROM alkstore_claimed)"""
NEXT_DUE = "SELECT next_due FROM alkstore_next_due WHERE queue = 'q'"
SWEEP = "INSERT INTO alkstore_sweep_expired(queue) VALUES ('q') RETURNING queue"

LIFE: dict[str, tuple[str, list[Any]]] = {
    "claim": (CLAIM.format(n=1), [("1",)]),
    "claim of nine": (CLAIM.format(n=9), [("2,3,4,5,6,7,8,9,10",)]),
    "heartbeat": (by_id("heartbeat", 1), [(1,)]),
    "ack": (by_id("ack", 1), [(1,)]),
    "ack_batch": (by_id("ack_batch", 2), [(2,)]),
    "retry": (by_id("retry", 3, ", error, delay_s", ", 'e', 60"), [(3,)]),
    "release": (by_id("release", 4), [(4,)]),
    "fail": (by_id("fail", 5), [(5,)]),
    "refused ack": (by_id("ack", 5), []),
    "cancel": (
        "INSERT INTO alkstore_cancel(queue, job_id) VALUES ('q', 6) RETURNING job_id",
        [(6,)],
    ),
    "get_job": (
        "SELECT state, worker_id FROM alkstore_jobs WHERE queue = 'q' AND job_id = 7",
        [("processing", "w")],
    ),
    "next_due": (NEXT_DUE, [(1000000000,)]),
    "sweep": (SWEEP, [("q",)]),
    "enqueue": (
        "INSERT INTO alkstore_enqueue(queue, payload) VALUES ('other', '1') RETURNING queue",
        [("other",)],
    ),
}


@pytest.fixture(scope="module")
def hundred() -> dict[str, int]:
    database = Database()
    database.store(READY, 100)
    return database.life()


@pytest.fixture(scope="module")
def million() -> Iterator[Database]:
    database = Database()
    database.store(READY, 1_000_000)
    yield database
    database.connection.close()


@pytest.fixture
def database() -> Iterator[Database]:
    database = Database()
    yield database
    database.connection.close()


def test_every_call_costs_the_same_with_a_hundred_and_with_a_million_jobs(
    hundred: dict[str, int], million: Database
) -> None:
    assert million.life() == hundred


def test_what_the_calls_cost(hundred: dict[str, int]) -> None:
    # A bound for each, so that a second look at the same row is seen. One row is some 10 steps.
    bounds = {
        "claim": 450,
        "claim of nine": 1800,
        "heartbeat": 200,
        "ack": 125,
        "ack_batch": 130,
        "retry": 300,
        "release": 200,
        "fail": 220,
        "refused ack": 80,
        "cancel": 130,
        "get_job": 70,
        "next_due": 270,
        "sweep": 270,
        "enqueue": 450,
    }
    assert bounds.keys() == hundred.keys()
    assert {name: steps for name, steps in hundred.items() if steps > bounds[name]} == {}


# What ANALYZE leaves is right for a moment. Here: of a moment without jobs, and never right.
STATISTICS = {
    "nothing there": "1 1 1 1 1",
    "no index helps": "1000000 1000000 1000000 1000000 1000000",
    "every index is unique": "1000000 1 1 1 1",
    "a tiny table": "2 2 2 2 2",
}


@pytest.mark.parametrize("statistics", STATISTICS)
def test_no_statistics_mislead_a_call(
    statistics: str, hundred: dict[str, int], million: Database
) -> None:
    connection = million.connection
    connection.execute("ANALYZE; DELETE FROM sqlite_stat1; DROP TABLE IF EXISTS sqlite_stat4")
    connection.execute(
        "INSERT INTO sqlite_stat1 SELECT tbl_name, name, ? FROM sqlite_schema WHERE type = 'index'",
        (STATISTICS[statistics],),
    )
    connection.execute("ANALYZE sqlite_schema")  # read them, as opening the file would
    misled = million.life()
    assert {name: steps for name, steps in misled.items() if steps > hundred[name] + 1} == {}


# -- what must not stand in the way ---------------------------------------------------------------


def test_an_empty_claim_beside_delayed_jobs_and_claims_in_flight(database: Database) -> None:
    empty, _ = database.steps(CLAIM.format(n=1))
    database.store(DELAYED, 100_000)
    database.store(CLAIMED, 100_000)
    beside, rows = database.steps(CLAIM.format(n=1))
    assert rows == [(None,)]
    assert beside <= empty + 10


def test_a_claim_behind_delayed_jobs_of_higher_priority(
    database: Database, hundred: dict[str, int]
) -> None:
    database.store(DELAYED, 100_000, priority="9")
    database.store(READY, 100)
    behind, rows = database.steps(CLAIM.format(n=1))
    assert rows == [("100001",)]
    assert behind <= hundred["claim"] + 10


def test_a_claim_beside_a_million_jobs_of_other_queues(
    database: Database, hundred: dict[str, int]
) -> None:
    database.store(READY, 1_000_000, queue="'p' || n % 2", priority="9")
    database.store(READY, 100)
    beside, rows = database.steps(CLAIM.format(n=1))
    assert rows == [("1000001",)]
    assert beside == hundred["claim"]


def test_what_has_become_due_is_moved_once(database: Database, hundred: dict[str, int]) -> None:
    database.store(DELAYED, 1000)
    database.connection.execute("UPDATE test_clock SET now = now + 1000")
    database.steps(CLAIM.format(n=1))
    second, rows = database.steps(CLAIM.format(n=1))
    assert rows == [("2",)]
    assert second <= hundred["claim"] + 15  # it also clears the list of the first


def test_next_due_does_not_go_by_jobs(database: Database) -> None:
    database.store(DELAYED, 1)
    one, _ = database.steps(NEXT_DUE)
    database.store(DELAYED, 1_000_000, run_at="2000000000 - n", due_at="2000000000 - n")
    database.store(CLAIMED, 1000)
    million, rows = database.steps(NEXT_DUE)
    assert rows == [(1000000001,)]
    assert million == one


def test_next_due_makes_no_tables_of_its_own() -> None:
    """They would cost more than all of its steps; the clock of the other tests needs none."""
    connection = apsw.Connection("")
    connection.execute(installer("sqlite"))
    plan = connection.execute(f"EXPLAIN QUERY PLAN {NEXT_DUE}").fetchall()
    assert [detail for *_, detail in plan if detail.startswith("MATERIALIZE")] == []


def test_next_due_passes_over_other_queues_by_name(database: Database) -> None:
    database.store(DELAYED, 1)
    one, _ = database.steps(NEXT_DUE)
    database.store(DELAYED, 100_000, queue="'p' || n % 100")
    many, rows = database.steps(NEXT_DUE)
    assert rows == [(1000000001,)]
    assert many <= one + 100 * 70


def test_a_sweep_looks_only_at_what_it_moves(database: Database) -> None:
    nothing, _ = database.steps(SWEEP)
    later = "1000000000 + n"
    database.store(READY, 100_000, expires_at=later)
    database.store(CLAIMED, 100_000, expires_at=later)
    database.store(DELAYED, 100_000)
    assert database.steps(SWEEP)[0] <= nothing + 10
    database.connection.execute("UPDATE test_clock SET now = now + 11")
    twenty, _ = database.steps(SWEEP)
    assert database.connection.execute("SELECT * FROM alkstore_swept").fetchall() == [(20, 0)]
    assert twenty <= nothing + 20 * 150


def test_a_claim_passes_over_an_expired_job_at_the_price_of_a_row(
    database: Database, hundred: dict[str, int]
) -> None:
    # Until a sweep takes them: to write them out of the way, an empty claim would have to write.
    database.store(READY, 1000, expires_at="999999999")
    database.store(READY, 100)
    behind, rows = database.steps(CLAIM.format(n=1))
    assert rows == [("1001",)]
    assert behind <= hundred["claim"] + 1000 * 11


# -- plans ----------------------------------------------------------------------------------------

JOB_TABLES = r"(?:SCAN|SEARCH) (?:__alkstore_(?:dead_)?job|__alkstore_payload|j|p)\b.*"
BY_ID = "USING INTEGER PRIMARY KEY (rowid=?)"
DUE = "USING INDEX __alkstore_job_due (queue=? AND due_at<?)"
EXPIRES = "USING COVERING INDEX __alkstore_job_expires (queue=? AND expires_at<?)"
PRUNE = "INDEX __alkstore_dead_job_prune (queue=? AND prune_at<?)"

PLANS = {
    "claim": {BY_ID, DUE, "USING INDEX __alkstore_job_ready (queue=?)"},
    "sweep_expired": {BY_ID, EXPIRES, f"USING {PRUNE}", f"USING COVERING {PRUNE}"},
    "enqueue": set(),
    "ack": {BY_ID},
    "ack_batch": {BY_ID},
    "retry": {BY_ID},
    "release": {BY_ID},
    "fail": {BY_ID},
    "heartbeat": {BY_ID},
    "cancel": {BY_ID},
}


@pytest.mark.parametrize("call", PLANS)
def test_how_each_statement_of_a_call_finds_its_jobs(call: str, database: Database) -> None:
    database.connection.config(apsw.SQLITE_DBCONFIG_TRIGGER_EQP, 1)
    plan = database.connection.execute(
        f"EXPLAIN QUERY PLAN INSERT INTO alkstore_{call} DEFAULT VALUES"
    ).fetchall()
    steps = [detail for *_, detail in plan if re.fullmatch(JOB_TABLES, detail)]
    assert {re.sub(r"^SEARCH \S+ ", "", step) for step in steps} == PLANS[call]


def test_a_job_is_read_by_its_id(database: Database) -> None:
    plan = database.connection.execute(
        "EXPLAIN QUERY PLAN SELECT * FROM alkstore_jobs WHERE queue = 'q' AND job_id = 7"
    ).fetchall()
    steps = [detail for *_, detail in plan if re.fullmatch(JOB_TABLES, detail)]
    assert steps == [f"SEARCH {table} {BY_ID}" for table in "jpjp"]
