"""Wakes a thread that sleeps."""

from __future__ import annotations

from contextlib import suppress
from queue import Empty, SimpleQueue


class Bell:
    """May be rung by a signal handler too: put() may interrupt anything, even get()."""

    def __init__(self) -> None:
        self._rings: SimpleQueue[None] = SimpleQueue()

    def ring(self) -> None:
        self._rings.put(None)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Sleep up to the next ring, at most `timeout_s` seconds. True when it was rung."""
        try:
            self._rings.get(timeout=timeout_s if timeout_s is None else max(0, timeout_s))
        except Empty:
            return False
        with suppress(Empty):
            while True:  # many rings are one
                self._rings.get_nowait()
        return True
