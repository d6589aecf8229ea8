"""Store.outbox(): messages that go out if, and only if, a transaction commits."""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from queue import SimpleQueue
from typing import Any

import psycopg
import pytest

import alkstore
from alkstore import (
    Fail,
    InvalidName,
    InvalidOption,
    InvalidPayload,
    JobHandle,
    JobRecord,
    Outbox,
    Queue,
    Retry,
    StopToken,
    Store,
    StoreClosed,
    Swept,
    Worker,
)
from tests.python.clock import Clock, after
from tests.python.names import BAD_NAMES, GOOD_NAMES, NOT_TEXT, RESERVED_NAMES, refusal, short
from tests.python.roles import Roles
from tests.python.waiting import until
from tests.python.working import LONG_S


@pytest.fixture
def outbox(store: Store) -> Outbox:
    return store.outbox("mail")


@contextmanager
def running(loop: Callable[..., None], *arguments: Any) -> Iterator[None]:
    """outbox.run(…) or the like in a thread of its own, stopped at the end."""
    stop = StopToken()
    thread = threading.Thread(target=loop, args=arguments, kwargs={"stop": stop}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(timeout=60)
        assert not thread.is_alive()


@pytest.fixture
def run() -> Iterator[Callable[..., None]]:
    """Starts what runs until the end of the test."""
    with ExitStack() as stack:
        yield lambda *arguments: stack.enter_context(running(*arguments))


def read(outbox: Outbox | Queue, job_id: int) -> JobRecord:
    job = outbox.get_job(job_id)
    assert job is not None
    return job


# -- the calls ------------------------------------------------------------------------------------


def test_a_message_is_a_job_with_the_default_stamps(
    store: Store, outbox: Outbox, clock: Clock
) -> None:
    queue = store.queue("mail")
    message, job = outbox.enqueue({"to": 7}), queue.enqueue({"to": 7})
    assert (message, job) == (1, 2)
    assert read(outbox, message) == replace(read(queue, job), id=1, queue="__alkstore_outbox_mail")
    assert (outbox.name, repr(outbox)) == ("mail", "<alkstore.Outbox 'mail'>")


def test_each_message_has_its_own_options(outbox: Outbox, clock: Clock) -> None:
    first = outbox.enqueue(
        1, delay_s=60, run_at=after(5), priority=-3, expires_s=90, max_attempts=9
    )
    job = read(outbox, first)
    assert (job.run_at, job.priority, job.expires_at, job.max_attempts) == (
        after(60), -3, after(90), 9,
    )  # fmt: skip
    assert read(outbox, outbox.enqueue(1, run_at=after(5))).run_at == after(5)


def test_wrong_arguments_are_refused_and_add_nothing(store: Store, outbox: Outbox) -> None:
    with pytest.raises(InvalidPayload):
        outbox.enqueue(alkstore.RawJson("{"))
    with pytest.raises(InvalidOption):
        outbox.enqueue(1, delay_s=-1)
    with pytest.raises(InvalidOption):
        outbox.enqueue(1, max_attempts=0)
    with pytest.raises(TypeError, match="tx must be"):
        outbox.enqueue(1, tx="a transaction")  # type: ignore[arg-type]
    with pytest.raises(InvalidOption):
        outbox.run(print, concurrency=0)
    with pytest.raises(InvalidName):
        outbox.run(print, worker_id="a\0b")
    assert store._engine.next_due(None, outbox._queue) is None


def test_a_queue_and_an_outbox_of_one_name_have_nothing_in_common(
    store: Store, outbox: Outbox
) -> None:
    queue, another = store.queue("mail"), store.outbox("post")
    message = outbox.enqueue("message", expires_s=1)
    assert queue.next_due() is None
    assert queue.claim_one("w") is None
    job = queue.enqueue("job", expires_s=1)
    for stranger in (queue, another):
        assert stranger.get_job(message) is None
        assert stranger.cancel(message) is False
    assert outbox.get_job(job) is None
    assert outbox.cancel(job) is False
    assert outbox.cancel(message) is True
    assert queue.cancel(job) is True


def test_only_a_live_message_can_be_cancelled(outbox: Outbox, run: Any) -> None:
    message, dead = outbox.enqueue(1, delay_s=60), outbox.enqueue(2)
    run(outbox.run, fail)
    until(lambda: read(outbox, dead).state == "dead")
    assert (outbox.cancel(message), outbox.cancel(message)) == (True, False)
    assert (outbox.cancel(dead), read(outbox, dead).last_error) == (False, "no such address")


def fail(message: JobHandle) -> None:
    raise Fail("no such address")


def test_a_sweep_buries_what_came_too_late(store: Store, outbox: Outbox, clock: Clock) -> None:
    late, lasting = outbox.enqueue(1, expires_s=10), outbox.enqueue(2)
    elsewhere = store.queue("mail").enqueue(3, expires_s=10)
    clock.advance(11)
    assert outbox.sweep_expired() == Swept(expired=1, pruned=0)
    assert outbox.sweep_expired() == Swept(expired=0, pruned=0)
    job = read(outbox, late)
    assert (job.state, job.last_error, job.died_at) == ("dead", "expired", after(11))
    assert read(outbox, lasting).state == "pending"
    other = store.queue("mail").get_job(elsewhere)
    assert other is not None
    assert other.state == "pending"


def test_calls_of_a_closed_store_say_so(store: Store, outbox: Outbox) -> None:
    store.close()
    for call in (
        lambda: outbox.enqueue(1),
        lambda: outbox.cancel(1),
        lambda: outbox.get_job(1),
        outbox.sweep_expired,
        lambda: outbox.run(print),
    ):
        with pytest.raises(StoreClosed):
            call()


# -- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", [*BAD_NAMES, *RESERVED_NAMES, *NOT_TEXT, "n" * 238, "é" * 119], ids=short
)
def test_a_bad_name_is_refused_when_the_outbox_is_made(store: Store, name: Any) -> None:
    with pytest.raises(InvalidName):
        store.outbox(name)


