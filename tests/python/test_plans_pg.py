"""What the calls cost on PostgreSQL: pages touched, which no load of the machine can change.

Plans are made once and live as long as the session, whatever becomes of the tables; so each cost is
taken in a session that has made its plans already, under statistics as wrong as they can be.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from statistics import mean, median
from typing import Any

import psycopg
import pytest

from alkstore._sql import installer
from tests.python.conftest import Databases

# Each session has its own clock, which costs no page; and nothing tidies up behind the tests' back.
PREPARE = """
    CREATE OR REPLACE FUNCTION alkstore._now() RETURNS timestamptz LANGUAGE sql VOLATILE
    AS $$ SELECT to_timestamp(current_setting('test.now')::float8) $$;
    ALTER TABLE alkstore._job SET (autovacuum_enabled = off);
    ALTER TABLE alkstore._dead_job SET (autovacuum_enabled = off)"""

# Jobs straight into storage; n runs from 1. What a kind does not say is as for a ready job.
STORE = """
    INSERT INTO alkstore._job (
        queue, payload, priority, max_attempts, visibility_timeout_s, backoff_base_s, created_at,
        run_at, expires_at, ready, due_at, attempts, worker_id, claimed_at, claim_expires_at)
    SELECT
        'q', '1', {priority}, 3, 300, 5, now, {run_at}, {expires_at}, {ready}, {due_at}, {attempts},
        {worker_id}, {claimed_at}, {claim_expires_at}
    FROM (SELECT alkstore._now() AS now) clock, generate_series(1, {count}) n"""
READY = {
    "priority": "0",
    "run_at": "now",
    "expires_at": "NULL",
    "ready": "true",
    "due_at": "now",
    "attempts": "0",
    "worker_id": "NULL",
    "claimed_at": "NULL",
    "claim_expires_at": "NULL",
}
# Longer delayed than any test runs.
DELAYED = READY | {
    "run_at": "now + interval '1 day'",
    "ready": "false",
    "due_at": "now + interval '1 day'",
}
CLAIMED = READY | {
    "ready": "false",
    "due_at": "now + interval '301 s'",
    "attempts": "1",
    "worker_id": "'w'",
    "claimed_at": "now",
    "claim_expires_at": "now + interval '300 s'",
}
EXPIRED = READY | {"expires_at": "now - interval '1 s'"}

CLAIM = "SELECT * FROM alkstore.claim('q', 'w')"
NEXT_DUE = "SELECT alkstore.next_due('q')"


class Session:
    """A connection that tells what its statements cost."""

    def __init__(self, url: str) -> None:
        self.connection = psycopg.connect(url, autocommit=True)
        self.now = 1_000_000_000
        self.advance(0)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def run(self, sql: str) -> list[Any]:
        cursor = self.connection.execute(sql.encode())
        return cursor.fetchall() if cursor.description else []

    def advance(self, seconds: int) -> None:
        self.now += seconds
        self.run(f"SET test.now = {self.now}")

    def store(self, kind: dict[str, str], count: int, **columns: str) -> None:
        self.run(STORE.format(count=count, **kind | columns))

    def empty(self) -> None:
        self.run("TRUNCATE alkstore._job, alkstore._dead_job RESTART IDENTITY")

    def pages(self, sql: str) -> int:
        """Pages that a statement and all within it touched."""
        ((((plan,),),),) = [[self.run("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + sql)]]
        return int(plan[0]["Plan"]["Shared Hit Blocks"] + plan[0]["Plan"]["Shared Read Blocks"])

    def costs(self, sql: str, times: int) -> list[int]:
        return [self.pages(sql) for _ in range(times)]

    def cost(self, sql: str) -> float:
        """The usual cost of a statement; the first times pay for the plans."""
        return median(self.costs(sql, 11))


@pytest.fixture
def url(databases: Databases) -> Iterator[str]:
    name = databases.create(databases.template)
    with psycopg.connect(databases.url(name)) as connection:
        connection.execute(PREPARE)
    yield databases.url(name)
    databases.drop(name)


@pytest.fixture
def session(url: str) -> Iterator[Session]:
    with Session(url) as session:
        yield session


@contextmanager
def old_snapshot(url: str) -> Iterator[None]:
    """Somebody looks at the database as it is now, for long."""
    with psycopg.connect(url) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.execute("SELECT 1")
        yield


# -- statistics from both extremes ----------------------------------------------------------------


def test_a_claim_costs_the_same_at_a_thousand_and_a_million_jobs(session: Session) -> None:
    session.run("ANALYZE alkstore._job")  # empty
    session.store(READY, 1_000)
    thousand = session.cost(CLAIM)
    session.store(READY, 1_000_000)
    believed_empty = session.cost(CLAIM)
    session.run("ANALYZE alkstore._job")
    known_full = session.cost(CLAIM)
    session.empty()  # but for the statistics
    session.store(READY, 1_000)
    believed_full = session.cost(CLAIM)
    assert believed_empty <= 1.2 * thousand
    assert known_full <= 1.2 * thousand
    assert believed_full <= 1.2 * thousand


BY_ID = {
    "ack": "SELECT alkstore.ack('q', {id}, 1)",
    "ack_batch": "SELECT alkstore.ack_batch('q', ARRAY[{id}, {id} - 1], '{{1, 1}}')",
    "ack_batch without attempts": "SELECT alkstore.ack_batch('q', ARRAY[{id}, {id} - 1])",
    "retry": "SELECT alkstore.retry('q', {id}, 1, 'error')",
    "retry, to the dead": "SELECT alkstore.retry('q', {id}, 3, 'error')",
    "release": "SELECT alkstore.release('q', {id}, 1)",
    "fail": "SELECT alkstore.fail('q', {id}, 1)",
    "heartbeat": "SELECT alkstore.heartbeat('q', {id}, 1)",
    "cancel": "SELECT alkstore.cancel('q', {id})",
    "get_job": "SELECT * FROM alkstore.get_job('q', {id})",
}
SCANS = """
    SELECT relation::regclass::text, pg_stat_get_xact_numscans(relation) FROM (
        SELECT i.indexrelid FROM pg_index i
        WHERE i.indrelid IN ('alkstore._job'::regclass, 'alkstore._dead_job'::regclass)
        UNION ALL VALUES ('alkstore._job'::regclass), ('alkstore._dead_job'::regclass)
    ) relations (relation)"""


@pytest.mark.parametrize("call", BY_ID)
def test_a_call_by_id_uses_the_primary_key_only(session: Session, call: str) -> None:
    spent = call.endswith("dead")

    def check() -> int:
        """The call's pages, after a look at what it scanned. The job is there again after each."""
        (((last_id,),),) = [session.run("SELECT max(id) FROM alkstore._job")]
        sql = BY_ID[call].format(id=last_id)
        with session.connection.transaction(force_rollback=True):
            before = dict(session.run(SCANS))
            assert session.run(sql)[0][0] not in (False, 0)
            scans = dict(session.run(SCANS))
        used = {name for name in scans if scans[name] > before[name]}
        assert "alkstore._job_pkey" in used
        assert used <= {"alkstore._job_pkey", "alkstore._dead_job_pkey"}
        with session.connection.transaction(force_rollback=True):
            return session.pages(sql)

    claimed = CLAIMED | {"attempts": "3"} if spent else CLAIMED
    session.run("ANALYZE alkstore._job")  # empty
    session.store(claimed, 100)
    few = [check() for _ in range(7)][-1]
    session.store(claimed, 50_000)
    assert check() <= 2 * few  # the trees are a level higher
    session.run("ANALYZE alkstore._job")
    assert check() <= 2 * few
    session.empty()
    session.store(claimed, 100)
    assert check() <= 2 * few


