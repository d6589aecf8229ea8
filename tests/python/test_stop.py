"""The token that ends loops: shared by threads, cloned, set by signals."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time

import pytest

from alkstore import StopToken


def test_set_is_seen_for_good() -> None:
    stop = StopToken()
    assert not stop.is_set()
    assert not stop.wait(0)
    assert not stop.wait(-1)
    stop.set()
    stop.set()
    for _ in range(3):
        assert stop.is_set()
        assert stop.wait()
        assert stop.wait(0)


def test_wait_lasts_as_long_as_it_says() -> None:
    began = time.monotonic()
    assert not StopToken().wait(0.2)
    assert time.monotonic() - began >= 0.2


def test_clones_are_set_together() -> None:
    stop = StopToken()
    first, second = stop.clone(), stop.clone().clone()
    second.set()
    assert stop.is_set()
    assert first.is_set()
    assert first.wait()
    assert first.clone().is_set()
    assert not StopToken().is_set()


def test_every_thread_that_waits_wakes() -> None:
    stop = StopToken()
    woken: list[bool] = []
    threads = [
        threading.Thread(target=lambda token=token: woken.append(token.wait()), daemon=True)
        for token in (stop, stop, stop.clone(), stop.clone())
    ]
    for thread in threads:
        thread.start()
    stop.set()
    for thread in threads:
        thread.join(60)
    assert woken == [True] * 4


WAITS = """
import sys
from alkstore import StopToken
stop = StopToken.on_signals(*map(int, sys.argv[1:]))
print("ready", flush=True)
stop.wait()
print("stopped", flush=True)
sys.stdin.read()
"""


def waiting(*signals: int) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", WAITS, *map(str, signals)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_sets_it_and_a_second_one_acts_as_ever(number: int) -> None:
    process = waiting()
    assert process.stdout is not None
    process.send_signal(number)
    assert process.stdout.readline() == "stopped\n"
    process.send_signal(number)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == -number
    assert ("KeyboardInterrupt" in stderr) == (number == signal.SIGINT)


def test_only_the_signals_that_are_named_set_it() -> None:
    process = waiting(signal.SIGHUP)
    assert process.stdout is not None
    process.send_signal(signal.SIGHUP)
    assert process.stdout.readline() == "stopped\n"
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGTERM


def test_a_signal_may_come_at_any_moment_of_a_wait() -> None:
    # With an Event this would hang before long.
    old = signal.getsignal(signal.SIGALRM)
    try:
        for _ in range(300):
            stop = StopToken.on_signals(signal.SIGALRM)
            signal.setitimer(signal.ITIMER_REAL, 0.001)
            while not stop.wait(0.0001):
                pass
            assert stop.is_set()
    finally:
        signal.signal(signal.SIGALRM, old)


def test_a_signal_that_another_thread_has_taken_ends_a_wait() -> None:
    """As the system may give it to any; only the main thread runs the handler."""
    stop = StopToken.on_signals(signal.SIGALRM)
    end = threading.Event()
    other = threading.Thread(target=end.wait, daemon=True)
    other.start()
    assert other.ident is not None
    began = time.monotonic()
    timer = threading.Timer(0.2, signal.pthread_kill, (other.ident, signal.SIGALRM))
    timer.start()
    assert stop.wait(60)
    assert time.monotonic() - began < 30
    timer.join()
    end.set()
    other.join()