def test_the_name_rule_of_the_package_is_that_of_the_engines(store: Store) -> None:
    good = [name for name in GOOD_NAMES if len(name.encode()) <= 237]
    bad = ["", "n" * 238, "é" * 119, *RESERVED_NAMES, "__alkstore_outbox_mail"]
    for name in [*good, "n" * 237, "é" * 118, *bad]:
        outbox = store.outbox("mail")
        outbox.name = name  # past the package's own check
        by_engine = refusal(lambda outbox=outbox: outbox.enqueue(1))
        assert by_engine is (InvalidName if name in bad else None), name
        assert refusal(lambda name=name: store.outbox(name)) is by_engine, name


def test_every_allowed_name_has_an_outbox_of_its_own(store: Store, run: Any) -> None:
    names = [name for name in GOOD_NAMES if len(name.encode()) <= 237] + ["n" * 237]
    delivered: SimpleQueue[tuple[str, int]] = SimpleQueue()
    for name in names:
        run(store.outbox(name).run, lambda job, name=name: delivered.put((name, job.id)))
    sent = {(name, store.outbox(name).enqueue(name)) for name in names}
    assert {delivered.get(timeout=60) for _ in names} == sent
    assert delivered.empty()


# -- the transaction ------------------------------------------------------------------------------


class Abandon(Exception):
    pass


@pytest.fixture
def orders(store: Store) -> Callable[[], list[int]]:
    """The business table, and what is committed in it."""
    with store.transaction() as tx:
        tx.connection.execute("CREATE TABLE orders (id integer)")

    def committed() -> list[int]:
        with store.transaction() as tx:
            rows = tx.connection.execute("SELECT id FROM orders ORDER BY id").fetchall()
        return [order for (order,) in rows]

    return committed


def place(outbox: Outbox, order: int, tx: Any) -> int:
    connection = getattr(tx, "connection", None) or tx
    connection.execute(f"INSERT INTO orders VALUES ({order})")
    return outbox.enqueue({"order": order}, tx=tx)


def test_a_message_goes_out_if_and_only_if_its_transaction_commits(
    store: Store, outbox: Outbox, orders: Any, run: Any
) -> None:
    delivered: SimpleQueue[Any] = SimpleQueue()
    run(outbox.run, lambda job: delivered.put(job.payload))
    with suppress(Abandon), store.transaction() as tx:
        lost = place(outbox, 1, tx)
        assert outbox.get_job(lost, tx=tx) is not None
        raise Abandon
    with store.transaction() as tx:
        place(outbox, 2, tx)
        tx.connection.execute("SAVEPOINT s")
        place(outbox, 3, tx)
        tx.connection.execute("ROLLBACK TO SAVEPOINT s")
        place(outbox, 4, tx)
        assert delivered.empty()
    assert [delivered.get(timeout=60) for _ in range(2)] == [{"order": 2}, {"order": 4}]
    assert orders() == [2, 4]
    assert delivered.empty()


