"""Firing without a runner, as docs/scheduler.md shows it: by psql's \\watch and by pg_cron."""

from __future__ import annotations

import signal
import subprocess
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

import alkstore
from tests.harness.server import Server
from tests.python.test_scheduler import boundaries
from tests.python.test_scheduler_doc import blocks
from tests.python.waiting import until
from tests.python.working import execute

WATCH, CRON = blocks("sql")


def count(store: alkstore.Store) -> int:
    return int(execute(store, "SELECT count(*) FROM alkstore.jobs")[0][0])


def assert_each_second_once(store: alkstore.Store, at_least: int) -> None:
    fired = boundaries(store)
    assert len(fired) >= at_least
    assert fired == [fired[0] + timedelta(seconds=second) for second in range(len(fired))]


def test_by_watch_of_psql(pg_url: str) -> None:
    with alkstore.open(pg_url) as store:
        store.schedule("s", "@every 1s", "q", 1)
        # Two at once, and no leader: the row locks decide.
        watchers = [
            subprocess.Popen(["psql", "-X", pg_url], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            for _ in range(2)
        ]
        for watcher in watchers:
            assert watcher.stdin is not None
            watcher.stdin.write(WATCH.encode())
            watcher.stdin.flush()
        until(lambda: count(store) >= 4)
        for watcher in watchers:
            watcher.send_signal(signal.SIGTERM)
            watcher.communicate(timeout=60)
        assert_each_second_once(store, at_least=4)


def pg_cron_version(server: Server) -> str:
    return server.psql("SELECT default_version FROM pg_available_extensions WHERE name = 'pg_cron'")


def test_by_pg_cron() -> None:
    with Server() as server:
        version = pg_cron_version(server)
        library = subprocess.check_output([server.bin_dir / "pg_config", "--pkglibdir"], text=True)
        if not version or not Path(library.strip(), "pg_cron.so").exists():
            pytest.skip("this server has no pg_cron")
    settings = {
        "shared_preload_libraries": "pg_cron",
        "cron.database_name": "postgres",
        "cron.use_background_workers": "on",
    }
    with Server(settings=settings) as server:
        alkstore.install(server.url)
        # Seconds came with 1.5; before, once a minute is the most.
        newer = tuple(map(int, version.split("-")[0].split("."))) >= (1, 5)
        spec = "1 seconds" if newer else "* * * * *"
        with alkstore.open(server.url) as store, psycopg.connect(server.url) as connection:
            store.schedule("s", "@every 1s", "q", 1)
            connection.execute("CREATE EXTENSION pg_cron")
            connection.execute(CRON.replace("10 seconds", spec).encode())
            connection.commit()
            until(lambda: count(store) >= 2, timeout_s=90)
            assert_each_second_once(store, at_least=2)
            query = "SELECT DISTINCT status FROM cron.job_run_details WHERE end_time IS NOT NULL"
            assert connection.execute(query).fetchall() == [("succeeded",)]
