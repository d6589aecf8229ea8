"""The runner: it leads or waits, fires and sleeps, stops and comes back, on both engines."""

from __future__ import annotations

import logging
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

import alkstore
from alkstore import InvalidName, InvalidOption, LeadershipLost, StopToken, Store
from tests.harness.server import Server
from tests.python.roles import Roles
from tests.python.test_scheduler import FORBID, boundaries, last_errors
from tests.python.waiting import until
from tests.python.working import JOBS, execute

LOCKS = {"sqlite": "alkstore_locks", "postgres": "alkstore.locks"}
LOCK = {"sqlite": "__alkstore_lock", "postgres": "alkstore._lock"}
# As if the schedules had been there for an hour.
LONG_AGO = {
    "sqlite": "UPDATE __alkstore_schedule SET next_run_at = next_run_at - 3600",
    "postgres": "UPDATE alkstore._schedule SET next_run_at = next_run_at - interval '1 hour'",
}


class Runner:
    """run_schedules in a thread."""

    def __init__(self, store: Store, **options: Any) -> None:
        self.stop = StopToken()
        self.error: BaseException | None = None
        self._options = options
        self._store = store
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._store.run_schedules(self.stop.clone(), **self._options)
        except BaseException as error:
            self.error = error

    def join(self) -> None:
        self._thread.join(60)
        assert not self._thread.is_alive()

    @property
    def ended(self) -> bool:
        return not self._thread.is_alive()


@contextmanager
def running(store: Store, **options: Any) -> Iterator[Runner]:
    """A runner that is stopped at the end of the block and must then have ended well."""
    runner = Runner(store, **options)
    try:
        yield runner
    finally:
        runner.stop.set()
        runner.join()
    assert runner.error is None


def leader(store: Store, engine: str) -> str | None:
    rows = execute(store, f"SELECT owner FROM {LOCKS[engine]} WHERE name = '__alkstore_scheduler'")
    return rows[0][0] if rows else None


def count(store: Store, engine: str) -> int:
    ((jobs,),) = execute(store, f"SELECT count(*) FROM {JOBS[engine]}")
    return int(jobs)


def assert_each_second_once(fired: list[datetime], at_least: int) -> None:
    assert len(fired) >= at_least
    assert fired == [fired[0] + timedelta(seconds=second) for second in range(len(fired))]


# -- one runner -----------------------------------------------------------------------------------


def test_it_fires_each_boundary_once_and_in_its_second(store: Store, engine: str) -> None:
    store.schedule("s", "@every 1s", "q", 1)
    with running(store, ttl_s=3600):  # a third of it is longer than the test waits
        until(lambda: count(store, engine) >= 3)
    jobs = store.queue("q").claim_batch("w", 100)
    assert_each_second_once([job.run_at for job in jobs], at_least=3)
    # A busy machine may be late once, but not each time.
    assert min(job.created_at - job.run_at for job in jobs) <= timedelta(seconds=1)


def test_a_stop_ends_it_at_once_and_it_resigns(store: Store, engine: str) -> None:
    runner = Runner(store, owner="me", ttl_s=3600)
    until(lambda: leader(store, engine) == "me")
    runner.stop.set()
    runner.join()  # long before a third of its ttl
    assert runner.error is None
    assert leader(store, engine) is None


def test_a_stop_given_before_means_that_it_does_nothing(store: Store, engine: str) -> None:
    stop = StopToken()
    stop.set()
    store.schedule("s", "@every 1s", "q", 1)
    execute(store, LONG_AGO[engine])
    store.run_schedules(stop)
    assert count(store, engine) == 0
    assert leader(store, engine) is None


def test_owner_and_ttl_are_checked(store: Store) -> None:
    with pytest.raises(InvalidName):
        store.run_schedules(StopToken(), owner="")
    for ttl_s in (0, 2**31, 1.5):
        with pytest.raises(InvalidOption):
            store.run_schedules(StopToken(), ttl_s=ttl_s)  # type: ignore[arg-type]


