"""Wakes a thread that sleeps."""

from __future__ import annotations

from contextlib import suppress
from math import inf
from queue import Empty, SimpleQueue
from time import monotonic

_LONGEST_SLEEP_S = 0.5


class Bell:
    """May be rung by a signal handler too: put() may interrupt anything, even get()."""

    def __init__(self) -> None:
        self._rings: SimpleQueue[None] = SimpleQueue()

    def ring(self) -> None:
        if self._rings.empty():  # else whoever hears that ring hears this one
            self._rings.put(None)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Sleep up to the next ring, at most `timeout_s` seconds. True when it was rung."""
        end = inf if timeout_s is None else monotonic() + timeout_s
        # Not in one sleep: a signal that comes just before it, or to another thread, does not end
        # it, and Python runs the handler, which may ring, only between sleeps.
        while not self._rung(min(max(0.0, end - monotonic()), _LONGEST_SLEEP_S)):
            if monotonic() >= end:
                return False
        return True

    def _rung(self, timeout_s: float) -> bool:
        try:
            self._rings.get(timeout=timeout_s)
        except Empty:
            return False
        with suppress(Empty):
            while True:  # many rings are one
                self._rings.get_nowait()
        return True
