"""Crashes of PostgreSQL: a backend killed inside a call, a server stopped in the middle of work.

On a server that keeps what it promises: fsync and synchronous_commit are on.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress

import psycopg
import pytest

from alkstore._sql import installer
from tests.harness.server import Server
from tests.python.waiting import until

# Stops a call in its middle: until somebody gives the advisory lock 1 back.
STOP = """
    CREATE FUNCTION stop() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      PERFORM pg_advisory_xact_lock_shared(1);
      RETURN coalesce(NEW, OLD);
    END $$;
    CREATE TRIGGER stop BEFORE {event} FOR EACH ROW EXECUTE FUNCTION stop()"""

CALLS = {
    "claim": ("SELECT alkstore.claim('q', 'w', 3)", "UPDATE ON alkstore._job"),
    "ack": ("SELECT alkstore.ack('q', 1, 1)", "DELETE ON alkstore._job"),
    "retry": ("SELECT alkstore.retry('q', 1, 1, 'error')", "UPDATE ON alkstore._job"),
    "fail": ("SELECT alkstore.fail('q', 1, 1)", "INSERT ON alkstore._dead_job"),
    "sweep": ("SELECT alkstore.sweep_expired('q')", "INSERT ON alkstore._dead_job"),
    "enqueue": ("SELECT alkstore.enqueue_batch('q', '[1, 2]')", "INSERT ON alkstore._job"),
}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(durable=True) as server:
        yield server


@pytest.fixture
def url(server: Server) -> Iterator[str]:
    server.psql("CREATE DATABASE crash")
    with psycopg.connect(server.database_url("crash"), autocommit=True) as connection:
        connection.execute(installer("postgres").encode())
    yield server.database_url("crash")
    server.psql("DROP DATABASE crash WITH (FORCE)")


def connection_if_up(url: str) -> psycopg.Connection | None:
    with suppress(psycopg.OperationalError):
        return psycopg.connect(url, autocommit=True)
    return None


def jobs(connection: psycopg.Connection) -> list[tuple[object, ...]]:
    return connection.execute("SELECT j::text FROM alkstore.jobs j ORDER BY job_id").fetchall()


@pytest.mark.parametrize("call", CALLS)
def test_a_backend_killed_inside_a_call_leaves_everything_as_it_was(url: str, call: str) -> None:
    sql, event = CALLS[call]

    def victim() -> None:
        with pytest.raises(psycopg.OperationalError):
            connection.execute(sql.encode())

    with psycopg.connect(url, autocommit=True) as keeper, psycopg.connect(url) as connection:
        connection.autocommit = True
        keeper.execute("SELECT alkstore.enqueue('q', '1', priority => 1)")
        keeper.execute("SELECT alkstore.claim('q', 'holder')")
        keeper.execute("SELECT alkstore.enqueue_batch('q', '[2, 3, 4]')")
        keeper.execute("SELECT alkstore.enqueue('q', '5', expires_s => 1, priority => -1)")
        if call == "sweep":
            keeper.execute(
                "UPDATE alkstore._job SET expires_at = now() - interval '1 s' WHERE id = 5"
            )
        before = jobs(keeper)
        keeper.execute(STOP.format(event=event).encode())
        keeper.execute("SELECT pg_advisory_lock(1)")
        thread = threading.Thread(target=victim)
        thread.start()
        waits = "SELECT FROM pg_locks WHERE pid = %s AND locktype = 'advisory' AND NOT granted"
        until(lambda: keeper.execute(waits, [connection.info.backend_pid]).rowcount)
        os.kill(connection.info.backend_pid, signal.SIGKILL)
        thread.join()
        with suppress(psycopg.OperationalError):
            while True:  # until the server has ended all others, too
                keeper.execute("SELECT 1")
    with until(lambda: connection_if_up(url)) as after:
        assert jobs(after) == before
        after.execute("DROP FUNCTION stop CASCADE")
        after.execute(sql.encode())
        assert jobs(after) != before


# -- the server, in the middle of a drain ---------------------------------------------------------

SPAWN = multiprocessing.get_context("spawn")
COUNT = 3000


class Log:
    """What a worker knows of the jobs it had."""

    def __init__(self) -> None:
        self.claimed: list[tuple[int, int]] = []
        self.acked: set[int] = set()
        self.failed: set[int] = set()
        self.unanswered: set[int] = set()  # the server went away during the call on it


def drain(url: str, worker_id: str) -> Log:
    """Claim three at a time and ack, every tenth one fails, until the server goes away."""
    log = Log()
    connection = psycopg.connect(url, autocommit=True)
    claim = "SELECT job_id, attempt FROM alkstore.claim('q', %s, 3)"
    try:
        while True:
            claims = connection.execute(claim, [worker_id]).fetchall()
            log.claimed += claims
            for job_id, attempt in claims:
                call, done = ("fail", log.failed) if job_id % 10 == 0 else ("ack", log.acked)
                log.unanswered = {job_id}
                settle = f"SELECT alkstore.{call}('q', %s, %s)"
                assert connection.execute(settle.encode(), [job_id, attempt]).fetchone() == (True,)
                log.unanswered = set()
                done.add(job_id)
    except psycopg.OperationalError:
        return log
    finally:
        connection.close()


def test_a_server_stopped_in_the_middle_of_a_drain_loses_nothing(server: Server, url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        numbers = "SELECT json_agg(n) FROM generate_series(1, %s) n"
        connection.execute(f"SELECT alkstore.enqueue_batch('q', ({numbers}))", [COUNT])
        with ProcessPoolExecutor(4, SPAWN) as pool:
            workers = [pool.submit(drain, url, f"worker {n}") for n in range(4)]
            count = "SELECT count(*) FROM alkstore._job"
            until(lambda: connection.execute(count).fetchall() <= [(COUNT * 2 // 3,)])
            server.stop("immediate")
            logs = [worker.result() for worker in workers]
    server.start()

    claimed = Counter(claim for log in logs for claim in log.claimed)
    acked = set[int]().union(*(log.acked for log in logs))
    failed = set[int]().union(*(log.failed for log in logs))
    unanswered = set[int]().union(*(log.unanswered for log in logs))
    assert set(claimed.values()) == {1}
    assert {attempt for _, attempt in claimed} == {1}

    with psycopg.connect(url, autocommit=True) as connection:
        rows = connection.execute("SELECT job_id, state FROM alkstore.jobs").fetchall()
        states = dict(rows)
        assert len(states) == len(rows)  # nothing is both live and dead
        dead = {job_id for job_id in states if states[job_id] == "dead"}
        held = {job_id for job_id in states if states[job_id] == "processing"}
        gone = set(range(1, COUNT + 1)) - set(states)
        # What was answered is done; what was not may be, or not, but nothing in between.
        assert acked <= gone <= acked | unanswered
        assert failed <= dead <= failed | unanswered
        known = {job_id for job_id, _ in claimed} - acked - failed - unanswered
        # A claim without an answer may have been committed: three for each worker at most.
        assert known <= held
        assert len(held - known - unanswered) <= 3 * 4

        # Within the lease only what was pending is handed out; after it the rest, once more.
        claim = "SELECT job_id, attempt FROM alkstore.claim('q', 'later', 5000)"
        pending = set(states) - dead - held
        assert set(connection.execute(claim)) == {(job_id, 1) for job_id in pending}
        assert connection.execute(claim).fetchall() == []
        connection.execute(
            "CREATE OR REPLACE FUNCTION alkstore._now() RETURNS timestamptz LANGUAGE sql VOLATILE "
            "AS $$ SELECT date_trunc('second', clock_timestamp()) + interval '301 s' $$"
        )
        assert set(connection.execute(claim)) == {
            *((job_id, 2) for job_id in held),
            *((job_id, 2) for job_id in pending),
        }