class Pauses(StopToken):
    """A token that does not let anybody sleep, and is set after some pauses, which it keeps."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number
        self.lengths: list[float | None] = []

    def wait(self, timeout_s: float | None = None) -> bool:
        self.lengths.append(timeout_s)
        if len(self.lengths) >= self._number:
            self.set()
        return self.is_set()


def pauses(store: Store, ttl_s: int, number: int = 3) -> list[float | None]:
    stop = Pauses(number)
    store.run_schedules(stop, owner="me", ttl_s=ttl_s)
    return stop.lengths


def test_without_schedules_it_sleeps_a_third_of_the_ttl(store: Store) -> None:
    assert pauses(store, 30) == [10, 10, 10]


def test_it_sleeps_until_the_next_boundary(store: Store) -> None:
    store.schedule("later", "@every 1h", "q", 1)
    before = time.time()
    boundary = store.schedule("sooner", "@every 60s", "q", 1).timestamp()
    for pause in pauses(store, 300):
        assert pause is not None
        assert boundary - time.time() - 0.1 <= pause <= boundary - before + 0.1


def test_it_sleeps_no_longer_than_a_third_of_the_ttl(store: Store) -> None:
    store.schedule("s", "@every 1h", "q", 1)
    assert pauses(store, 30) == [10, 10, 10]


def test_what_cannot_fire_is_tried_again_each_second(store: Store, engine: str) -> None:
    store.schedule("bad", "@every 1h", "q", "bad")
    execute(store, FORBID[engine])
    execute(store, LONG_AGO[engine])
    assert pauses(store, 30) == [1, 1, 1]
    assert last_errors(store, engine) == {"bad": "no bad payloads"}


def test_what_another_is_firing_makes_no_busy_loop(pg_url: str) -> None:
    with alkstore.open(pg_url) as store:
        store.schedule("s", "@every 1h", "q", 1)
        execute(store, LONG_AGO["postgres"])
        with store.transaction() as tx:
            tx.connection.execute("SELECT alkstore.fire_schedules()")
            assert pauses(store, 30) == [0.05, 0.05, 0.05]


def test_it_uses_no_connection_of_the_pool(pg_url: str) -> None:
    with alkstore.open(pg_url, pool_size=1) as store:
        store.schedule("s", "@every 1h", "q", 1)
        with store.transaction():
            assert len(pauses(store, 30)) == 3


# -- many runners ---------------------------------------------------------------------------------


def test_who_does_not_lead_waits_for_the_leaders_lapse(store: Store, engine: str) -> None:
    store.schedule("s", "@every 1s", "q", 1)
    execute(store, LONG_AGO[engine])
    assert store.lead_schedules("other", 100)
    lengths = pauses(store, 600)
    assert all(length is not None and 50 < length <= 101.1 for length in lengths)
    assert store.lead_schedules("other", 300)
    assert pauses(store, 30) == [10, 10, 10]
    assert count(store, engine) == 0


def test_when_a_leader_has_crashed_another_takes_over(store: Store, engine: str) -> None:
    store.schedule("s", "@every 1s", "q", 1)
    assert store.lead_schedules("crashed", 2)
    # A third of its ttl would be 100 seconds: it must wait for the lapse of the leader's.
    with running(store, owner="me", ttl_s=300):
        until(lambda: leader(store, engine) == "me")
        until(lambda: count(store, engine) >= 3)
    assert_each_second_once(boundaries(store), at_least=3)


def test_when_a_leader_stops_another_goes_on(store: Store, engine: str, target: str) -> None:
    store.schedule("s", "@every 1s", "q", 1)
    with alkstore.open(target) as other, running(other, owner="first", ttl_s=3600) as first:
        until(lambda: leader(store, engine) == "first")
        with running(store, owner="second", ttl_s=6) as second:
            until(lambda: count(store, engine) >= 2)
            assert leader(store, engine) == "first"
            assert not second.ended
            first.stop.set()
            until(lambda: leader(store, engine) == "second")
            fired = count(store, engine)
            until(lambda: count(store, engine) > fired)
    assert_each_second_once(boundaries(store), at_least=3)


def test_a_lost_leadership_is_told_before_anything_fires(store: Store, engine: str) -> None:
    store.schedule("s", "@every 1s", "q", 1)
    runner = Runner(store, owner="me", ttl_s=60)
    until(lambda: count(store, engine) >= 1)
    with store.transaction() as tx:
        tx.connection.execute(f"UPDATE {LOCK[engine]} SET owner = 'thief'")
        ((before,),) = tx.connection.execute(f"SELECT count(*) FROM {JOBS[engine]}").fetchall()
    runner.join()
    assert isinstance(runner.error, LeadershipLost)
    assert str(runner.error) == "me does not lead the schedules any more"
    assert count(store, engine) == before
    assert leader(store, engine) == "thief"


# -- trouble --------------------------------------------------------------------------------------


def test_a_bad_schedule_does_not_stop_the_others(store: Store, engine: str) -> None:
    store.schedule("a bad one", "@every 1s", "q", "bad")
    store.schedule("good", "@every 1s", "q", "good")
    execute(store, FORBID[engine])
    with running(store):
        until(lambda: count(store, engine) >= 3)
    assert last_errors(store, engine) == {"a bad one": "no bad payloads", "good": None}
    assert_each_second_once(boundaries(store), at_least=3)


def test_it_survives_a_locked_file(sqlite_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with (
        alkstore.open(sqlite_path, busy_timeout_s=0) as store,
        closing(sqlite3.connect(sqlite_path, isolation_level=None)) as writer,
    ):
        store.schedule("s", "@every 1s", "q", 1)
        with running(store, ttl_s=2):
            until(lambda: _count_in(writer) >= 1)
            writer.execute("BEGIN IMMEDIATE")
            before = _count_in(writer)
            until(lambda: sum("trying again" in message for message in caplog.messages) >= 3)
            StopToken().wait(3)  # while boundaries pass
            writer.execute("COMMIT")
            until(lambda: _count_in(writer) >= before + 3)
        assert_each_second_once(boundaries(store), at_least=4)


def _count_in(connection: sqlite3.Connection) -> int:
    ((jobs,),) = connection.execute("SELECT count(*) FROM alkstore_jobs").fetchall()
    return int(jobs)


def test_it_survives_a_server_restart(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with Server() as server:
        alkstore.install(server.url)
        with alkstore.open(server.url) as store:
            store.schedule("s", "@every 1s", "q", 1)
            with running(store, owner="me", ttl_s=6) as runner:
                until(lambda: count(store, "postgres") >= 2)
                for mode in ("fast", "immediate"):
                    server.stop(mode)
                    StopToken().wait(2.5)  # while boundaries pass
                    server.start()
                    until(partial(_has_fired, server, _count_at(server) + 4))
                assert runner.error is None
            with psycopg.connect(server.url) as connection:
                rows = connection.execute("SELECT run_at FROM alkstore.jobs ORDER BY job_id")
                fired = [run_at for (run_at,) in rows]
            assert_each_second_once(fired, at_least=10)
            # It led all the time: nobody else was there.
            assert caplog.messages.count("schedules: me leads") == 1

            # A stop while the server is away is as clean as any.
            runner = Runner(store, owner="me", ttl_s=6)
            until(lambda: _leader_at(server) == "me")
            server.stop("fast")
            tries = sum("trying again" in message for message in caplog.messages)
            until(lambda: sum("trying again" in m for m in caplog.messages) > tries)
            runner.stop.set()
            runner.join()
            assert runner.error is None


def _count_at(server: Server) -> int:
    return int(server.psql("SELECT count(*) FROM alkstore.jobs"))


def _has_fired(server: Server, jobs: int) -> bool:
    return _count_at(server) >= jobs


def _leader_at(server: Server) -> str:
    return server.psql("SELECT owner FROM alkstore.locks")


def test_it_runs_in_another_schema(empty_pg_url: str) -> None:
    alkstore.install(empty_pg_url, schema="Jobs-2")
    with alkstore.open(empty_pg_url, schema="Jobs-2") as store:
        store.schedule("s", "@every 1h", "q", 1)
        execute(store, LONG_AGO["postgres"].replace("alkstore.", '"Jobs-2".'))
        assert store.lead_schedules("other", 300)
        assert pauses(store, 30) == [10, 10, 10]
        assert store.resign_schedules("other")
        assert pauses(store, 30) == [10, 10, 10]
        assert len(boundaries(store)) == 1
        with store.lock("l", 60) as lock:
            assert lock.held


def test_the_grants_of_a_scheduler_are_enough(pg_url: str) -> None:
    with alkstore.open(pg_url) as store, closing(Roles(pg_url)) as roles:
        store.schedule("s", "@every 1h", "q", 1)
        execute(store, LONG_AGO["postgres"])
        with alkstore.open(roles.create("scheduler")) as scheduler:
            store.lead_schedules("other", 300)
            assert pauses(scheduler, 30) == [10, 10, 10]
            store.resign_schedules("other")
            scheduler.schedule("t", "@every 1h", "q", 1)
            pauses(scheduler, 30)
        assert count(store, "postgres") == 1


# -- the command ----------------------------------------------------------------------------------


@contextmanager
def command(*arguments: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "alkstore", "run-schedules", *arguments],
        env={key: value for key, value in os.environ.items() if key != "ALKSTORE_URL"}
        | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_command_runs_until_a_signal(
    store: Store, engine: str, target: str, number: int
) -> None:
    store.schedule("s", "@every 1s", "q", 1)
    with command(target, "--ttl-s", "300") as process:
        until(lambda: count(store, engine) >= 2 or process.poll() is not None)
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout) == (0, ""), stderr
    told = [line.split("schedules: ")[1].split(" ", 1)[1] for line in stderr.splitlines()]
    assert told == ["leads", "has resigned"]
    assert leader(store, engine) is None
    assert_each_second_once(boundaries(store), at_least=2)


def test_the_command_waits_again_when_it_lost_the_leadership(
    store: Store, engine: str, target: str
) -> None:
    store.schedule("s", "@every 1s", "q", 1)
    with command("--ttl-s", "2", ALKSTORE_URL=target) as process:
        until(lambda: count(store, engine) >= 1 or process.poll() is not None)
        execute(store, f"UPDATE {LOCK[engine]} SET owner = 'thief'")
        until(lambda: leader(store, engine) not in (None, "thief") or process.poll() is not None)
        process.terminate()
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr
    told = [line.split("schedules: ")[1].split(" ", 1)[1] for line in stderr.splitlines()]
    assert told == ["leads", "does not lead the schedules any more", "leads", "has resigned"]


def test_the_command_says_what_is_wrong(sqlite_path: Path) -> None:
    alkstore.install(sqlite_path)
    for arguments, said in (
        ([], "alkstore: name a database by --url TARGET, or set ALKSTORE_URL\n"),
        (
            [str(sqlite_path), "--ttl-s", "0"],
            "alkstore: invalid_option: ttl_s must be a whole number from 1 to 2147483647\n",
        ),
    ):
        with command(*arguments) as process:
            stdout, stderr = process.communicate(timeout=60)
        assert (process.returncode, stdout, stderr) == (1, "", said)
