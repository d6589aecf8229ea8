"""Schedules through the package: the calls, and many callers at once, on both engines."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest

import alkstore
from alkstore import (
    Fired,
    InvalidName,
    InvalidOption,
    InvalidPayload,
    InvalidSpec,
    RawJson,
    Store,
    StoreClosed,
)
from tests.python.clock import Clock, after
from tests.python.test_idle import Watched
from tests.python.test_wake import Listener
from tests.python.waiting import until
from tests.python.working import execute

FORBID = {
    "sqlite": """
        CREATE TRIGGER forbid BEFORE INSERT ON __alkstore_job WHEN NEW.payload LIKE '%bad%'
        BEGIN SELECT RAISE(ABORT, 'no bad payloads'); END""",
    "postgres": """
        CREATE FUNCTION public.forbid() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          IF NEW.payload::text LIKE '%bad%' THEN RAISE EXCEPTION 'no bad payloads'; END IF;
          RETURN NEW;
        END $$;
        CREATE TRIGGER forbid BEFORE INSERT ON alkstore._job
        FOR EACH ROW EXECUTE FUNCTION public.forbid()""",
}
PERMIT = {
    "sqlite": "DROP TRIGGER forbid",
    "postgres": "DROP TRIGGER forbid ON alkstore._job",
}
FIRE = {
    "sqlite": "INSERT INTO alkstore_fire_schedules DEFAULT VALUES",
    "postgres": "SELECT alkstore.fire_schedules()",
}
SCHEDULES = {"sqlite": "alkstore_schedules", "postgres": "alkstore.schedules"}


def last_errors(store: Store, engine: str) -> dict[str, str | None]:
    return dict(execute(store, f"SELECT name, last_error FROM {SCHEDULES[engine]}"))


def boundaries(store: Store, queue: str = "q") -> list[datetime]:
    """Of all the jobs of a queue, which are claimed by this."""
    return [job.run_at for job in store.queue(queue).claim_batch("w", 100_000)]


# -- the calls ------------------------------------------------------------------------------------


def test_a_schedule_fires_at_its_boundaries(store: Store, clock: Clock) -> None:
    assert store.schedule("s", "@every 10s", "q", {"a": 1}) == after(10)
    clock.advance(25)
    assert store.fire_schedules() == [Fired("s", "q", 1, after(10)), Fired("s", "q", 2, after(20))]
    assert store.fire_schedules() == []
    job = store.queue("q").claim_one("w")
    assert job is not None
    assert (job.id, job.payload, job.run_at, job.created_at) == (1, {"a": 1}, after(10), after(25))
    assert (job.priority, job.max_attempts, job.expires_at) == (0, 3, None)
    assert job.ack()
    clock.advance(5)
    assert store.fire_schedules("s") == [Fired("s", "q", 3, after(30))]


def test_the_same_spec_keeps_the_boundary_and_another_starts_anew(
    store: Store, clock: Clock
) -> None:
    store.schedule("s", "@every 10s", "q", 1)
    clock.advance(4)
    assert store.schedule("s", "@every 10s", "r", 2) == after(10)
    assert store.schedule("s", "@every 20s", "r", 2) == after(24)
    clock.advance(20)
    assert store.fire_schedules() == [Fired("s", "r", 1, after(24))]


def test_options_and_raw_payloads_reach_the_job(store: Store, clock: Clock) -> None:
    payload = RawJson('{"b":1, "a":[1.0,1e2], "a":2}')
    store.schedule("s", "@every 1s", "q", payload, priority=-3, max_attempts=7, expires_s=60)
    clock.advance(1)
    store.fire_schedules()
    job = store.queue("q").claim_one("w")
    assert job is not None
    assert (job.payload_text, job.priority, job.max_attempts) == (payload.text, -3, 7)
    assert job.expires_at == after(61)


def test_unschedule(store: Store, clock: Clock) -> None:
    store.schedule("s", "@every 1s", "q", 1)
    clock.advance(1)
    assert store.unschedule("s") is True
    assert store.unschedule("s") is False
    assert store.fire_schedules() == []


def test_schedule_and_unschedule_in_a_transaction(store: Store, clock: Clock) -> None:
    with suppress(ZeroDivisionError), store.transaction() as tx:
        store.schedule("s", "@every 1s", "q", 1, tx=tx)
        raise ZeroDivisionError
    with store.transaction() as tx:
        store.schedule("t", "@every 1s", "q", 1, tx=tx)
        assert store.unschedule("t", tx=tx)
        store.schedule("u", "@every 1s", "q", 1, tx=tx)
    clock.advance(1)
    assert [fired.name for fired in store.fire_schedules()] == ["u"]


@pytest.mark.parametrize("spec", ["@daily", "0 2 * * *", "@every 0s", "@every 2147483648s", ""])
def test_a_bad_spec_is_refused_and_quoted(store: Store, spec: str) -> None:
    with pytest.raises(InvalidSpec) as refused:
        store.schedule("s", spec, "q", 1)
    assert f"'{spec}'" in str(refused.value)


@pytest.mark.parametrize(
    ("error", "arguments", "options"),
    [
        (InvalidName, ("", "@every 1s", "q", 1), {}),
        (InvalidName, ("s", "@every 1s", "__alkstore_x", 1), {}),
        (InvalidName, ("s\0", "@every 1s", "q", 1), {}),
        (InvalidName, (7, "@every 1s", "q", 1), {}),
        (InvalidSpec, ("s", 5, "q", 1), {}),
        (InvalidSpec, ("s", "@every 1s\0", "q", 1), {}),
        (InvalidSpec, ("s", None, "q", 1), {}),
        (InvalidPayload, ("s", "@every 1s", "q", object()), {}),
        (InvalidPayload, ("s", "@every 1s", "q", RawJson("{")), {}),
        (InvalidOption, ("s", "@every 1s", "q", 1), {"max_attempts": 0}),
        (InvalidOption, ("s", "@every 1s", "q", 1), {"priority": 2**31}),
        (InvalidOption, ("s", "@every 1s", "q", 1), {"expires_s": 1.5}),
    ],
)
def test_refusals_have_the_same_class_on_both_engines(
    store: Store, engine: str, error: type[Exception], arguments: Any, options: Any
) -> None:
    with pytest.raises(error):
        store.schedule(*arguments, **options)
    assert execute(store, f"SELECT * FROM {SCHEDULES[engine]}") == []


def test_names_are_refused_where_they_cannot_be(store: Store) -> None:
    for call in (store.unschedule, store.resign_schedules):
        with pytest.raises(InvalidName):
            call("")
    with pytest.raises(InvalidName):
        store.lead_schedules("", 1)
    with pytest.raises(InvalidName):
        store.unschedule("__alkstore_x")
    with pytest.raises(InvalidOption):
        store.lead_schedules("a", 0)
    # To fire by a name that cannot be fires nothing.
    assert store.fire_schedules("") == []


def test_leadership(store: Store, clock: Clock) -> None:
    assert store.lead_schedules("a", 30) is True
    assert store.lead_schedules("b", 30) is False
    assert store.lead_schedules("a", 10) is True
    assert store.resign_schedules("b") is False
    clock.advance(11)
    assert store.resign_schedules("a") is False
    assert store.lead_schedules("b", 30) is True
    assert store.resign_schedules("b") is True
    assert store.lead_schedules("a", 30) is True


def test_a_closed_store_refuses(target: str) -> None:
    with alkstore.open(target) as store:
        pass
    calls: list[Callable[[], Any]] = [
        lambda: store.schedule("s", "@every 1s", "q", 1),
        lambda: store.unschedule("s"),
        lambda: store.fire_schedules(),
        lambda: store.lead_schedules("a", 1),
        lambda: store.resign_schedules("a"),
        lambda: store.run_schedules(alkstore.StopToken()),
    ]
    for call in calls:
        with pytest.raises(StoreClosed):
            call()


# -- one bad schedule -----------------------------------------------------------------------------


def test_one_bad_schedule_does_not_stop_the_others(store: Store, clock: Clock, engine: str) -> None:
    for name, payload in (("a", "good"), ("b", "bad"), ("c", "good")):
        store.schedule(name, "@every 10s", "q", payload)
    execute(store, FORBID[engine])
    clock.advance(10)
    assert [fired[::3] for fired in store.fire_schedules()] == [("a", after(10)), ("c", after(10))]
    assert last_errors(store, engine) == {"a": None, "b": "no bad payloads", "c": None}
    # It is tried again, alone too, and keeps what it missed.
    assert store.fire_schedules() == []
    assert store.fire_schedules("b") == []
    clock.advance(10)
    assert [fired.name for fired in store.fire_schedules()] == ["a", "c"]
    execute(store, PERMIT[engine])
    assert [fired[::3] for fired in store.fire_schedules()] == [("b", after(10)), ("b", after(20))]
    assert last_errors(store, engine) == {"a": None, "b": None, "c": None}


def test_no_boundary_is_lost_when_the_third_of_five_fails(
    store: Store, clock: Clock, engine: str, target: str
) -> None:
    for name in "abcde":
        store.schedule(name, "@every 1s", name, "bad" if name == "c" else "good")
    execute(store, FORBID[engine])
    clock.advance(3)
    assert {fired.name for fired in store.fire_schedules()} == set("abde")
    execute(store, PERMIT[engine])
    clock.advance(1)
    with alkstore.open(target) as restarted:
        restarted.fire_schedules()
    for name in "abcde":
        assert boundaries(store, name) == [after(1), after(2), after(3), after(4)]


def test_a_failed_schedule_wakes_nobody_and_a_fired_one_its_queue(pg_url: str) -> None:
    clock = Clock(pg_url)
    with alkstore.open(pg_url) as store, closing(Listener(pg_url, "q", "p")) as listener:
        store.schedule("good", "@every 1s", "q", "good")
        store.schedule("bad", "@every 1s", "p", "bad")
        execute(store, FORBID["postgres"])
        assert listener.wakes() == []
        clock.advance(3)
        store.fire_schedules()
        assert listener.wakes() == ["q"]
        store.fire_schedules()
        assert listener.wakes() == []


# -- many at once ---------------------------------------------------------------------------------


@pytest.mark.parametrize("callers", [2, 10])
def test_callers_at_once_fire_each_boundary_once(
    store: Store, clock: Clock, target: str, callers: int
) -> None:
    rounds, step = 15, 3
    for name in "abc":
        store.schedule(name, "@every 1s", name, 1)
    start = threading.Barrier(callers, action=lambda: clock.advance(step), timeout=60)
    end = threading.Barrier(callers, timeout=60)

    def fire() -> list[Fired]:
        fired = []
        with alkstore.open(target) as own:
            for _ in range(rounds):
                start.wait()
                fired += own.fire_schedules()
                end.wait()
        return fired

    with ThreadPoolExecutor(callers) as pool:
        tasks = [pool.submit(fire) for _ in range(callers)]
        fired = Counter((f.name, f.boundary) for task in tasks for f in task.result())
    expected = [after(second) for second in range(1, rounds * step + 1)]
    assert fired == Counter((name, boundary) for name in "abc" for boundary in expected)
    for name in "abc":
        assert boundaries(store, name) == expected


@contextmanager
def firing(store: Store, engine: str) -> Iterator[None]:
    """A firing that is committed at the end of the block."""
    with store.transaction() as tx:
        tx.connection.execute(FIRE[engine]).fetchall()
        yield


def test_unschedule_while_firing(store: Store, clock: Clock, engine: str, target: str) -> None:
    store.schedule("s", "@every 1s", "q", 1)
    clock.advance(1)
    with alkstore.open(target) as other, ThreadPoolExecutor(1) as pool:
        with firing(store, engine):
            task = pool.submit(other.unschedule, "s")
            until(lambda: is_waiting(target, engine))
        assert task.result() is True
    clock.advance(1)
    assert store.fire_schedules() == []
    assert boundaries(store) == [after(1)]


def test_schedule_while_firing(store: Store, clock: Clock, engine: str, target: str) -> None:
    store.schedule("s", "@every 1s", "q", 1)
    clock.advance(1)
    with alkstore.open(target) as other, ThreadPoolExecutor(1) as pool:
        with firing(store, engine):
            task = pool.submit(other.schedule, "s", "@every 1s", "q", 2)
            until(lambda: is_waiting(target, engine))
        # It meets the advanced row, so the boundary that just fired does not fire again.
        assert task.result() == after(2)
    assert store.fire_schedules() == []
    assert boundaries(store) == [after(1)]


def is_waiting(target: str, engine: str) -> bool:
    """Whether somebody waits for a row. SQLite does not show it: there the caller may be early."""
    if engine == "sqlite":
        return True
    with psycopg.connect(target) as connection:
        ((waiting,),) = connection.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE wait_event_type = 'Lock' AND datname = current_database()"
        ).fetchall()
    return bool(waiting)


def test_a_schedule_that_another_is_firing_is_passed_over(pg_url: str) -> None:
    clock = Clock(pg_url)
    with alkstore.open(pg_url) as store, alkstore.open(pg_url) as other:
        store.schedule("s", "@every 1s", "q", 1)
        store.schedule("t", "@every 2s", "q", 1)
        clock.advance(1)
        with firing(store, "postgres"):
            clock.advance(1)
            assert [fired.name for fired in other.fire_schedules()] == ["t"]
        assert other.fire_schedules() == [Fired("s", "q", 3, after(2))]


KILLED = """
import sys
from alkstore import open
with open(sys.argv[1]) as store:
    assert store.lead_schedules("killed", 30)
    with store.transaction() as tx:
        tx.connection.execute(sys.argv[2]).fetchall()
        print("fired", flush=True)
        sys.stdin.read()
