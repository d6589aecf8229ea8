"""Worker: who comes first where queues compete, and what is too much for one claim."""

from __future__ import annotations

import time
from typing import Any

import pytest

from alkstore import JobHandle, RawJson, StopToken, Store, Worker
from alkstore.postgres import PostgresSession
from alkstore.sqlite import SqliteSession


def test_where_there_is_room_for_one_job_queues_take_turns(store: Store) -> None:
    done: list[str] = []
    stop = StopToken()

    def handle(job: JobHandle) -> None:
        time.sleep(0.005)
        done.append(job.queue)
        if len(done) == 30:
            stop.set()

    for queue, jobs in (("a", 100), ("b", 10), ("c", 10)):
        store.queue(queue).enqueue_batch(range(jobs))
    Worker(store, dict.fromkeys("abc", handle), prefetch=0, stop=stop).run()
    assert "".join(done) == "abc" * 10


def test_what_is_too_much_for_one_claim_is_claimed_in_parts(
    store: Store, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As payloads of gigabytes are, which SQLite gives in one text."""
    session: Any = {"sqlite": SqliteSession, "postgres": PostgresSession}[engine]
    look = session.look
    asked: list[int] = []

    def limited(self: Any, queue: str, worker_id: str, n: int) -> Any:
        asked.append(n)
        if n > 5:
            raise ValueError("too big")
        return look(self, queue, worker_id, n)

    monkeypatch.setattr(session, "look", limited)
    queue = store.queue("q")
    queue.enqueue_batch([RawJson("1")] * 20)
    stop = StopToken()
    jobs = []
    for job in queue.consume("w", batch=10, stop=stop):
        jobs.append(job.id)
        if len(jobs) == 20:
            stop.set()
    assert jobs == sorted(set(jobs))
    assert asked == [10, 1, 2, 4, 8, 1, 2, 4, 8, 1, 2, 4]