# -- what stands in the way -----------------------------------------------------------------------


@pytest.mark.parametrize("analyse", [False, True])
def test_delayed_jobs_of_higher_priority_do_not_stand_in_the_way(
    session: Session, analyse: bool
) -> None:
    session.run("ANALYZE alkstore._job")
    session.store(READY, 1_000)
    alone = session.cost(CLAIM)
    session.store(DELAYED, 100_000, priority="9")
    if analyse:
        session.run("ANALYZE alkstore._job")
    assert session.cost(CLAIM) <= 2 * alone


@pytest.mark.parametrize("analyse", [False, True])
def test_nothing_to_claim_costs_little_beside_delayed_and_claimed_jobs(
    session: Session, analyse: bool
) -> None:
    session.run("ANALYZE alkstore._job")
    session.store(DELAYED, 1)
    session.store(CLAIMED, 1)
    claim, due = session.cost(CLAIM), session.cost(NEXT_DUE)
    session.store(DELAYED, 100_000)
    session.store(CLAIMED, 100_000)
    if analyse:
        session.run("ANALYZE alkstore._job")
    assert session.run(CLAIM) == []
    assert session.cost(CLAIM) <= 2 * claim
    assert session.cost(NEXT_DUE) <= 2 * due


def test_a_sweep_costs_little_when_nothing_has_expired(session: Session) -> None:
    sweep = "SELECT alkstore.sweep_expired('q')"
    session.run("ANALYZE alkstore._job")
    session.store(READY, 1, expires_at="now + interval '1 hour'")
    few = session.cost(sweep)
    session.store(READY, 100_000, expires_at="now + interval '1 hour'")
    assert session.cost(sweep) <= 2 * few
    session.run("ANALYZE alkstore._job")
    assert session.cost(sweep) <= 2 * few