"""


def test_a_leader_killed_between_firing_and_commit_has_fired_nothing(
    store: Store, clock: Clock, engine: str, target: str
) -> None:
    store.schedule("s", "@every 10s", "q", 1)
    clock.advance(30)
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, target, FIRE[engine]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"fired\n"
        process.kill()
    assert store.lead_schedules("next", 30) is False
    clock.advance(31)
    assert store.lead_schedules("next", 30) is True
    # PostgreSQL takes a moment to see that the client is gone; its row is passed over till then.
    fired = until(store.fire_schedules)
    assert [f.boundary for f in fired] == [after(10 * n) for n in range(1, 7)]
    assert boundaries(store) == [after(10 * n) for n in range(1, 7)]


def test_a_runner_started_anew_goes_on_where_jobs_were_acked(
    store: Store, clock: Clock, target: str
) -> None:
    store.schedule("s", "@every 1s", "q", 1)
    for second in (1, 2, 3):
        clock.advance(1)
        with alkstore.open(target) as restarted:
            restarted.schedule("s", "@every 1s", "q", 1)
            assert [f.boundary for f in restarted.fire_schedules()] == [after(second)]
            job = restarted.queue("q").claim_one("w")
            assert job is not None
            assert job.ack()


# -- idle -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("journal_mode", ["wal", "delete"])
def test_sqlite_calls_that_change_nothing_write_nothing(
    sqlite_path: Path, journal_mode: str
) -> None:
    with closing(Watched(sqlite_path, journal_mode)) as db:
        db.call("schedule", "name, spec, queue, payload", "s", "@every 10s", "q", "1")
        db.call("acquire_lock", "name, owner, ttl_s", "l", "a", 60)
        db.call("lead_schedules", "owner, ttl_s", "a", 60)
        db.clock.advance(10)
        db.call("fire_schedules", "name", None)
        assert db.wrote()
        # The first idle firing after a fruitful one clears what that one left, once.
        db.call("fire_schedules", "name", None)
        assert db.wrote()
        for call, columns, values, answer in (
            ("fire_schedules", "name", [None], [(1,)]),
            ("fire_schedules", "name", ["s"], [(1,)]),
            ("fire_schedules", "name", ["none"], [(1,)]),
            ("schedule", "name, spec, queue, payload", ["s", "@every 10s", "q", "1"], [(1,)]),
            ("unschedule", "name", ["none"], []),
            ("acquire_lock", "name, owner, ttl_s", ["l", "b", 60], []),
            ("renew_lock", "name, owner, ttl_s", ["l", "b", 60], []),
            ("release_lock", "name, owner", ["l", "b"], []),
            ("lead_schedules", "owner, ttl_s", ["b", 60], []),
            ("resign_schedules", "owner", ["b"], []),
        ):
            assert db.call(call, columns, *values) == answer
            assert not db.wrote(), call


def test_postgresql_calls_that_change_nothing_take_no_transaction_id(pg_url: str) -> None:
    clock = Clock(pg_url)
    with psycopg.connect(pg_url, autocommit=True) as session:

        def transaction_id(call: str) -> Any:
            with session.transaction():
                session.execute(f"SELECT alkstore.{call}".encode())
                ((xid,),) = session.execute("SELECT pg_current_xact_id_if_assigned()").fetchall()
            return xid

        assert transaction_id("schedule('s', '@every 10s', 'q', '1')") is not None
        assert transaction_id("acquire_lock('l', 'a', 60)") is not None
        assert transaction_id("lead_schedules('a', 60)") is not None
        for call in (
            "fire_schedules()",
            "fire_schedules('s')",
            "unschedule('none')",
            "acquire_lock('l', 'b', 60)",
            "renew_lock('l', 'b', 60)",
            "release_lock('l', 'b')",
            "lead_schedules('b', 60)",
            "resign_schedules('b')",
        ):
            assert transaction_id(call) is None, call
        clock.advance(10)
        assert transaction_id("fire_schedules()") is not None
        assert transaction_id("fire_schedules()") is None
