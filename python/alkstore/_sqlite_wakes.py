"""Wakes on SQLite: a look, again and again, at whether another connection has committed."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from math import inf
from typing import TYPE_CHECKING

from ._complaints import Complaints
from ._wakes import Wakes

if TYPE_CHECKING:
    from .sqlite import SqliteSession

# The pause between two looks is this part of the time since there last was work: what a job waits
# is a matter of how long ago the one before it was. The least pause is for busy times, the longest,
# which is also the first, for an idle process to use less than a hundredth of a core.
_PAUSE_OF_IDLE = 1 / 1000
_SHORTEST_S, _LONGEST_S = 0.0005, 0.025


class SqliteWakes(Wakes):
    def __init__(
        self, session: Callable[[], AbstractContextManager[SqliteSession]], complain: Complaints
    ) -> None:
        super().__init__(complain)
        self._session = session

    def _serve(self) -> None:
        with self._session() as session:
            seen: tuple[int, int] | None = None
            due_at: dict[str, float] = {}
            worked_at = -inf
            while self._queues(looking=False):
                version, now = session.data_version(), time.monotonic()
                looking = self._queues(looking=True)
                for queue in looking:
                    if version != seen or due_at.get(queue, inf) <= now:
                        # Read-only: only what has work for him wakes somebody into taking the lock.
                        due_s = session.next_due_s(queue)
                        due_at[queue] = inf if due_s is None else now + due_s
                        if due_s == 0:
                            self.wake(queue)
                            due_at[queue] = inf  # whoever was woken sees to it
                            worked_at = now
                seen = version
                pause_s = min((now - worked_at) * _PAUSE_OF_IDLE, _LONGEST_S)
                time.sleep(max(_SHORTEST_S, pause_s))

    def _changed(self) -> None:
        pass  # it looks often enough
