"""Every call of the package, on both engines: what it gives back and what it leaves behind."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import FrozenInstanceError, fields
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import psycopg
import pytest

import alkstore
from alkstore import Job, JobHandle, JobRecord, Queue, Store, Swept
from tests.python.clock import START, Clock, after


@pytest.fixture
def queue(store: Store, clock: Clock) -> Queue:
    return store.queue("emails")


def claim(queue: Queue, worker_id: str = "w") -> JobHandle:
    handle = queue.claim_one(worker_id)
    assert handle is not None
    return handle


def read(queue: Queue, job_id: int) -> JobRecord:
    job = queue.get_job(job_id)
    assert job is not None
    return job


# -- enqueue --------------------------------------------------------------------------------------


def test_a_job_with_defaults_has_the_documented_columns(queue: Queue) -> None:
    job_id = queue.enqueue({"to": 7})
    assert queue.get_job(job_id) == JobRecord(
        id=1,
        queue="emails",
        payload_text='{"to": 7}',
        priority=0,
        attempts=0,
        max_attempts=3,
        created_at=START,
        run_at=START,
        expires_at=None,
        worker_id=None,
        claimed_at=None,
        claim_expires_at=None,
        state="pending",
        visibility_timeout_s=300,
        backoff_base_s=5,
        dead_letter_retention_s=None,
        retry_error=None,
        last_error=None,
        died_at=None,
        released=0,
    )


def test_the_queue_stamps_its_options_onto_each_job(store: Store, clock: Clock) -> None:
    queue = store.queue(
        "emails",
        visibility_timeout_s=10,
        max_attempts=7,
        backoff_base_s=2,
        dead_letter_retention_s=60,
    )
    stamped = read(queue, queue.enqueue(1))
    assert stamped.visibility_timeout_s == 10
    assert stamped.max_attempts == 7
    assert stamped.backoff_base_s == 2
    assert stamped.dead_letter_retention_s == 60
    [other] = queue.enqueue_batch([2], max_attempts=1)
    assert read(queue, other).max_attempts == 1


def test_options_of_enqueue(queue: Queue) -> None:
    job_id = queue.enqueue(1, delay_s=60, run_at=after(5), priority=-3, expires_s=90)
    job = read(queue, job_id)
    assert (job.run_at, job.priority, job.expires_at) == (after(60), -3, after(90))


def test_none_means_the_default(store: Store, clock: Clock) -> None:
    queue = store.queue("q", visibility_timeout_s=None, max_attempts=None, backoff_base_s=None)
    job = read(queue, queue.enqueue(1, priority=None))
    assert (job.visibility_timeout_s, job.max_attempts, job.backoff_base_s) == (300, 3, 5)
    assert job.priority == 0


@pytest.mark.parametrize(
    ("run_at", "stored"),
    [
        (datetime(2030, 1, 2, 3, 4, 5, 999999, tzinfo=UTC), datetime(2030, 1, 2, 3, 4, 5)),
        (
            datetime(2030, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=5, minutes=45))),
            datetime(2030, 1, 1, 21, 19, 5),
        ),
        (datetime(1, 1, 1, tzinfo=UTC), datetime(1, 1, 1)),
        (
            datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
            datetime(9999, 12, 31, 23, 59, 59),
        ),
        (
            datetime(1969, 12, 31, 23, 59, 59, 500000, tzinfo=UTC),
            datetime(1969, 12, 31, 23, 59, 59),
        ),
    ],
)
def test_run_at_is_an_instant_cut_to_whole_seconds(
    queue: Queue, run_at: datetime, stored: datetime
) -> None:
    job_id = queue.enqueue(1, run_at=run_at)
    assert read(queue, job_id).run_at == stored.replace(tzinfo=UTC)
    assert queue.next_due() == stored.replace(tzinfo=UTC)


def test_a_batch_gives_ids_in_the_order_of_its_payloads(queue: Queue) -> None:
    ids = queue.enqueue_batch(f"job {n}" for n in range(1000))
    assert ids == sorted(ids)
    assert len(set(ids)) == 1000
    assert [read(queue, ids[n]).payload for n in (0, 1, 500, 999)] == [
        "job 0",
        "job 1",
        "job 500",
        "job 999",
    ]
    assert queue.enqueue_batch([]) == []


# -- claim ----------------------------------------------------------------------------------------


def test_a_claim_gives_a_handle_with_the_columns_of_the_job(queue: Queue, clock: Clock) -> None:
    queue.enqueue({"to": 7}, priority=2, expires_s=1000)
    clock.advance(5)
    handle = queue.claim_one("worker-1")
    assert handle == JobHandle(
        id=1,
        queue="emails",
        payload_text='{"to": 7}',
        priority=2,
        attempts=1,
        max_attempts=3,
        created_at=START,
        run_at=START,
        expires_at=after(1000),
        worker_id="worker-1",
        claimed_at=after(5),
        claim_expires_at=after(305),
        _store=queue._store,
    )
    assert isinstance(handle, Job)
    assert handle.attempt == 1
    assert handle.payload == {"to": 7}
    job = read(queue, handle.id)
    assert (job.state, job.worker_id, job.claim_expires_at) == (
        "processing",
        "worker-1",
        after(305),
    )


def test_an_empty_queue_gives_none(queue: Queue) -> None:
    assert queue.claim_one("w") is None
    assert queue.claim_batch("w", 10) == []


def test_claims_come_by_priority_then_run_at_then_id(queue: Queue) -> None:
    ids = [queue.enqueue(1, priority=priority) for priority in (0, 5, 1, 9)]
    earlier = queue.enqueue(1, priority=1, run_at=after(-1))
    again = queue.enqueue(1, priority=1)
    handles = queue.claim_batch("w", 10)
    assert [h.id for h in handles] == [ids[3], ids[1], earlier, ids[2], again, ids[0]]


def test_a_batch_takes_at_most_n(queue: Queue) -> None:
    ids = queue.enqueue_batch(range(5))
    assert queue.claim_batch("w", 0) == []
    assert queue.claim_batch("w", -1) == []
    assert [h.id for h in queue.claim_batch("w", 2)] == ids[:2]
    assert [h.id for h in queue.claim_batch("w", None)] == ids[2:3]
    assert [h.id for h in queue.claim_batch("w", 2**63 - 1)] == ids[3:]


# -- what a handle does ---------------------------------------------------------------------------


def test_ack_deletes_the_job_once(queue: Queue) -> None:
    queue.enqueue(1)
    handle = claim(queue)
    assert handle.ack() is True
    assert queue.get_job(handle.id) is None
    assert handle.ack() is False


def test_retry_waits_for_the_backoff_or_the_given_delay(queue: Queue) -> None:
    job_id = queue.enqueue(1)
    assert claim(queue).retry("HTTP 503", delay_s=0) is True
    assert claim(queue).retry(delay_s=60) is True
    job = read(queue, job_id)
    assert (job.state, job.run_at, job.attempts) == ("pending", after(60), 2)
    assert (job.worker_id, job.claimed_at, job.claim_expires_at) == (None, None, None)
    assert job.retry_error == "HTTP 503"
    backed_off = queue.enqueue(2)
    claim(queue).retry()
    assert after(3) <= read(queue, backed_off).run_at <= after(5)


def test_retry_after_the_last_attempt_buries_the_job(store: Store, clock: Clock) -> None:
    queue = store.queue("q", max_attempts=1)
    job_id = queue.enqueue(1)
    assert claim(queue).retry(ValueError("no such user")) is True
    job = read(queue, job_id)
    assert (job.state, job.died_at) == ("dead", START)
    assert (job.last_error, job.retry_error) == ("no such user", "no such user")


def test_release_hands_the_job_back_unused(queue: Queue) -> None:
    job_id = queue.enqueue(1)
    assert claim(queue).release() is True
    job = read(queue, job_id)
    assert (job.state, job.attempts, job.released) == ("pending", 1, 1)
    assert claim(queue).attempt == 2


def test_fail_buries_the_job_with_its_error(queue: Queue) -> None:
    first, second = queue.enqueue_batch([1, 2])
    assert claim(queue).fail("no such user") is True
    assert claim(queue).fail() is True
    assert read(queue, first).last_error == "no such user"
    assert read(queue, second).last_error == "failed"
    assert read(queue, second).state == "dead"


def test_heartbeat_sets_the_deadline_anew(queue: Queue, clock: Clock) -> None:
    job_id = queue.enqueue(1)
    handle = claim(queue)
    clock.advance(100)
    assert handle.heartbeat() is True
    assert read(queue, job_id).claim_expires_at == after(400)
    assert handle.heartbeat(extend_s=7) is True
    assert read(queue, job_id).claim_expires_at == after(107)
    clock.advance(7)
    assert handle.heartbeat(extend_s=1) is True
    clock.advance(2)
    assert handle.heartbeat() is False


def test_a_handle_is_refused_once_its_claim_was_taken_over(queue: Queue, clock: Clock) -> None:
    # The same worker name in two lives.
    job_id = queue.enqueue(1)
    old = claim(queue, "pod-1")
    clock.advance(301)
    assert old.ack() is False
    new = claim(queue, "pod-1")
    assert (new.id, new.attempt) == (job_id, 2)
    before = read(queue, job_id)
    assert not any([old.ack(), old.heartbeat(), old.retry("x"), old.release(), old.fail("x")])
    assert queue.ack_batch([old]) == 0
    assert read(queue, job_id) == before
    assert new.ack() is True


# -- calls on the queue ---------------------------------------------------------------------------


def test_ack_batch_counts_what_it_accepted(queue: Queue) -> None:
    queue.enqueue_batch(range(3))
    handles = queue.claim_batch("w", 3)
    assert queue.cancel(handles[1].id) is True
    assert queue.ack_batch([]) == 0
    assert queue.ack_batch([*handles, 987654321, handles[0]]) == 2
    assert queue.ack_batch(handles) == 0


def test_ack_batch_takes_bare_ids_without_looking_at_the_attempt(
    queue: Queue, clock: Clock
) -> None:
    ids = queue.enqueue_batch(range(3))
    queue.claim_batch("w", 2)
    assert queue.ack_batch(ids) == 2  # the third was not claimed
    assert read(queue, ids[2]).state == "pending"


def test_every_call_is_scoped_to_its_queue(store: Store, queue: Queue) -> None:
    other = store.queue("Emails")
    job_id = queue.enqueue(1)
    assert other.get_job(job_id) is None
    assert other.cancel(job_id) is False
    assert other.claim_one("w") is None
    assert other.next_due() is None
    handle = claim(queue)
    assert other.ack_batch([handle, job_id]) == 0
    assert handle.ack() is True


def test_cancel_deletes_a_live_job_in_either_state(queue: Queue) -> None:
    pending, processing, dead = queue.enqueue(1), queue.enqueue(2, priority=1), queue.enqueue(3)
    handle = claim(queue)
    assert handle.id == processing
    assert queue.cancel(processing) is True
    assert handle.ack() is False
    assert queue.cancel(pending) is True
    assert queue.cancel(pending) is False
    claim(queue).fail()
    assert queue.cancel(dead) is False
    assert read(queue, dead).state == "dead"


def test_sweep_buries_expired_jobs_and_prunes_dead_ones(store: Store, clock: Clock) -> None:
    queue = store.queue("q", dead_letter_retention_s=50)
    ids = queue.enqueue_batch(range(2), expires_s=10)
    claim(queue)
    assert queue.sweep_expired() == Swept(expired=0, pruned=0)
    clock.advance(11)
    assert queue.claim_one("w") is None
    assert queue.sweep_expired() == (2, 0)
    assert [read(queue, i).last_error for i in ids] == ["expired", "expired"]
    clock.advance(51)
    swept = queue.sweep_expired()
    assert (swept.expired, swept.pruned) == (0, 2)
    assert queue.get_job(ids[0]) is None


def test_next_due_tells_when_to_claim_again(queue: Queue, clock: Clock) -> None:
    assert queue.next_due() is None
    queue.enqueue(1, delay_s=600)
    assert queue.next_due() == after(600)
    queue.enqueue(2)
    assert queue.next_due() == START
    claim(queue)
    assert queue.next_due() == after(301)  # the first second in which the claim has lapsed


def test_ids_past_32_bits_work_in_every_call(
    queue: Queue, clock: Clock, engine: str, target: str
) -> None:
    if engine == "postgres":
        with psycopg.connect(target) as connection:
            sequence = "pg_get_serial_sequence('alkstore._job', 'id')"
            connection.execute(f"SELECT setval({sequence}, 3000000000)")
    else:
        with closing(sqlite3.connect(target)) as connection, connection:
            connection.execute(
                "INSERT INTO sqlite_sequence VALUES ('alkstore_enqueue', 3000000000)"
            )
    first = queue.enqueue(1)
    assert first == 3000000001
    ids = [first, *queue.enqueue_batch([2, 3, 4])]
    handles = queue.claim_batch("w", 3)
    assert [h.id for h in handles] == ids[:3]
    assert handles[0].heartbeat()
    assert queue.ack_batch([handles[0], ids[1]]) == 2
    assert handles[2].fail("x")
    assert read(queue, ids[2]).state == "dead"
    assert queue.cancel(ids[3]) is True


@pytest.mark.parametrize("zone", ["Asia/Kathmandu", "America/New_York"])
def test_the_time_zone_of_the_session_does_not_matter(pg_url: str, zone: str) -> None:
    clock = Clock(pg_url)
    with alkstore.open(f"{pg_url}?options=-c%20TimeZone%3D{zone}") as store:
        queue = store.queue("q")
        queue.enqueue(1, run_at=datetime(1, 1, 1, tzinfo=UTC))
        queue.enqueue(1, run_at=datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC))
        assert queue.next_due() == datetime(1, 1, 1, tzinfo=UTC)
        handle = claim(queue)
        assert handle.claimed_at == START
        clock.advance(1)
        assert handle.retry(delay_s=59)
        assert read(queue, handle.id).run_at == after(60)
        assert read(queue, 2).run_at == datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)


def test_calls_that_change_nothing_wake_no_watcher_of_the_file(sqlite_path: Path) -> None:
    with alkstore.open(sqlite_path) as store, closing(sqlite3.connect(sqlite_path)) as watcher:
        queue = store.queue("q")
        queue.enqueue(1)
        claim(queue)
        assert queue.claim_one("w") is None  # clears what the claim before had left
        before = watcher.execute("PRAGMA data_version").fetchall()
        assert queue.claim_batch("w", 10) == []
        assert queue.sweep_expired() == (0, 0)
        assert queue.ack_batch([987654321]) == 0
        assert queue.cancel(987654321) is False
        assert queue.next_due() is not None
        assert watcher.execute("PRAGMA data_version").fetchall() == before
        queue.enqueue(2)
        assert watcher.execute("PRAGMA data_version").fetchall() != before


# -- values ---------------------------------------------------------------------------------------


def test_jobs_are_frozen_values(queue: Queue) -> None:
    job_id = queue.enqueue([1])
    job = read(queue, job_id)
    assert job == read(queue, job_id)
    assert hash(job) == hash(read(queue, job_id))
    assert job.payload is job.payload
    for field in fields(job):
        with pytest.raises(FrozenInstanceError):
            setattr(job, field.name, None)
    assert "_store" not in repr(claim(queue))
