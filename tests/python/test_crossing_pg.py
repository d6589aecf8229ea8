"""Calls of several sessions of PostgreSQL at once, on the same jobs."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Barrier
from typing import Any

import psycopg

from tests.python.clock import Clock

Session = psycopg.Connection[Any]


WAITING = "SELECT FROM pg_stat_activity WHERE pid = ANY(%s) AND wait_event_type = 'Lock'"


def number(session: Session, call: str, *arguments: object) -> int:
    ((answer, *_),) = session.execute(f"SELECT * FROM alkstore.{call}".encode(), arguments)
    return int(answer)


def ack_up(session: Session, jobs: list[int]) -> int:
    return number(session, "ack_batch('q', %s, %s)", jobs, [1] * len(jobs))


def ack_down(session: Session, jobs: list[int]) -> int:
    return number(session, "ack_batch('q', %s)", jobs[::-1])


def sweep(session: Session, jobs: list[int]) -> int:
    return number(session, "sweep_expired('q')")


def cancel(session: Session, jobs: list[int]) -> int:
    return sum(number(session, "cancel('q', %s)", job) for job in jobs[::-9])


def heartbeat(session: Session, jobs: list[int]) -> int:
    for job in jobs[::5]:
        number(session, "heartbeat('q', %s, 1)", job)
    return 0  # it takes no job away


CROSSING = [ack_up, ack_down, sweep, cancel, heartbeat]
JOBS = 200
ROUNDS = 20


def test_calls_that_cross_on_the_same_jobs_never_deadlock(pg_url: str) -> None:
    """[ack-batch] [sweep]"""
    clock = Clock(pg_url)
    together = Barrier(len(CROSSING), timeout=60)
    jobs: list[int] = []

    def run(call: Callable[[Session, list[int]], int], session: Session) -> int:
        together.wait()
        return call(session, jobs)

    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(len(CROSSING)))
        setup, holder, *sessions = (
            stack.enter_context(psycopg.connect(pg_url, autocommit=True))
            for _ in range(2 + len(CROSSING))
        )
        acks = [session.info.backend_pid for session in sessions[:2]]
        for _ in range(ROUNDS):
            setup.execute(
                "SELECT alkstore.enqueue('q', '1', expires_s => 1) FROM generate_series(1, %s)",
                [JOBS],
            )
            claimed = setup.execute("SELECT job_id FROM alkstore.claim('q', 'w', %s)", [JOBS])
            jobs = [job_id for (job_id,) in claimed]
            clock.advance(2)  # past the expiry: the sweep wants them too
            with holder.transaction():
                # All want this job. Batches in two orders would each hold half of the rest by now.
                assert number(holder, "heartbeat('q', %s, 1)", jobs[JOBS // 2])
                answers = [pool.submit(run, *pair) for pair in zip(CROSSING, sessions, strict=True)]
                while setup.execute(WAITING, [acks]).rowcount < len(acks):
                    assert not any(answer.done() for answer in answers[:2])
            taken = dict(zip(CROSSING, (answer.result() for answer in answers), strict=True))
            assert sum(taken.values()) == JOBS, taken
            dead = setup.execute("SELECT FROM alkstore.dead_jobs WHERE job_id = ANY(%s)", [jobs])
            assert dead.rowcount == taken[sweep]
