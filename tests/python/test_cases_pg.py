"""What takes two sessions, a vacuum or a commit to see on PostgreSQL, in plain SQL."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import Connection

from alkstore._sql import SCHEMA_VERSION, installer

ROOT = Path(__file__).parents[2]


def connect(url: str) -> Connection[Any]:
    """A session that fails rather than wait for another one."""
    return psycopg.connect(url, autocommit=True, options="-c lock_timeout=30s")


@pytest.fixture
def session(pg_url: str) -> Iterator[Connection[Any]]:
    with connect(pg_url) as session:
        yield session


@pytest.fixture
def other(pg_url: str) -> Iterator[Connection[Any]]:
    with connect(pg_url) as other:
        yield other


def enqueue(session: Connection[Any], count: int = 1, queue: str = "q", **options: int) -> None:
    """Payload and, in a new database, job id: 1, 2, 3 …"""
    arguments = "".join(f", {name} => {value}" for name, value in options.items())
    session.execute(
        f"SELECT alkstore.enqueue(%s, to_json(g){arguments}) FROM generate_series(1, %s) g",
        (queue, count),
    )


def claim(session: Connection[Any], n: int = 1, queue: str = "q") -> list[int]:
    rows = session.execute("SELECT payload FROM alkstore.claim(%s, 'w', %s)", (queue, n))
    return [payload for (payload,) in rows]


def value(session: Connection[Any], query: str) -> Any:
    row = session.execute(query).fetchone()
    assert row is not None
    return row[0]


# As rows are whose run_at has come, or whose claim has lapsed, and that no claim has met since.
MAKE_DUE = "UPDATE alkstore._job SET ready = false"

# -- claims side by side --------------------------------------------------------------------------

PLANNERS = {
    "as it is": "",
    "nested loops": "SET enable_hashjoin = off; SET enable_mergejoin = off",
    "generic plans": "SET plan_cache_mode = force_generic_plan",
}


@pytest.mark.parametrize("held", [False, True], ids=["", "held snapshot"])
def test_a_claim_hands_out_n_whatever_the_plan(
    session: Connection[Any], other: Connection[Any], held: bool
) -> None:
    """[claim-once]"""
    session.execute("ALTER TABLE alkstore._job SET (autovacuum_enabled = off)")
    for case in product(PLANNERS, [1, 5], [False, True]):
        planner, n, due = case
        enqueue(session, 20)
        if held:
            other.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            assert value(other, "SELECT count(*) FROM alkstore.jobs") == 20
        session.execute("DELETE FROM alkstore._job WHERE payload::text <> '20'")
        session.execute("VACUUM ANALYZE alkstore._job")
        enqueue(session, 20)
        if due:
            session.execute(MAKE_DUE)
        session.execute("RESET ALL")
        session.execute(PLANNERS[planner])
        expected = [20, *range(1, 21)]
        while expected:
            # Prepared, so that from the sixth on it may be a generic plan.
            rows = session.execute(
                "SELECT payload FROM alkstore.claim('q', 'w', %s)", (n,), prepare=True
            )
            assert [payload for (payload,) in rows] == expected[:n], case
            del expected[:n]
        assert claim(session) == []
        session.execute("DELETE FROM alkstore._job")
        if held:
            other.execute("ROLLBACK")


@pytest.mark.parametrize("due", [False, True], ids=["ready", "due"])
def test_a_claim_passes_over_the_jobs_of_an_open_claim_and_of_no_other(
    session: Connection[Any], other: Connection[Any], due: bool
) -> None:
    """[claim-once]"""
    enqueue(session, 5)
    if due:
        session.execute(MAKE_DUE)
    session.execute("BEGIN")
    assert claim(session, 2) == [1, 2]
    assert claim(other, 2) == [3, 4]
    session.execute("ROLLBACK")
    assert claim(other, 9) == [1, 2, 5]


def test_a_claim_passes_over_locked_jobs(session: Connection[Any], other: Connection[Any]) -> None:
    """[claim-once]"""
    enqueue(session, 3)
    session.execute("BEGIN")
    session.execute("SELECT FROM alkstore._job WHERE id = 2 FOR UPDATE")
    assert claim(other, 9) == [1, 3]
    assert claim(other, 9) == []
    session.execute("COMMIT")
    assert claim(other, 9) == [2]


def test_hundreds_that_became_due_are_one_claim_s_until_it_commits(
    session: Connection[Any], other: Connection[Any]
) -> None:
    """[claim-once] [claim-n]"""
    enqueue(session, 150)
    session.execute(MAKE_DUE)
    session.execute("BEGIN")
    assert claim(session, 2) == [1, 2]
    assert claim(other, 2) == []
    session.execute("COMMIT")
    assert claim(other, 2) == [3, 4]


def test_a_claim_leaves_a_locked_spent_job_to_the_next(
    session: Connection[Any], other: Connection[Any]
) -> None:
    """[exhausted]"""
    enqueue(session, max_attempts=1)
    assert claim(session) == [1]
    lapsed = "date_trunc('minute', now()) - interval '1 minute'"
    session.execute(f"UPDATE alkstore._job SET claim_expires_at = {lapsed}, due_at = {lapsed}")
    enqueue(session)
    session.execute("BEGIN")
    session.execute("SELECT FROM alkstore._job WHERE id = 1 FOR UPDATE")
    assert claim(other, 9) == [1]
    assert value(other, "SELECT state FROM alkstore.get_job('q', 1)") == "processing"
    session.execute("COMMIT")
    assert claim(other, 9) == []
    assert value(other, "SELECT last_error FROM alkstore.get_job('q', 1)") == (
        "max attempts exceeded"
    )


def test_a_spent_job_that_is_let_go_while_others_are_buried_is_not_handed_out(
    session: Connection[Any], other: Connection[Any], pg_url: str
) -> None:
    """[exhausted]"""
    enqueue(session, 2, max_attempts=1)
    assert claim(session, 2) == [1, 2]
    lapsed = "date_trunc('minute', now()) - interval '1 minute'"
    session.execute(f"UPDATE alkstore._job SET claim_expires_at = {lapsed}, due_at = {lapsed}")
    # A claim that has buried what it could waits there, before it chooses.
    session.execute("""
        CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END $$;
        CREATE TRIGGER wait AFTER INSERT ON alkstore._dead_job EXECUTE FUNCTION wait()
    """)
    session.execute("BEGIN")
    session.execute("SELECT FROM alkstore._job WHERE id = 1 FOR UPDATE")
    session.execute("SELECT pg_advisory_xact_lock(1)")
    with ThreadPoolExecutor() as pool:
        claimed = pool.submit(claim, other, 9)
        waiting = (
            f"SELECT count(*) FROM pg_locks WHERE pid = {other.info.backend_pid} AND NOT granted"
        )
        with connect(pg_url) as third:
            while value(third, waiting) == 0 and not claimed.done():
                pass
        session.execute("COMMIT")
        assert claimed.result() == []
    states = session.execute("SELECT state FROM alkstore.jobs ORDER BY job_id").fetchall()
    assert states == [("processing",), ("dead",)]


def test_every_call_late_in_a_transaction_counts_from_the_call(pg_url: str) -> None:
    """[clock]"""
    with psycopg.connect(pg_url) as session:

        def job(job_id: int) -> Any:
            columns = "claimed_at, claim_expires_at, created_at, run_at, expires_at, died_at"
            ((*values,),) = session.execute(
                f"SELECT {columns} FROM alkstore.get_job('q', %s)".encode(), [job_id]
            )
            return values

        session.execute("SELECT alkstore.enqueue_batch('q', '[1, 2]', visibility_timeout_s => 30)")
        session.commit()

        # Instants are whole seconds: in the next one now() is old. Nothing but time makes it so.
        session.execute("SELECT pg_sleep_until(date_trunc('second', now()) + interval '1 s')")
        ((called,),) = session.execute("SELECT date_trunc('second', clock_timestamp())")
        ((is_old,),) = session.execute("SELECT date_trunc('second', now()) < %s", [called])
        assert is_old

        session.execute("SELECT alkstore.claim('q', 'w', 2)")
        claimed_at, claim_expires_at, *_ = job(1)
        assert claimed_at >= called
        assert claim_expires_at == claimed_at + timedelta(seconds=30)

        session.execute("SELECT alkstore.heartbeat('q', 1, 1, 60)")
        assert job(1)[1] >= called + timedelta(seconds=60)
        session.execute("SELECT alkstore.retry('q', 1, 1, NULL, 9)")
        assert job(1)[3] >= called + timedelta(seconds=9)
        session.execute("SELECT alkstore.fail('q', 2, 1)")
        assert job(2)[5] >= called

        session.execute("SELECT alkstore.enqueue('q', '3', delay_s => 9, expires_s => 90)")
        _, _, created_at, run_at, expires_at, _ = job(3)
        assert created_at >= called
        assert run_at == created_at + timedelta(seconds=9)
        assert expires_at == created_at + timedelta(seconds=90)


# -- the caller's transaction ---------------------------------------------------------------------


def test_nothing_is_claimable_before_commit(
    session: Connection[Any], other: Connection[Any]
) -> None:
    """[tx-enqueue]"""
    session.execute("CREATE TABLE orders (id int)")
    for end, found, orders in (("ROLLBACK", [], 0), ("COMMIT", [1], 1)):
        session.execute("BEGIN")
        session.execute("INSERT INTO orders VALUES (1)")
        enqueue(session)
        assert claim(other) == []
        session.execute(end)
        assert claim(other) == found
        assert value(other, "SELECT count(*) FROM orders") == orders


def test_a_refusal_is_undone_by_a_savepoint(session: Connection[Any]) -> None:
    """[refusals]"""
    with session.transaction():
        with pytest.raises(psycopg.Error) as refusal, session.transaction():
            enqueue(session, delay_s=-1)
        assert refusal.value.sqlstate == "AK003"
        enqueue(session)
    assert claim(session) == [1]


def test_a_refusal_without_a_savepoint_aborts_the_transaction(session: Connection[Any]) -> None:
    """[refusals]"""
    session.execute("BEGIN")
    enqueue(session)
    with pytest.raises(psycopg.Error) as refusal:
        enqueue(session, queue="")
    assert refusal.value.sqlstate == "AK001"
    with pytest.raises(psycopg.errors.InFailedSqlTransaction):
        enqueue(session)
    session.execute("COMMIT")
    assert claim(session) == []


# -- plans ----------------------------------------------------------------------------------------


def test_a_claim_reads_the_job_that_it_hands_out_and_no_other(session: Connection[Any]) -> None:
    """[plans]"""
    enqueue(session, 1000)
    assert len(claim(session, 1000)) == 1000
    enqueue(session, 1000, priority=9, delay_s=60)
    enqueue(session, 1000)
    session.execute("VACUUM ANALYZE alkstore._job")
    read = """
        SELECT jsonb_object_agg(relname, pg_stat_get_xact_tuples_returned(oid)) FROM pg_class
        WHERE oid::regclass::text IN ('alkstore._job', 'alkstore._job_ready', 'alkstore._job_due')
    """
    with session.transaction():
        before = value(session, read)
        assert claim(session, 3) == [1, 2, 3]
        after = value(session, read)
    assert {name: after[name] - before[name] for name in after} == {
        "_job": 0,
        "_job_ready": 3,
        "_job_due": 0,
    }


# -- installing again -----------------------------------------------------------------------------


def test_installing_again_keeps_every_job(session: Connection[Any], pg_url: str) -> None:
    """[version]"""
    enqueue(session, 3)
    assert claim(session) == [1]
    before = session.execute("SELECT * FROM alkstore.jobs").fetchall()
    session.execute(installer("postgres"))
    script = ROOT / "sql/postgres/install.sql"
    subprocess.run(["psql", "-Xq", "-d", pg_url, "-f", script], check=True)
    assert session.execute("SELECT * FROM alkstore.jobs").fetchall() == before
    assert value(session, "SELECT alkstore.enqueue('q', '4')") == 4


def test_another_version_is_left_alone(session: Connection[Any]) -> None:
    """[version]"""
    enqueue(session)
    newer = installer("postgres").replace(SCHEMA_VERSION, "99.0.0")
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState) as refusal:
        session.execute(newer)
    assert SCHEMA_VERSION in str(refusal.value)
    assert "99.0.0" in str(refusal.value)
    assert value(session, "SELECT alkstore.version()") == SCHEMA_VERSION
    assert claim(session) == [1]
