"""Log what goes wrong and will be tried again, without a flood."""

from __future__ import annotations

import logging
import threading
import time

log = logging.getLogger("alkstore")


class Complaints:
    """Those of a store, of all its threads together: a line a second.

    What has not been told for longer goes first, so that no trouble hides another.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a consumer may be collected, and complain, at any point
        self._silent_until = 0.0
        self._told_at: dict[str, float] = {}
        self._untold: set[str] = set()

    def __call__(self, message: str, *values: object) -> None:
        with self._lock:
            now = time.monotonic()
            told_at = self._told_at.get(message, 0.0)
            others = [self._told_at.get(other, 0.0) for other in self._untold - {message}]
            waits = now < self._silent_until + 1 and any(other < told_at for other in others)
            if now < self._silent_until or waits:
                self._untold.add(message)
                return
            self._untold.discard(message)
            self._told_at[message] = now
            self._silent_until = now + 1
        log.warning(message, *map(_in_a_line, values))


def _in_a_line(value: object) -> object:
    """An error without what PostgreSQL tells of where in its functions it came from."""
    if isinstance(value, Exception):
        return (str(value).splitlines() or [type(value).__name__])[0]
    return value
