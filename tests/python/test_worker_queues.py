"""Worker: several queues, calls that fail, other workers, and what becomes due later."""

from __future__ import annotations

import time
from collections import Counter
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from typing import Any

import pytest

import alkstore
from alkstore import Busy, JobHandle, Retry, Store, _outcomes
from tests.python.waiting import until
from tests.python.working import Gate, execute, is_gone, is_looking, record, running, warnings

# Which statements on a job whose payload is "bad" fail: {0} is UPDATE for claims, DELETE for acks.
FORBID = {
    "sqlite": """
        CREATE TRIGGER forbid BEFORE {0} ON __alkstore_job WHEN OLD.payload = '"bad"'
        BEGIN SELECT RAISE(ABORT, 'no bad payloads'); END""",
    "postgres": """
        CREATE FUNCTION public.forbid() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          IF OLD.payload::text = '"bad"' THEN RAISE EXCEPTION 'no bad payloads'; END IF;
          RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
        END $$;
        CREATE TRIGGER forbid BEFORE {0} ON alkstore._job
        FOR EACH ROW EXECUTE FUNCTION public.forbid()""",
}
PERMIT = {
    "sqlite": "DROP TRIGGER forbid",
    "postgres": "DROP TRIGGER forbid ON alkstore._job",
}


@pytest.mark.parametrize("prefetch", [0, 100])
def test_a_flooded_queue_does_not_starve_another(store: Store, prefetch: int) -> None:
    flooded, other = store.queue("flooded"), store.queue("other")
    flooded.enqueue_batch(range(400))
    last = other.enqueue_batch(range(10))[-1]
    done: list[str] = []

    def handle(job: JobHandle) -> None:
        done.append(job.queue)

    with running(store, {"flooded": handle, other: handle}, prefetch=prefetch, poll_s=600):
        until(lambda: is_gone(other, last))
        until(lambda: len(done) == 410)
    # Of what it claims at once at most half is of either while both have something.
    assert [n for n, queue in enumerate(done) if queue == "other"][-1] < 250


def test_queues_share_what_is_claimed_at_once(store: Store) -> None:
    queues = [store.queue("a"), store.queue("b")]
    for queue in queues:
        queue.enqueue_batch(range(400))
    done: list[str] = []
    with running(store, {queue: lambda job: done.append(job.queue) for queue in queues}):
        until(lambda: len(done) == 800)
    in_a_row = [len(list(jobs)) for _, jobs in groupby(done[:400])]  # while both have some
    # One is being worked on, with a hundred ahead of it.
    assert max(in_a_row) <= 51


def test_a_queue_whose_claims_fail_stops_no_other_and_comes_back(
    store: Store, engine: str, caplog: pytest.LogCaptureFixture
) -> None:
    good, bad = store.queue("good"), store.queue("bad")
    bad_job = bad.enqueue("bad")
    execute(store, FORBID[engine].format("UPDATE"))
    with running(store, {"bad": print, "good": lambda job: None}, poll_s=600):
        for _ in range(3):
            until(partial(is_gone, good, good.enqueue(1)))
        until(lambda: any("no bad payloads" in text for text in warnings(caplog)))
        execute(store, PERMIT[engine])
        until(lambda: is_gone(bad, bad_job))


def test_an_ack_that_fails_holds_up_no_other_and_is_sent_again(
    store: Store, engine: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_outcomes, "_GROUP_S", 0.5)  # the bad one goes with others
    queue = store.queue("q", visibility_timeout_s=60)
    execute(store, FORBID[engine].format("DELETE"))
    bad, *others = queue.enqueue_batch(["bad", *range(20)])
    begun: Counter[int] = Counter()

    def handle(job: JobHandle) -> None:
        begun[job.id] += 1

    with running(store, {"q": handle}, concurrency=4):
        until(lambda: is_gone(queue, *others))
        until(lambda: any("will be sent again" in text for text in warnings(caplog)))
        execute(store, PERMIT[engine])
        until(lambda: is_gone(queue, bad))
    assert set(begun.values()) == {1}


def test_what_cannot_be_acked_is_let_lapse(
    store: Store, engine: str, caplog: pytest.LogCaptureFixture
) -> None:
    queue = store.queue("q", visibility_timeout_s=1)
    execute(store, FORBID[engine].format("DELETE"))
    job_id = queue.enqueue("bad")
    begun: list[int] = []
    with running(store, {"q": lambda job: begun.append(job.attempt)}):
        until(lambda: len(begun) >= 2)
        execute(store, PERMIT[engine])
        until(lambda: is_gone(queue, job_id))
    assert (
        f"job {job_id} of 'q': its claim was lost, or it was cancelled, before the ack"
        in warnings(caplog)
    )


def test_a_job_that_is_done_is_kept_until_its_ack_arrives(
    store: Store, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = store.queue("q", visibility_timeout_s=2)
    calls = next(c for c in type(store._engine).__mro__ if "settle" in vars(c))
    settle = calls.settle
    first_at = 0.0

    def late_settle(session: Any, call: str, *more: Any) -> Any:
        nonlocal first_at
        first_at = first_at or (time.monotonic() if call == "ack" else 0)
        if call == "ack" and time.monotonic() < first_at + 4.5:
            raise Busy("held by others")
        return settle(session, call, *more)

    monkeypatch.setattr(calls, "settle", late_settle)
    job_id = queue.enqueue(1)
    begun: list[int] = []
    with running(store, {"q": lambda job: begun.append(job.attempt)}):
        until(lambda: begun)
        with alkstore.open(target) as other, running(other, {"q": begun.append}, poll_s=0.1):
            until(lambda: is_gone(queue, job_id))
    assert begun == [1]


def test_a_worker_without_room_leaves_a_wake_to_another(store: Store, gate: Gate) -> None:
    long, short = store.queue("long"), store.queue("short")
    done: list[str] = []
    full = {"long": gate, "short": lambda job: done.append("full")}
    free = {"short": lambda job: done.append("free")}
    with running(store, full, poll_s=600):
        until(lambda: is_looking(store, {"long", "short"}))
        with running(store, free, poll_s=600):
            until(lambda: is_looking(store, {"long", "short"}, number=3))
            long.enqueue(1)
            until(lambda: gate.begun)
            first = short.enqueue(1)
            until(lambda: is_gone(short, first))
            assert done == ["free"]
        # What it left to others it does itself when it can.
        second = short.enqueue(2)
        gate.open()
        until(lambda: is_gone(short, second))


def test_what_becomes_due_later_is_done_when_it_is(store: Store) -> None:
    queue = store.queue("q", backoff_base_s=1)
    done: dict[str, datetime] = {}

    def handle(job: JobHandle) -> None:
        done[f"{job.payload} {job.attempt}"] = datetime.now(UTC)
        if job.attempt == 1 and job.payload == "fails":
            raise Retry(delay_s=1)

    with running(store, {"q": handle}, poll_s=600):
        until(lambda: is_looking(store, {"q"}))
        jobs = [queue.enqueue("delayed", delay_s=2), queue.enqueue("fails")]
        run_at = record(queue, jobs[0]).run_at
        until(lambda: is_gone(queue, *jobs))
    assert done["delayed 1"] >= run_at
    assert done["fails 2"] > done["fails 1"]