def test_a_connection_of_ones_own_commits_and_rolls_back_too(
    engine: str, target: str, outbox: Outbox, orders: Any
) -> None:
    with closing(sqlite3.connect(target) if engine == "sqlite" else psycopg.connect(target)) as own:
        lost = place(outbox, 1, own)
        own.rollback()
        assert outbox.get_job(lost) is None
        kept = place(outbox, 2, own)
        assert outbox.get_job(kept) is None
        own.commit()
        assert read(outbox, kept).payload == {"order": 2}
        assert outbox.cancel(kept, tx=own) is True
        own.rollback()
        assert read(outbox, kept).state == "pending"
    assert orders() == [2]


# -- delivery -------------------------------------------------------------------------------------


def test_what_is_delivered_is_acked(outbox: Outbox, run: Any) -> None:
    delivered: SimpleQueue[JobHandle] = SimpleQueue()
    run(outbox.run, delivered.put)
    for n in range(3):
        sent = outbox.enqueue({"n": n}, priority=n)
        job = delivered.get(timeout=60)
        assert (job.id, job.payload, job.priority, job.attempt) == (sent, {"n": n}, n, 1)
        assert job.queue == "__alkstore_outbox_mail"
        until(lambda sent=sent: outbox.get_job(sent) is None)
    assert delivered.empty()


def test_a_vain_delivery_is_tried_again_with_its_error(
    outbox: Outbox, run: Any, caplog: pytest.LogCaptureFixture
) -> None:
    ids: SimpleQueue[int] = SimpleQueue()

    def deliver(job: JobHandle) -> None:
        ids.put(job.id)
        if job.attempt == 1:
            raise Retry("503 Service Unavailable", delay_s=0)
        raise ConnectionError("no route to host")

    message = outbox.enqueue(1)
    run(outbox.run, deliver)
    job = until(lambda: (job := read(outbox, message)).attempts == 2 and not job.worker_id and job)
    assert (job.state, job.retry_error) == ("pending", "ConnectionError: no route to host")
    assert 5 <= (job.run_at - job.created_at).total_seconds() <= 40  # the second backoff
    assert [ids.get(timeout=60) for _ in range(2)] == [message] * 2  # the key stays the same
    assert "attempt 2, failed" in caplog.text


def test_the_last_attempt_in_vain_leaves_a_dead_message(outbox: Outbox, run: Any) -> None:
    def deliver(job: JobHandle) -> None:
        raise Retry(f"attempt {job.attempt}", delay_s=0)

    messages = {outbox.enqueue(1): 3, outbox.enqueue(2, max_attempts=5): 5}
    run(outbox.run, deliver)
    for message, attempts in messages.items():
        until(lambda message=message: read(outbox, message).state == "dead")
        job = read(outbox, message)
        assert (job.attempts, job.last_error) == (attempts, f"attempt {attempts}")


def test_no_wake_before_the_commit_and_one_at_the_commit(
    store: Store, outbox: Outbox, run: Any
) -> None:
    delivered: SimpleQueue[int] = SimpleQueue()

    def serve(stop: StopToken) -> None:  # where nobody polls
        Worker(store, {outbox: lambda job: delivered.put(job.id)}, stop=stop, poll_s=3600).run()

    run(serve)
    first = outbox.enqueue(1)
    assert delivered.get(timeout=60) == first
    with store.transaction() as tx:
        second = outbox.enqueue(2, tx=tx)
        assert delivered.empty()
    assert delivered.get(timeout=60) == second