# -- an old snapshot ------------------------------------------------------------------------------

# One by one, each in its own transactions, 200 a second.
DO_JOBS = """
    DO $$
    DECLARE
      job alkstore.claimed_job;
    BEGIN
      FOR n IN 1..{count} LOOP
        PERFORM alkstore.enqueue('q', '1');
        COMMIT;
        SELECT * INTO job FROM alkstore.claim('q', 'w');
        COMMIT;
        PERFORM alkstore.ack('q', job.job_id, job.attempt);
        IF n % 200 = 0 THEN
          PERFORM set_config('test.now', (current_setting('test.now')::bigint + 1)::text, false);
        END IF;
        COMMIT;
      END LOOP;
    END $$"""


def per_claim(session: Session, seconds: int) -> float:
    """Pages per claim, when 200 are made in each second of the clock."""
    costs = []
    for _ in range(seconds):
        session.advance(1)
        costs += session.costs(CLAIM, 200)
    return mean(costs)


def cost_after_20_000_jobs(url: str) -> float:
    with Session(url) as session:
        session.empty()
        session.run(DO_JOBS.format(count=20_000))
        session.now += 100
        session.store(READY, 1_000)
        return per_claim(session, 2)


def test_an_old_snapshot_does_not_make_claims_dear(url: str) -> None:
    free = cost_after_20_000_jobs(url)
    with old_snapshot(url):
        held = cost_after_20_000_jobs(url)
    assert held <= 2 * free
    with Session(url) as session:
        session.run("VACUUM alkstore._job")  # now that nobody looks back, all is as before
        session.now += 200
        per_claim(session, 1)
        session.advance(1)
        assert session.pages(CLAIM) <= 2 * free


def clutter(session: Session, kind: dict[str, str]) -> None:
    """20,000 jobs that are done; an old snapshot keeps them in the indexes."""
    session.store(kind, 20_000)
    session.run("DELETE FROM alkstore._job")


def test_an_old_snapshot_does_not_make_claims_dear_when_its_jobs_would_lapse(
    session: Session, url: str
) -> None:
    session.store(READY, 1_000)
    free = per_claim(session, 2)
    session.empty()
    with old_snapshot(url):
        clutter(session, CLAIMED)
        session.advance(302)
        session.store(READY, 1_000)
        assert per_claim(session, 2) <= 2 * free


def test_an_old_snapshot_does_not_make_claims_dear_where_jobs_are_due_each_second(
    session: Session, url: str
) -> None:
    def delayed_claims() -> float:
        costs = []
        for _ in range(2):
            session.store(
                READY,
                100,
                run_at="now + interval '1 s'",
                ready="false",
                due_at="now + interval '1 s'",
            )
            session.advance(1)
            costs += session.costs(CLAIM, 100)
        return mean(costs)

    delayed_claims()
    free = delayed_claims()
    session.empty()
    with old_snapshot(url):
        clutter(session, CLAIMED)
        session.advance(302)
        assert delayed_claims() <= 2 * free


def test_a_due_job_that_somebody_holds_does_not_make_claims_dear(
    session: Session, url: str
) -> None:
    session.store(DELAYED, 1, due_at="now", run_at="now")
    with old_snapshot(url), psycopg.connect(url) as holder:
        holder.execute("SELECT FROM alkstore._job FOR UPDATE")
        session.store(READY, 1_000)
        free = per_claim(session, 2)
        session.store(READY, 20_000, priority="1")
        session.run("DELETE FROM alkstore._job WHERE priority = 1")
        assert per_claim(session, 2) <= 2 * free


# -- the mark: what a session may and may not pass over -------------------------------------------


