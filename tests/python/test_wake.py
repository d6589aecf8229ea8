"""[wake] on PostgreSQL: what a session that listens is told while another one makes the calls."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from tests.python.clock import Clock
from tests.python.roles import Roles

END = "end_of_wakes"


class Listener:
    """A session that listens to the channels of some queues."""

    def __init__(self, url: str, *queues: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        self._other = psycopg.connect(url, autocommit=True)
        self._queue_of = {self._channel(queue): queue for queue in queues}
        for channel in [*self._queue_of, END]:
            self._connection.execute(SQL("LISTEN {}").format(Identifier(channel)))

    def _channel(self, queue: str) -> str:
        ((channel,),) = self._other.execute("SELECT alkstore.wake_channel(%s)", [queue]).fetchall()
        return str(channel)

    def wakes(self) -> list[str]:
        """The queues that were woken since the last look."""
        # They arrive in the order of the commits: what was committed before this one is here.
        self._other.execute(SQL("NOTIFY {}").format(Identifier(END)))
        told = list(itertools.takewhile(lambda n: n.channel != END, self._connection.notifies()))
        assert {notify.payload for notify in told} <= {""}
        return [self._queue_of[notify.channel] for notify in told]

    def close(self) -> None:
        self._connection.close()
        self._other.close()


@pytest.fixture
def listener(pg_url: str) -> Iterator[Listener]:
    listener = Listener(pg_url, "q", "p", "o", "__alkstore_outbox_o")
    yield listener
    listener.close()


@pytest.fixture
def caller(pg_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(pg_url, autocommit=True) as connection:
        yield connection


def enqueue(caller: psycopg.Connection, queue: str = "q") -> None:
    caller.execute("SELECT alkstore.enqueue(%s, '1')", [queue])


def count(caller: psycopg.Connection, state: str) -> int:
    rows = caller.execute("SELECT FROM alkstore.jobs WHERE state = %s", [state])
    return rows.rowcount


CALLS = [
    ("enqueue('q', '1')", ["q"]),
    ("enqueue('q', '2', delay_s => 1000)", ["q"]),
    ("enqueue('q', '3', run_at => '2100-01-01')", ["q"]),
    ("enqueue_batch('q', '[4, 5, 6, 7]')", ["q"]),
    ("enqueue_batch('q', '[]')", []),
    ("enqueue('p', '8')", ["p"]),
    ("enqueue('q', '9', max_attempts => 1)", ["q"]),
    ("claim('q', 'w', 9)", []),
    ("claim('q', 'w')", []),
    ("heartbeat('q', 1, 1)", []),
    ("heartbeat('q', 1, 9)", []),
    ("retry('q', 1, 1, 'oops')", ["q"]),
    ("retry('q', 1, 1, 'oops')", []),
    ("retry('q', 4, 1, NULL, 1000)", ["q"]),
    ("retry('q', 9, 1, 'oops')", []),  # no attempts left: dead
    ("release('q', 5, 1)", ["q"]),
    ("release('q', 5, 1)", []),
    ("fail('q', 6, 1)", []),
    ("fail('q', 6, 1)", []),
    ("ack('q', 7, 1)", []),
    ("ack('q', 7, 1)", []),
    ("ack_batch('q', '{7}')", []),
    ("cancel('q', 5)", []),
    ("cancel('q', 5)", []),
    ("next_due('q')", []),
    ("get_job('q', 1)", []),
    ("wake_channel('q')", []),
    ("sweep_expired('q')", []),
    ("outbox_enqueue('o', '10')", ["__alkstore_outbox_o"]),
    ("outbox_claim('o', 'w')", []),
    ("outbox_get_job('o', 10)", []),
    ("release('__alkstore_outbox_o', 10, 1)", ["__alkstore_outbox_o"]),
    ("outbox_claim('o', 'w')", []),
    ("retry('__alkstore_outbox_o', 10, 2, 'oops')", ["__alkstore_outbox_o"]),
    ("outbox_cancel('o', 10)", []),
    ("outbox_sweep_expired('o')", []),
    ("schedule('s', '@every 1d', 'q', '1')", []),
    ("fire_schedules()", []),  # it is not due
    ("unschedule('s')", []),
    ("lead_schedules('w', 60)", []),
    ("resign_schedules('w')", []),
    ("acquire_lock('q', 'w', 60)", []),
    ("renew_lock('q', 'w', 60)", []),
    ("release_lock('q', 'w')", []),
    ("version()", []),
]


def test_every_call_is_listed(caller: psycopg.Connection) -> None:
    rows = caller.execute("""
        SELECT proname FROM pg_proc
        WHERE pronamespace = 'alkstore'::regnamespace AND proname !~ '^(_|grant_|revoke_)'""")
    assert {call.partition("(")[0] for call, _ in CALLS} == {name for (name,) in rows.fetchall()}


def told_by_calls(listener: Listener, caller: psycopg.Connection) -> list[tuple[str, list[str]]]:
    told = []
    for call, _ in CALLS:
        caller.execute(f"SELECT alkstore.{call}".encode())
        told.append((call, listener.wakes()))
    return told


def test_what_leaves_a_job_pending_wakes_its_queue_and_nothing_else_does(
    listener: Listener, caller: psycopg.Connection
) -> None:
    assert told_by_calls(listener, caller) == CALLS


def test_a_firing_wakes_each_queue_once(
    pg_url: str, listener: Listener, caller: psycopg.Connection
) -> None:
    clock = Clock(pg_url)
    for name, queue in (("a", "q"), ("b", "q"), ("c", "p")):
        caller.execute("SELECT alkstore.schedule(%s, '@every 1s', %s, '1')", [name, queue])
    clock.advance(3)
    with caller.transaction(force_rollback=True):
        assert caller.execute("SELECT alkstore.fire_schedules()").rowcount == 9
    assert listener.wakes() == []
    with caller.transaction():
        assert caller.execute("SELECT alkstore.fire_schedules()").rowcount == 9
        assert listener.wakes() == []
    assert sorted(listener.wakes()) == ["p", "q"]

    clock.advance(1)
    caller.execute("SET alkstore.notify = off")
    assert caller.execute("SELECT alkstore.fire_schedules()").rowcount == 3
    assert listener.wakes() == []


def test_to_bury_jobs_wakes_nobody(
    pg_url: str, listener: Listener, caller: psycopg.Connection
) -> None:
    clock = Clock(pg_url)
    caller.execute("SELECT alkstore.enqueue('q', '1', max_attempts => 1)")
    caller.execute("SELECT alkstore.claim('q', 'w')")
    caller.execute("SELECT alkstore.enqueue('q', '2', expires_s => 5)")
    assert listener.wakes() == ["q", "q"]
    clock.advance(301)
    caller.execute("SELECT alkstore.sweep_expired('q')")
    caller.execute("SELECT alkstore.claim('q', 'w')")
    assert count(caller, "dead") == 2
    assert listener.wakes() == []


def test_many_in_one_transaction_are_one_wake_a_queue(
    listener: Listener, caller: psycopg.Connection
) -> None:
    with caller.transaction():
        for _ in range(3):
            enqueue(caller, "q")
            enqueue(caller, "p")
        caller.execute("SELECT alkstore.enqueue_batch('q', '[1, 2, 3, 4, 5]')")
        caller.execute("SELECT alkstore.claim('q', 'w', 2)")
        caller.execute("SELECT alkstore.retry('q', 1, 1, NULL), alkstore.release('q', 3, 1)")
        with caller.transaction():  # a savepoint
            enqueue(caller, "q")
            enqueue(caller, "p")
    assert sorted(listener.wakes()) == ["p", "q"]


def test_nothing_before_commit_or_after_rollback(
    listener: Listener, caller: psycopg.Connection
) -> None:
    with caller.transaction(force_rollback=True):
        enqueue(caller)
        assert listener.wakes() == []
    assert listener.wakes() == []
    assert count(caller, "pending") == 0

    with caller.transaction(), caller.transaction(force_rollback=True):  # a savepoint
        enqueue(caller)
    assert listener.wakes() == []
    assert count(caller, "pending") == 0

    with caller.transaction():
        enqueue(caller)
        assert listener.wakes() == []
    assert listener.wakes() == ["q"]
    assert count(caller, "pending") == 1


def test_a_refused_enqueue_wakes_nobody(listener: Listener, caller: psycopg.Connection) -> None:
    with pytest.raises(psycopg.Error) as refusal:
        caller.execute("SELECT alkstore.enqueue('q', '1', priority => 2147483648)")
    assert refusal.value.sqlstate == "AK003"
    assert listener.wakes() == []


# -- names -----------------------------------------------------------------------------------------


def test_every_name_that_enqueue_takes_can_be_waited_for(
    pg_url: str, caller: psycopg.Connection
) -> None:
    names = ["A", " ", "\t\n", "a/b", "q\"'%I$$;--", "ÜX-日本-😀", "x" * 64, "é" * 32, "x" * 255]
    listener = Listener(pg_url, *names)
    for name in names:
        enqueue(caller, name)
        assert listener.wakes() == [name]
    listener.close()


def test_an_outbox_of_every_name_can_be_waited_for(pg_url: str, caller: psycopg.Connection) -> None:
    names = ["o", "x" * 45, "x" * 46, "x" * 237]  # with the prefix 19, 63, 64 and 255 bytes
    queues = ["__alkstore_outbox_" + name for name in names]
    listener = Listener(pg_url, *queues)
    for name, queue in zip(names, queues, strict=True):
        caller.execute("SELECT alkstore.outbox_enqueue(%s, '1')", [name])
        assert listener.wakes() == [queue]
    listener.close()


def test_names_that_share_63_bytes_or_differ_in_case_wake_nobody_else(
    pg_url: str, caller: psycopg.Connection
) -> None:
    names = ["x" * 63, "x" * 63 + "1", "x" * 63 + "2", "q", "Q"]
    listener = Listener(pg_url, *names)
    for name in names:
        enqueue(caller, name)
        assert listener.wakes() == [name]
    listener.close()


# -- alkstore.notify -------------------------------------------------------------------------------


def test_a_session_can_turn_wakes_off_and_on(
    listener: Listener, caller: psycopg.Connection
) -> None:
    caller.execute("SET alkstore.notify = off")
    assert told_by_calls(listener, caller) == [(call, []) for call, _ in CALLS]
    for off in ["OFF", "false", "no", "0"]:
        caller.execute("SELECT set_config('alkstore.notify', %s, false)", [off])
        enqueue(caller)
        assert listener.wakes() == []
    caller.execute("SET alkstore.notify = on")
    enqueue(caller)
    assert listener.wakes() == ["q"]
    caller.execute("SET alkstore.notify = off")
    caller.execute("RESET alkstore.notify")
    enqueue(caller)
    assert listener.wakes() == ["q"]


def test_a_transaction_can_turn_wakes_off(listener: Listener, caller: psycopg.Connection) -> None:
    with caller.transaction():
        caller.execute("SET LOCAL alkstore.notify = off")
        enqueue(caller)
    assert listener.wakes() == []
    enqueue(caller)
    assert listener.wakes() == ["q"]
    with caller.transaction():
        caller.execute("SET LOCAL alkstore.notify = off")
        enqueue(caller, "q")
        caller.execute("SET LOCAL alkstore.notify = on")
        enqueue(caller, "p")
    assert listener.wakes() == ["p"]


def test_a_connection_can_ask_for_no_wakes(pg_url: str, listener: Listener) -> None:
    url = pg_url + "?options=-c%20alkstore.notify%3Doff"
    with psycopg.connect(url, autocommit=True) as connection:
        enqueue(connection)
    assert listener.wakes() == []


@pytest.mark.parametrize("whose", ["DATABASE {database}", "ROLE {role} IN DATABASE {database}"])
def test_a_database_and_a_role_can_turn_wakes_off(
    whose: str, pg_url: str, listener: Listener, caller: psycopg.Connection
) -> None:
    names = {"database": Identifier(caller.info.dbname), "role": Identifier(caller.info.user)}
    caller.execute(SQL(f"ALTER {whose} SET alkstore.notify = off").format(**names))
    with psycopg.connect(pg_url, autocommit=True) as new:
        enqueue(new)
    assert listener.wakes() == []
    enqueue(caller)  # has the settings of the time when it connected
    assert listener.wakes() == ["q"]


def test_a_producer_s_role_can_have_wakes_off(
    pg_url: str, listener: Listener, caller: psycopg.Connection
) -> None:
    with closing(Roles(pg_url)) as roles:
        silent, loud = roles.create("producer"), roles.create("producer")
        with psycopg.connect(silent) as connection:
            role = Identifier(connection.info.user)
        caller.execute(SQL("ALTER ROLE {} SET alkstore.notify = off").format(role))
        for url, wakes in ((silent, []), (loud, ["q"])):
            with psycopg.connect(url, autocommit=True) as producer:
                enqueue(producer)
            assert listener.wakes() == wakes
