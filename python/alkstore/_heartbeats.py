"""Keeps the claims of a worker from lapsing, on a thread and a connection of its own."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from ._bell import Bell
from ._claimer import Claimed
from .errors import StoreClosed

if TYPE_CHECKING:
    from .store import Engine, Session

_LONGEST_PAUSE_S = 60.0
_END_S = 1.0  # how long to wait for the end of a call under way


class Heartbeats:
    """Beats for what `in_hand` gives, each job at a third of its visibility timeout."""

    def __init__(self, engine: Engine, in_hand: Callable[[], Iterable[Claimed]]) -> None:
        self._engine = engine
        self._in_hand = in_hand
        self._bell = Bell()
        self._next_at = 0.0
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="heartbeats", daemon=True)

    def __enter__(self) -> Heartbeats:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended = True
        self._bell.ring()
        self._thread.join(_END_S)

    def expect(self, claimed: Claimed) -> None:
        """A job has been added."""
        if claimed.beat_at < self._next_at:
            self._bell.ring()

    def _run(self) -> None:
        # Without the store there is nothing left to hold, as the worker will tell.
        with suppress(StoreClosed), self._engine.session() as session:
            while not self._ended:
                self._beat(session)
                now = time.monotonic()
                self._next_at = now + _LONGEST_PAUSE_S  # before the look, for what is added since
                self._next_at = min([c.beat_at for c in self._in_hand()] + [self._next_at])
                self._bell.wait(self._next_at - now)

    def _beat(self, session: Session) -> None:
        now = time.monotonic()
        due: dict[str, list[Claimed]] = defaultdict(list)
        for claimed in self._in_hand():
            if claimed.beat_at <= now:
                due[claimed.job.queue].append(claimed)
        for queue, claims in due.items():
            try:
                answers = session.settle("heartbeat", queue, [claimed.key for claimed in claims])
            except StoreClosed:
                raise
            except Exception as error:
                answers = {}
                self._engine.complain("heartbeats of %r: %s; trying again", queue, error)
            for claimed in claims:
                answer = answers.get(claimed.key)
                if answer is None:
                    claimed.beat_at = time.monotonic() + min(1.0, claimed.visibility_s / 10)
                elif answer:
                    claimed.held_since(now)
                else:
                    claimed.lost = True
