"""alkstore stats --watch, as a process: on a terminal, into a pipe, through an outage."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg
import pytest

import alkstore
from alkstore import _cli_stats
from alkstore._views import Views
from tests.python.clock import Clock
from tests.python.commands import run

PATIENCE_S = 60


def start(target: str, *more: str, **options: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "alkstore", "stats", "--watch", "0.05", "--url", target, *more]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80", "LINES": "9"}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.Popen(command, text=True, env=environment, **streams)


@contextmanager
def watching(target: str, *more: str) -> Iterator[subprocess.Popen[str]]:
    with start(target, *more) as process:
        try:
            yield process
        finally:
            process.kill()


def test_into_a_pipe(target: str, store: alkstore.Store) -> None:
    Clock(target)
    store.queue("q").enqueue(1)
    with watching(target) as process:
        assert process.stdout is not None
        block = [
            "2001-09-09 01:46:40 UTC, every 0.05 s",
            "",
            "QUEUE  READY  OLDEST  DELAYED  PROCESSING  LAPSED  EXPIRED  DEAD",
            "q          1     now        -           -       -        -     -",
            "",
        ]
        assert [process.stdout.readline().rstrip("\n") for _ in range(10)] == block * 2
        process.send_signal(signal.SIGINT)
        process.stdout.read()
        assert process.wait(PATIENCE_S) == 130
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_a_line_for_each_round(target: str, store: alkstore.Store) -> None:
    Clock(target)
    with watching(target, "--json") as process:
        assert process.stdout is not None
        for _ in range(2):
            assert json.loads(process.stdout.readline()) == {
                "at": "2001-09-09T01:46:40Z",
                "queues": [],
            }
        store.queue("q").enqueue(1)
        while not (queues := json.loads(process.stdout.readline())["queues"]):
            pass
        assert queues[0]["ready"] == 1


def test_a_reader_that_has_seen_enough(target: str, store: alkstore.Store) -> None:
    with watching(target, "--json") as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(PATIENCE_S) == 1
        assert process.stderr is not None
        assert process.stderr.read() == ""


class Screen:
    """What a terminal of nine lines shows of a program that redraws."""

    def __init__(self, target: str) -> None:
        self._ours, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (9, 80))
        self.process = start(target, stdout=theirs, stderr=theirs)
        os.close(theirs)
        self._seen = ""

    def until(self, pattern: str) -> list[str]:
        """The lines of the first whole screen that matches."""
        give_up_at = time.monotonic() + PATIENCE_S
        while True:
            drawn = self._seen.split("\x1b[H")
            for number, screen in enumerate(drawn):
                if screen.endswith("\x1b[J\r\n") and re.search(pattern, screen):
                    self._seen = "\x1b[H".join(drawn[number + 1 :])
                    lines = screen.removesuffix("\x1b[J\r\n").split("\x1b[K\r\n")
                    assert lines.pop() == ""
                    assert "\x1b" not in "".join(lines)
                    return lines
            assert time.monotonic() < give_up_at, self._seen
            if select.select([self._ours], [], [], 1)[0]:
                self._seen += os.read(self._ours, 65536).decode()

    def interrupted(self) -> int:
        """The exit status after ctrl-C, to which a program that nobody reads would not come."""
        self.process.send_signal(signal.SIGINT)
        with suppress(OSError):  # when it has let go of the terminal
            while os.read(self._ours, 65536):
                pass
        return self.process.wait(PATIENCE_S)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)


@pytest.fixture
def screen(target: str, store: alkstore.Store) -> Iterator[Screen]:
    Clock(target)
    store.queue("q").enqueue(1)
    screen = Screen(target)
    yield screen
    screen.close()


def test_on_a_terminal(screen: Screen, store: alkstore.Store) -> None:
    assert screen.until("QUEUE") == [
        "2001-09-09 01:46:40 UTC, every 0.05 s",
        "",
        "QUEUE  READY  OLDEST  DELAYED  PROCESSING  LAPSED  EXPIRED  DEAD",
        "q          1     now        -           -       -        -     -",
    ]
    for number in range(6):
        store.queue(f"q{number}").enqueue(1)
    lines = screen.until("… and 3 more lines")
    assert len(lines) == 8
    assert [line.split()[0] for line in lines[3:]] == ["q", "q0", "q1", "q2", "…"]
    assert screen.interrupted() == 130


def test_on_a_terminal_a_long_name_leaves_the_counts_their_place(
    screen: Screen, store: alkstore.Store
) -> None:
    for name in ("notifications-mail-bulk", "notifications-mail-urgent", "通知" * 20):
        store.queue(name).enqueue(1)
    assert screen.until("通知通")[2:7] == [
        "QUEUE                  READY  OLDEST  DELAYED  PROCESSING  LAPSED  EXPIRED  DEAD",
        "notificati…-mail-bulk      1     now        -           -       -        -     -",
        "notificati…ail-urgent      1     now        -           -       -        -     -",
        "q                          1     now        -           -       -        -     -",
        "通知通知通…知通知通知      1     now        -           -       -        -     -",
    ]


def outage(url: str, allow: bool) -> None:
    """Begin one, in which nobody gets in and those inside are thrown out; or end it."""
    base, _, name = url.rpartition("/")
    with psycopg.connect(f"{base}/postgres", autocommit=True) as connection:
        connection.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS {allow}')
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,)
        )


@pytest.mark.parametrize("engine", ["postgres"])
def test_an_outage_on_a_terminal(screen: Screen, target: str) -> None:
    whole = screen.until("QUEUE")
    outage(target, allow=False)
    lines = screen.until("not currently accepting")
    assert lines[0] == whole[0]
    assert lines[1].startswith("alkstore: trying again: cannot use the PostgreSQL database: ")
    assert lines[-2:] == whole[2:]
    outage(target, allow=True)
    assert screen.until(r"every 0.05 s\x1b\[K\r\n\x1b\[K") == whole


@pytest.mark.parametrize("engine", ["postgres"])
def test_an_outage_with_output_into_a_pipe(target: str, store: alkstore.Store) -> None:
    store.queue("q").enqueue(1)
    with watching(target, "--json") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        outage(target, allow=False)
        assert process.stderr.readline().startswith("alkstore: trying again: ")
        outage(target, allow=True)
        with alkstore.open(target) as later:
            later.queue("q").enqueue(2)
        while json.loads(process.stdout.readline())["queues"][0]["ready"] != 2:
            pass


@pytest.mark.parametrize("engine", ["postgres"])
def test_a_database_that_is_away_at_the_start(target: str, store: alkstore.Store) -> None:
    outage(target, allow=False)
    with watching(target) as process:
        assert process.wait(PATIENCE_S) == 1
        assert process.stdout is not None
        assert process.stdout.read() == ""
    outage(target, allow=True)


@pytest.mark.parametrize("engine", ["sqlite"])
def test_a_file_that_is_busy(
    target: str,
    store: alkstore.Store,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stats, rounds = Views.stats, iter([True, False, False, True])

    def now_and_then(views: Views) -> object:
        succeeds = next(rounds, None)
        if succeeds is None:
            raise KeyboardInterrupt
        if succeeds:
            return stats(views)
        raise alkstore.Busy("database is locked")

    monkeypatch.setattr(Views, "stats", now_and_then)
    monkeypatch.setattr(_cli_stats, "_pause", lambda seconds: None)
    status, output, error = run(capsys, "stats", "--json", "--watch", "--url", target)
    assert (status, len(output.splitlines())) == (130, 2)
    assert error == "alkstore: trying again: database is locked\n" * 2
