"""Outbox: messages to other systems that go out if, and only if, a transaction commits."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ._input import OUTBOX_PREFIX, public_name
from ._jobs import Jobs
from .stop import StopToken
from .types import JobHandle
from .worker import Worker

if TYPE_CHECKING:
    from .store import Store


class Outbox(Jobs):
    """A named outbox of a store, made by Store.outbox(). Its jobs are the messages.

    Enqueue a message with `tx`, a Transaction of the store or a connection of your own: it commits
    with the change that it tells of, and is then delivered at least once. It keeps its id, and no
    other job of the database ever gets that: give it to the receiver, who knows a repeat by it. A
    receiver that hears from several databases needs a name for each as well.

    Each delivery in vain is one of the message's `max_attempts`, 3 unless you say otherwise. After
    the last one it is dead.

    Any call may raise Busy, Unavailable or StoreClosed.
    """

    def __init__(self, store: Store, name: str) -> None:
        self.name = public_name("outbox", name, longest=255 - len(OUTBOX_PREFIX))
        self._store = store
        self._stamps = {}

    @property
    def _queue(self) -> str:
        return OUTBOX_PREFIX + self.name

    def run(
        self,
        deliver: Callable[[JobHandle], object],
        *,
        stop: StopToken | None = None,
        concurrency: int = 1,
        worker_id: str | None = None,
    ) -> None:
        """Hand each message to `deliver` as it is committed, until the stop is given.

        It is run by a Worker, which takes an outbox where it takes a queue: to serve several by
        the same threads, or with its other options, make one. `deliver` gets the message as a
        handle. When it returns, the message is acked and gone. When it raises, the message is
        tried again after its backoff, with the exception as its error; Retry says when, Fail
        buries it at once.

        Any number may run at once. A message that was in the hands of one that was killed or cut
        off is delivered by another once its claim has lapsed, 300 seconds after it was made.

        SQL: outbox_claim, and what Worker.run calls. Raises StoreClosed, InvalidName,
        InvalidOption, and TypeError if `deliver` is no plain function.
        """
        Worker(
            self._store,
            {self: deliver},
            concurrency=concurrency,
            stop=stop,
            worker_id=worker_id,
        ).run()
