"""Named locks: the calls, and a lock that is held for a block and renewed meanwhile."""

from __future__ import annotations

import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from ._input import integer
from ._input import name as text
from .errors import AlkstoreError, Busy, LockHeld, LockLost, Unavailable

if TYPE_CHECKING:
    from .store import Engine

log = logging.getLogger("alkstore")


class LockCalls:
    """The calls of a Store on locks.

    A lock is a row with a deadline. It is held by whoever took it last, until the deadline: an
    owner that stops renewing, as in a crash, loses it.
    """

    if TYPE_CHECKING:

        @property
        def _engine(self) -> Engine: ...

    @contextmanager
    def lock(self, name: str, ttl_s: int) -> Iterator[Lock]:
        """Hold a lock for the block, renewed every third of `ttl_s` by a thread of its own.

        Raises LockHeld at once when somebody else has it, and LockLost at the end of the block
        when it was lost on the way, so that work which was not alone does not pass for done. An
        error from within the block goes first. A long block should look at `held` before each
        step that must not be done by two:

            with store.lock("nightly", ttl_s=60) as lock:
                for part in parts:
                    if not lock.held:
                        break
                    work_on(part)

        Every `with` is an owner of its own: two threads exclude each other. Raises InvalidName,
        InvalidOption, Busy, Unavailable, StoreClosed.
        """
        lock = Lock(self, name, ttl_s)
        if not lock._acquire():
            raise LockHeld(f"the lock {name!r} is held by somebody else")
        try:
            yield lock
        except BaseException:
            lock._stop_renewing()
            with suppress(AlkstoreError):
                self.release_lock(name, lock.owner)
            raise
        lock._stop_renewing()
        kept = lock.held  # the block may have gone by it, so it counts even if it was too strict
        try:
            kept = self.release_lock(name, lock.owner) and kept
        except (Busy, Unavailable) as error:
            log.warning("the lock %r was not released and will lapse: %s", name, error)
        if not kept:
            raise LockLost(f"the lock {name!r} was lost before the end of its block")

    def acquire_lock(self, name: str, owner: str, ttl_s: int) -> bool:
        """Take a lock for `ttl_s` seconds; renews it when the owner has it already.

        False: somebody else holds it. SQL: acquire_lock. Raises InvalidName, InvalidOption.
        """
        return self._on_lock("acquire_lock", name, owner, ttl_s=integer("ttl_s", ttl_s))

    def renew_lock(self, name: str, owner: str, ttl_s: int) -> bool:
        """Set the deadline of a lock to `ttl_s` seconds from now.

        False: it is not the owner's, or no more: after a lapse somebody else may have had it.
        SQL: renew_lock. Raises InvalidName, InvalidOption.
        """
        return self._on_lock("renew_lock", name, owner, ttl_s=integer("ttl_s", ttl_s))

    def release_lock(self, name: str, owner: str) -> bool:
        """Give a lock back. False: it is not the owner's, or no more. SQL: release_lock.

        Raises InvalidName.
        """
        return self._on_lock("release_lock", name, owner)

    def _on_lock(self, call: str, name: str, owner: str, **ttl_s: int) -> bool:
        name, owner = text("name", name), text("owner", owner)
        return self._engine.accepted(None, call, name=name, owner=owner, **ttl_s)


class Lock:
    """A lock that Store.lock() holds."""

    def __init__(self, calls: LockCalls, name: str, ttl_s: int) -> None:
        self.name = name
        self.owner = unique_owner()
        self._calls = calls
        self._ttl_s = ttl_s
        # By this machine's clock, and from before each call: never later than the database's.
        self._deadline = float("-inf")
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._renew, name=f"lock {name}", daemon=True)

    @property
    def held(self) -> bool:
        """Whether the lock is certainly held now. Once False it stays so."""
        return time.monotonic() < self._deadline

    def _acquire(self) -> bool:
        asked_at = time.monotonic()
        if not self._calls.acquire_lock(self.name, self.owner, self._ttl_s):
            return False
        self._deadline = asked_at + self._ttl_s
        self._thread.start()
        return True

    def _renew(self) -> None:
        pause = self._ttl_s / 3
        while not self._end.wait(pause) and self.held:
            asked_at = time.monotonic()
            try:
                renewed = self._ask()
            except (Busy, Unavailable) as error:
                log.warning("the lock %r was not renewed: %s", self.name, error)
                pause = self._ttl_s / 10
                continue
            except AlkstoreError as error:  # as when the store was closed
                log.warning("the lock %r is not renewed any more: %s", self.name, error)
                return
            if not (renewed and self.held):
                break
            self._deadline = asked_at + self._ttl_s
            pause = self._ttl_s / 3
        if not self._end.is_set():
            self._deadline = float("-inf")
            log.warning("the lock %r is lost", self.name)

    def _ask(self) -> bool:
        # Not on a connection of the pool: the block may have them all.
        with self._calls._engine.session() as session:
            return session.accepted(
                None, "renew_lock", name=self.name, owner=self.owner, ttl_s=self._ttl_s
            )

    def _stop_renewing(self) -> None:
        self._end.set()
        self._thread.join()


def unique_owner() -> str:
    """A name that no other owner has, and that tells where it is."""
    return f"{socket.gethostname()[:200]}:{os.getpid()}:{secrets.token_hex(4)}"
