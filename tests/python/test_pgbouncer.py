"""Through PgBouncer, which gives each transaction (or statement) any of its server sessions."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import psycopg
import pytest

import alkstore
from alkstore import JobHandle
from tests.harness import pgbouncer
from tests.harness.pgbouncer import PgBouncer
from tests.python.conftest import Databases
from tests.python.every_call import make_every_call
from tests.python.waiting import until
from tests.python.working import is_gone, running

pytestmark = pytest.mark.skipif(
    pgbouncer.program() is None, reason="no pgbouncer: python3 -m tests.harness.need pgbouncer"
)
prepared = pytest.mark.skipif(
    pgbouncer.program() is not None and not pgbouncer.knows_prepared_statements(),
    reason="this PgBouncer is older than 1.21, which knows prepared statements",
)


@pytest.fixture(scope="module")
def poolers(databases: Databases) -> Iterator[dict[str, PgBouncer]]:
    port = urlsplit(databases.url("any")).port
    assert port is not None
    with PgBouncer(port, "transaction") as transaction, PgBouncer(port, "statement") as statement:
        yield {"transaction": transaction, "statement": statement}


def pooled(poolers: dict[str, PgBouncer], mode: str, pg_url: str) -> str:
    return poolers[mode].url(pg_url.rpartition("/")[2])


@pytest.mark.parametrize("mode", ["transaction", "statement"])
@pytest.mark.parametrize(
    "prepare_threshold", [None, pytest.param(0, marks=prepared)], ids=["unprepared", "prepared"]
)
def test_every_call(
    poolers: dict[str, PgBouncer], pg_url: str, mode: str, prepare_threshold: int | None
) -> None:
    url = pooled(poolers, mode, pg_url)
    with psycopg.connect(url, autocommit=True, prepare_threshold=prepare_threshold) as connection:
        sessions = set()
        while len(sessions) < 4:
            sessions |= set(connection.execute("SELECT pg_backend_pid()"))
        for _ in range(6):
            make_every_call(connection)


@pytest.mark.parametrize("mode", ["transaction", "statement"])
def test_a_store_and_its_threads(poolers: dict[str, PgBouncer], pg_url: str, mode: str) -> None:
    with alkstore.open(pooled(poolers, mode, pg_url)) as store:
        queue = store.queue("q")
        queue.enqueue_batch(range(200))

        def work(worker: int) -> list[int]:
            done = []
            while handle := queue.claim_one(f"worker {worker}"):
                assert handle.heartbeat()
                assert handle.ack()
                assert not handle.release()  # as many arguments as ack: a mix-up would show
                done.append(handle.payload)
            return done

        with ThreadPoolExecutor(6) as pool:
            done = Counter(job for jobs in pool.map(work, range(6)) for job in jobs)
        assert done == Counter(range(200))


@pytest.mark.parametrize("mode", ["transaction", "statement"])
def test_a_worker_polls_and_keeps_its_claims(
    poolers: dict[str, PgBouncer], pg_url: str, mode: str
) -> None:
    begun: Counter[str] = Counter()

    def handle(job: JobHandle) -> None:
        begun[job.payload] += 1
        if job.payload == "holds its row" and mode == "transaction":
            with store.transaction() as tx:
                assert job.ack(tx=tx)
                time.sleep(4.5)
        else:
            time.sleep(4.5)

    with alkstore.open(pooled(poolers, mode, pg_url)) as store, alkstore.open(pg_url) as other:
        queue = other.queue("q", visibility_timeout_s=2)
        jobs = queue.enqueue_batch(["holds its row", "works"])
        with running(store, {"q": handle}, concurrency=2, poll_s=0.1):
            until(lambda: len(begun) == 2)
            with running(other, {"q": handle}, poll_s=0.1):
                until(lambda: is_gone(queue, *jobs))
    assert set(begun.values()) == {1}


def test_a_job_and_the_business_row_commit_together(
    poolers: dict[str, PgBouncer], pg_url: str
) -> None:
    with alkstore.open(pooled(poolers, "transaction", pg_url)) as store:
        queue = store.queue("q")
        with store.transaction() as tx:
            tx.connection.execute("CREATE TABLE account (id integer)")
            queue.enqueue("kept", tx=tx)

        def fail_half_way() -> None:
            with store.transaction() as tx:
                tx.connection.execute("INSERT INTO account VALUES (1)")
                queue.enqueue("dropped", tx=tx)
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail_half_way()
        with store.transaction() as tx:
            assert tx.connection.execute("SELECT count(*) FROM account").fetchone() == (0,)
        assert [handle.payload for handle in queue.claim_batch("worker", 5)] == ["kept"]


def test_a_mark_left_in_a_session_misleads_nobody(
    poolers: dict[str, PgBouncer], pg_url: str
) -> None:
    # Who comes next into a claimer's session has its mark; an empty answer is true all the same.
    mark = """
        SELECT set_config('alkstore._mark', ARRAY['alkstore._job'::regclass::oid::text, 'q',
            extract(epoch FROM alkstore._now())::text, '9', '0', '9']::text, false)"""
    with psycopg.connect(
        pooled(poolers, "transaction", pg_url), autocommit=True, prepare_threshold=None
    ) as connection:
        for _ in range(8):
            connection.execute(mark)
        connection.execute("SELECT alkstore.enqueue('q', '1', priority => 5)")
        for number in range(8):
            payload = connection.execute("SELECT payload FROM alkstore.claim('q', 'w')").fetchall()
            assert payload == ([(1,)] if number == 0 else [])