@pytest.fixture
def marked(session: Session) -> Session:
    """A session with costly claims, past 10,000 expired jobs. Of 1 to 5 it has claimed 1."""
    session.store(EXPIRED, 10_000, priority="9")
    session.run("SELECT alkstore.enqueue_batch('q', '[1, 2, 3, 4, 5]')")
    assert claim(session) == [1]
    assert session.run("SELECT current_setting('alkstore._mark')") != [("",)]
    return session


def claim(session: Session, n: int = 1, queue: str = "q") -> list[int]:
    return [
        payload
        for (payload,) in session.run(f"SELECT payload FROM alkstore.claim('{queue}', 'w', {n})")
    ]


def enqueue(session: Session, payload: int, options: str, queue: str = "q") -> None:
    session.run(f"SELECT alkstore.enqueue('{queue}', '{payload}', {options})")


def test_a_marked_claim_costs_as_usual(marked: Session) -> None:
    marked.store(READY, 100)
    assert marked.cost(CLAIM) < 30


def test_what_came_in_front_of_the_mark_is_seen_a_second_later(marked: Session) -> None:
    enqueue(marked, 99, "priority => 1")
    assert claim(marked) == [2]
    marked.advance(1)
    assert claim(marked, 2) == [99, 3]


def test_an_empty_answer_comes_from_a_full_scan(marked: Session) -> None:
    assert claim(marked, 9) == [2, 3, 4, 5]
    enqueue(marked, 99, "priority => 1")
    assert claim(marked, 9) == [99]
    assert claim(marked, 9) == []


def test_behind_the_mark_the_order_holds(marked: Session) -> None:
    enqueue(marked, 98, "run_at => to_timestamp(0), priority => -1")
    enqueue(marked, 99, "priority => -1")
    assert [claim(marked) for _ in range(6)] == [[2], [3], [4], [5], [98], [99]]


def test_another_queue_does_not_know_the_mark(marked: Session) -> None:
    enqueue(marked, 98, "priority => -1", queue="other")
    enqueue(marked, 99, "priority => 1", queue="other")
    assert [claim(marked, queue="other") for _ in range(2)] == [[99], [98]]
    # One mark in a session, so this one was lost at worst: order as ever.
    enqueue(marked, 97, "priority => 1")
    assert claim(marked, 9) in ([2, 3, 4, 5], [97, 2, 3, 4, 5])


def test_another_schema_does_not_know_the_mark(marked: Session) -> None:
    marked.run("SET alkstore.schema = 'twin'")
    marked.run(installer("postgres"))
    marked.run(
        "CREATE OR REPLACE FUNCTION twin._now() RETURNS timestamptz LANGUAGE sql VOLATILE "
        "AS 'SELECT alkstore._now()'"
    )
    marked.run(
        "SELECT twin.enqueue('q', '98', priority => -1), twin.enqueue('q', '99', priority => 9)"
    )
    assert marked.run("SELECT payload FROM twin.claim('q', 'w')") == [(99,)]


def test_a_mark_is_undone_with_its_transaction(marked: Session) -> None:
    marked.advance(1)
    marked.run("BEGIN")
    assert claim(marked, 2) == [2, 3]
    marked.run("ROLLBACK")
    assert claim(marked) == [2]
    marked.run("BEGIN; SAVEPOINT here")
    assert claim(marked, 2) == [3, 4]
    marked.run("ROLLBACK TO here")
    assert claim(marked, 2) == [3, 4]
    marked.run("COMMIT")
    assert claim(marked, 2) == [5]


def test_a_job_given_back_in_front_of_the_mark_is_not_lost(marked: Session) -> None:
    (((job_id,),),) = [
        marked.run("SELECT min(job_id) FROM alkstore.jobs WHERE state = 'processing'")
    ]
    assert marked.run(f"SELECT alkstore.release('q', {job_id}, 1)") == [(True,)]
    assert claim(marked) == [2]
    marked.advance(1)
    assert claim(marked, 9) == [1, 3, 4, 5]


def test_jobs_that_are_due_keep_their_place_behind_a_mark(marked: Session) -> None:
    for payload, priority in ((96, 3), (97, 2), (98, -1), (99, -2)):
        enqueue(marked, payload, f"delay_s => 1, priority => {priority}")
    marked.advance(1)
    marked.run("SELECT alkstore.enqueue('q', '6', priority => -1)")
    assert [claim(marked) for _ in range(9)] == [[96], [97], [2], [3], [4], [5], [98], [6], [99]]
