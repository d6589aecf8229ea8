"""Tell loops that would run for ever to come to an end."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from ._bell import Bell


class StopToken:
    """A stop that is given once, and seen by every thread that has the token or a clone of it.

    set(), is_set() and wait() are those of threading.Event, which must not be set by a signal
    handler: it could wait for ever for the lock that the interrupted wait() holds.
    """

    def __init__(self) -> None:
        self._stop = _Stop()

    @classmethod
    def on_signals(cls, *signals: int) -> StopToken:
        """A token that these signals set; SIGTERM and SIGINT when none is named.

        A second signal does what it would have done without the token. Main thread only.
        """
        token = cls()
        before: dict[int, Any] = {}

        def stop(number: int, frame: FrameType | None) -> None:
            signal.signal(number, before[number] or signal.SIG_DFL)
            token.set()

        for number in signals or (signal.SIGTERM, signal.SIGINT):
            before[number] = signal.getsignal(number)  # first: the signal may come at once
            signal.signal(number, stop)
        return token

    def clone(self) -> StopToken:
        """Another token of the same stop: when one is set, all are."""
        twin = StopToken()
        twin._stop = self._stop
        return twin

    def set(self) -> None:
        """Give the stop, for good."""
        if self._stop.given_at is None:
            self._stop.given_at = time.monotonic()
        for bell in (self._stop.bell, *self._stop.bells):
            bell.ring()

    def is_set(self) -> bool:
        return self._stop.given_at is not None

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the stop, at most `timeout_s` seconds. True when it was given."""
        if not self.is_set() and self._stop.bell.wait(timeout_s):
            self._stop.bell.ring()  # for the next who waits
        return self.is_set()

    @property
    def _given_at(self) -> float | None:
        """When, by the monotonic clock."""
        return self._stop.given_at

    @contextmanager
    def _rings(self, bell: Bell) -> Iterator[None]:
        """Have the stop ring another bell too."""
        self._stop.bells.append(bell)
        try:
            yield
        finally:
            self._stop.bells.remove(bell)


def token(stop: StopToken | None) -> StopToken:
    """The token, or without one a token that nobody sets. Raises TypeError."""
    if stop is None:
        return StopToken()
    if not isinstance(stop, StopToken):  # as a threading.Event, which rings no bells
        raise TypeError(f"stop must be a StopToken, not {stop!r}")
    return stop


class _Stop:
    """What clones share."""

    def __init__(self) -> None:
        self.given_at: float | None = None
        self.bell = Bell()
        self.bells: list[Bell] = []