def test_one_worker_serves_queues_and_outboxes(store: Store, outbox: Outbox, run: Any) -> None:
    done: SimpleQueue[tuple[str, int]] = SimpleQueue()

    def handler(kind: str) -> Callable[[JobHandle], None]:
        return lambda job: done.put((kind, job.id))

    def serve(stop: StopToken) -> None:
        handlers = {
            "mail": handler("name"),
            store.queue("jobs"): handler("queue"),
            outbox: handler("outbox"),
        }
        Worker(store, handlers, concurrency=3, stop=stop).run()

    run(serve)
    sent = {
        ("name", store.queue("mail").enqueue(1)),
        ("queue", store.queue("jobs").enqueue(1)),
        ("outbox", outbox.enqueue(1)),
    }
    assert {done.get(timeout=60) for _ in sent} == sent
    with pytest.raises(InvalidName):
        Worker(store, {"__alkstore_outbox_mail": print})


def test_many_are_delivered_at_once_and_each_once(store: Store, outbox: Outbox, run: Any) -> None:
    together = threading.Barrier(4)
    delivered: SimpleQueue[int] = SimpleQueue()

    def deliver(job: JobHandle) -> None:
        together.wait(timeout=60)
        delivered.put(job.id)

    with store.transaction() as tx:
        sent = [outbox.enqueue(n, tx=tx) for n in range(4)]

    def serve(stop: StopToken) -> None:
        outbox.run(deliver, concurrency=2, stop=stop)

    run(serve)
    run(serve)
    assert sorted(delivered.get(timeout=60) for _ in sent) == sent
    until(lambda: all(outbox.get_job(message) is None for message in sent))
    assert delivered.empty()


def test_after_a_stop_nothing_is_delivered(outbox: Outbox) -> None:
    stop = StopToken()
    first, second = outbox.enqueue(1), outbox.enqueue(2)
    outbox.run(lambda job: stop.set(), stop=stop)  # it returns
    assert outbox.get_job(first) is None
    assert read(outbox, second).state == "pending"


def test_what_a_hung_deliverer_holds_is_delivered_once_its_claim_has_lapsed(
    store: Store, outbox: Outbox, clock: Clock, run: Any, caplog: pytest.LogCaptureFixture
) -> None:
    hung, go_on = threading.Event(), threading.Event()

    def hang(job: JobHandle) -> None:
        hung.set()
        assert go_on.wait(LONG_S)

    def serve(stop: StopToken) -> None:
        outbox.run(hang, stop=stop, worker_id="hung")

    message = outbox.enqueue(1)
    run(serve)
    assert hung.wait(timeout=60)
    job = read(outbox, message)
    assert (job.worker_id, job.claim_expires_at) == ("hung", after(300))

    delivered: SimpleQueue[JobHandle] = SimpleQueue()

    def serve_too(stop: StopToken) -> None:  # one that looks often: the clock stands still
        Worker(store, {outbox: delivered.put}, stop=stop, poll_s=0.05).run()

    run(serve_too)
    clock.advance(301)
    again = delivered.get(timeout=60)
    assert (again.id, again.attempt) == (message, 2)
    until(lambda: outbox.get_job(message) is None)
    with caplog.at_level(logging.WARNING, "alkstore"):
        go_on.set()
        until(lambda: "its claim was lost" in caplog.text)


# -- roles ----------------------------------------------------------------------------------------


def test_producer_worker_and_operator_do_their_parts(roles: Roles) -> None:
    with alkstore.open(roles.create("producer")) as store:
        outbox = store.outbox("mail")
        assert [outbox.enqueue(n) for n in range(2)] == [1, 2]
        with store.transaction() as tx:
            assert outbox.enqueue(3, delay_s=60, tx=tx) == 3
        for refused in (lambda: outbox.get_job(1), lambda: outbox.cancel(1), outbox.sweep_expired):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                refused()
    with alkstore.open(roles.create("worker")) as store:
        outbox = store.outbox("mail")
        delivered: SimpleQueue[int] = SimpleQueue()
        with running(outbox.run, lambda job: delivered.put(job.id)):
            assert [delivered.get(timeout=60) for _ in range(2)] == [1, 2]
            until(lambda: outbox.get_job(2) is None)
        assert read(outbox, 3).state == "pending"
        assert outbox.sweep_expired() == (0, 0)
        for refused in (lambda: outbox.enqueue(4), lambda: outbox.cancel(3)):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                refused()
    with alkstore.open(roles.create("operator")) as store:
        assert store.outbox("mail").cancel(3) is True
        assert store.outbox("mail").enqueue(5) == 4
