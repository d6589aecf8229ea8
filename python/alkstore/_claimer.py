"""When to claim from a queue, and Queue.consume, which does nothing else."""

from __future__ import annotations

import logging
import os
import time
from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ._bell import Bell
from ._rows import CLAIM_COLUMNS, values
from .errors import AlkstoreError, Busy, Unavailable
from .stop import StopToken
from .types import JobHandle

if TYPE_CHECKING:
    from ._wakes import Subscription
    from .queue import Queue
    from .store import Engine, Session, Store

log = logging.getLogger("alkstore")

_FIRST_RETRY_S, _LAST_RETRY_S = 0.1, 2.0
_MOST = 2**31


class Claimed:
    """A job in hand, and until when it is certainly ours by this machine's clock."""

    def __init__(self, job: JobHandle, asked_at: float) -> None:
        self.job = job
        self.key = (job.id, job.attempt)
        self.visibility_s = (job.claim_expires_at - job.claimed_at).total_seconds()
        self.lost = False  # a heartbeat was refused
        self.held_since(asked_at)

    def held_since(self, asked_at: float) -> None:
        """The claim began or was prolonged by a call made then."""
        self.deadline = asked_at + self.visibility_s
        self.beat_at = asked_at + self.visibility_s / 3

    @property
    def lapsed(self) -> bool:
        return self.lost or time.monotonic() >= self.deadline


class Claimer:
    """Claims when there may be something: after a wake, when next_due comes, at every poll."""

    def __init__(
        self, store: Store, subscription: Subscription, worker_id: str, poll_s: float
    ) -> None:
        self.queue = subscription.queue
        self._store = store
        self._complain = store._engine.complain
        self._subscription = subscription
        self._worker_id = worker_id
        self._poll_s = poll_s
        self._look_at = self._not_before = 0.0
        self._retry_s = _FIRST_RETRY_S
        self._most = _MOST

    def pause_s(self) -> float:
        """How many seconds there is nothing to do, wakes aside; 0 when a claim is worth it now."""
        look_at = 0.0 if self._subscription.woken else self._look_at
        return max(0.0, max(look_at, self._not_before) - time.monotonic())

    def claim(self, session: Session, n: int) -> list[Claimed]:
        """Up to n jobs. None also when it failed, which is logged: it will be tried again."""
        self._subscription.look()
        self._look_at = 0.0  # again, as long as it fails
        asked_at = time.monotonic()
        try:
            rows, due_s = session.look(self.queue, self._worker_id, min(n, self._most))
        except Exception as error:
            if isinstance(error, AlkstoreError) and not isinstance(error, Busy | Unavailable):
                raise  # what no time will cure
            self._failed(error)
            return []
        self._most = min(2 * self._most, _MOST)
        if self._retry_s > _FIRST_RETRY_S:
            self._retry_s = _FIRST_RETRY_S
            log.info("queue %r: claims succeed again", self.queue)
        if rows:
            self._subscription.pass_on()
        else:
            now = time.monotonic()
            self._look_at = now + self._poll_s
            # What was due when we asked, and yet not to be had, is in somebody's hands.
            if due_s is not None and due_s > asked_at - now:
                self._look_at = min(now + due_s, self._look_at)
        return [
            Claimed(JobHandle(*values(CLAIM_COLUMNS, row), _store=self._store), asked_at)
            for row in rows
        ]

    def stand_back(self) -> None:
        """Without room for jobs: leave a wake that has come to others, and claim first later."""
        if self._subscription.woken:
            self._look_at = 0.0
            self._subscription.pass_on()

    def _failed(self, error: Exception) -> None:
        """Leave the queue alone for a while."""
        self._complain("queue %r: %s; trying again in %.1f s", self.queue, error, self._retry_s)
        self._most = 1  # so many may be too much to fetch: their payloads can be large
        self._not_before = time.monotonic() + self._retry_s
        self._retry_s = min(2 * self._retry_s, _LAST_RETRY_S)


def consume(
    queue: Queue, worker_id: str, batch: int, stop: StopToken, poll_s: float
) -> Iterator[JobHandle]:
    store, engine = queue._store, queue._store._engine
    owner = os.getpid()
    bell = Bell()
    in_hand: deque[Claimed] = deque()
    with (
        engine.claiming_session() as session,
        engine.wakes.subscribe(queue.name, bell) as subscription,
        stop._rings(bell),
    ):
        claimer = Claimer(store, subscription, worker_id, poll_s)
        try:
            while not stop.is_set():
                pause_s = claimer.pause_s()
                if pause_s > 0:
                    bell.wait(pause_s)
                    continue
                in_hand.extend(claimer.claim(session, batch))
                while in_hand and not stop.is_set():
                    claimed = in_hand.popleft()
                    if not claimed.lapsed:
                        yield claimed.job
                        if os.getpid() != owner:
                            raise AlkstoreError("this process was forked: consume() anew in it")
        finally:
            if in_hand and os.getpid() == owner:
                _release(engine, session, queue.name, in_hand)


def _release(engine: Engine, session: Session, queue: str, claims: Iterable[Claimed]) -> None:
    """Hand jobs back. What fails lapses."""
    try:
        session.settle("release", queue, [claimed.key for claimed in claims])
    except Exception as error:
        engine.complain("release of %r: %s; they will lapse", queue, error)
