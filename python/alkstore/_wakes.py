"""Which consumers of a store wait for which queue, and the thread that wakes them.

A wake rings one consumer of the queue that is looking for work, not all of them; one that finds
some wakes the next. Whoever does not look when a wake comes looks later, and claims first then.
"""

from __future__ import annotations

import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

from ._bell import Bell
from ._complaints import Complaints
from .errors import StoreClosed


class Subscription:
    """A consumer's interest in a queue."""

    def __init__(self, wakes: Wakes, queue: str, bell: Bell) -> None:
        self.queue = queue
        self.woken = False
        self._wakes = wakes
        self._bell = bell

    def look(self) -> None:
        """Before a claim: a wake from now on rings the bell."""
        self._wakes.look(self)

    def pass_on(self) -> None:
        """Look no more, and wake another who does: there may be jobs for others."""
        self._wakes.pass_on(self)

    def ring(self) -> None:
        self.woken = True
        self._bell.ring()


class Wakes(ABC):
    def __init__(self, complain: Complaints) -> None:
        self._complain = complain
        self._lock = threading.RLock()  # a consumer may be collected, and leave, at any point
        self._owner = os.getpid()
        self._closed = False
        self._subscriptions: set[Subscription] = set()
        self._looking: dict[Subscription, None] = {}  # who has looked for longest comes first
        self._thread: threading.Thread | None = None

    @contextmanager
    def subscribe(self, queue: str, bell: Bell) -> Iterator[Subscription]:
        subscription = Subscription(self, queue, bell)
        with self._lock:
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="wakes", daemon=True)
                thread.start()  # which may fail
                self._thread = thread
            self._subscriptions.add(subscription)
        self._changed()
        try:
            yield subscription
        finally:
            if os.getpid() == self._owner:  # else it is that of a fork's parent
                with self._lock:
                    self._subscriptions.discard(subscription)
                    self._looking.pop(subscription, None)
                # It may have been told of a job, or when one is due, what nobody else was.
                self.wake(queue)
                self._changed()

    def close(self) -> None:
        """The store was closed: end the thread, and have everybody look and find out."""
        with self._lock:
            self._closed = True
            for subscription in self._subscriptions:
                subscription.ring()
        self._changed()

    def look(self, subscription: Subscription) -> None:
        with self._lock:
            subscription.woken = False
            self._looking[subscription] = None

    def pass_on(self, subscription: Subscription) -> None:
        with self._lock:
            self._looking.pop(subscription, None)
            subscription.woken = False
        self.wake(subscription.queue)

    def wake(self, queue: str) -> None:
        """One who looks for work in the queue."""
        with self._lock:
            for subscription in list(self._looking):
                if subscription.queue == queue:
                    del self._looking[subscription]
                    subscription.ring()
                    return

    def wake_all(self, queue: str) -> None:
        """Everybody who looks for work in the queue, when wakes may have been missed."""
        with self._lock:
            for subscription in [s for s in self._looking if s.queue == queue]:
                del self._looking[subscription]
                subscription.ring()

    def _queues(self, *, looking: bool) -> set[str]:
        """The queues of all who subscribed, or of those who look for work right now."""
        with self._lock:
            if self._closed:
                raise StoreClosed("the store is closed")
            return {s.queue for s in (self._looking if looking else self._subscriptions)}

    def _run(self) -> None:
        """Serve as long as there are subscriptions, whatever goes wrong."""
        pause_s = 0.1
        while True:
            with self._lock:
                if not self._subscriptions:
                    self._thread = None
                    return
            began_at = time.monotonic()
            try:
                self._serve()
            except StoreClosed:
                with self._lock:
                    self._thread = None
                return
            except Exception as error:
                reason = " ".join(str(error).split())  # libpq has lines
                self._complain("wakes: %s; polling until they are back", reason)
                pause_s = 0.1 if time.monotonic() > began_at + 10 else min(2 * pause_s, 2.0)
                time.sleep(pause_s)

    @abstractmethod
    def _serve(self) -> None:
        """Wake whom there is something for; return when nobody is subscribed any more."""

    @abstractmethod
    def _changed(self) -> None:
        """Someone has subscribed or left."""
