"""Store: an open database, with its queues, schedules and locks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .errors import StoreClosed
from .locks import LockCalls
from .outbox import Outbox
from .queue import Queue
from .scheduler import SchedulerCalls
from .types import Transaction

if TYPE_CHECKING:
    from types import TracebackType
    from typing import TypeAlias

    from .postgres import PostgresEngine, PostgresSession
    from .sqlite import SqliteEngine, SqliteSession

    Engine: TypeAlias = SqliteEngine | PostgresEngine
    Session: TypeAlias = SqliteSession | PostgresSession


class Store(SchedulerCalls, LockCalls):
    """An open database. Made by alkstore.open(); good for many threads, and after a fork.

    Every call of a closed store, its queues and its handles raises StoreClosed.
    """

    def __init__(self, connect: Callable[[], Engine]) -> None:
        self._connect = connect
        # One for each process: a fork inherits connections that it must neither use nor close.
        self._engines = {os.getpid(): connect()}
        self._closed = False

    def queue(
        self,
        name: str,
        *,
        visibility_timeout_s: int | None = 300,
        max_attempts: int | None = 3,
        backoff_base_s: int | None = 5,
        dead_letter_retention_s: int | None = None,
    ) -> Queue:
        """A queue, and the options that each job enqueued through it gets stamped with.

        visibility_timeout_s: how many seconds a claim lasts. max_attempts: claims before the job
        is dead. backoff_base_s: the first retry's delay in seconds, doubled for each next one, at
        most 3600. dead_letter_retention_s: seconds that a dead job is kept, None for ever.

        No call is made: jobs already enqueued keep their stamps, a range is checked at enqueue.
        Raises InvalidName, InvalidOption.
        """
        return Queue(
            self,
            name,
            visibility_timeout_s=visibility_timeout_s,
            max_attempts=max_attempts,
            backoff_base_s=backoff_base_s,
            dead_letter_retention_s=dead_letter_retention_s,
        )

    def outbox(self, name: str) -> Outbox:
        """An outbox: messages to another system that go out if, and only if, you commit.

        No call is made. An outbox and a queue of one name have nothing in common.
        Raises InvalidName, also for a name of more than 237 bytes.
        """
        return Outbox(self, name)

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """A transaction for business rows and queue calls together.

        Commits at the end of the block, rolls back when it raises. `tx.connection` is the driver's
        connection; pass `tx` to the calls. On SQLite it holds the write lock from the start, so
        a call of this store without `tx` in the same thread raises AlkstoreError.

        Raises Busy, Unavailable, StoreClosed.
        """
        with self._engine.transaction() as connection:
            tx = Transaction(connection)
            try:
                yield tx
            finally:
                tx._connection = None

    def close(self) -> None:
        """Close the connections. Harmless when closed already."""
        self._closed = True
        engine = self._engines.pop(os.getpid(), None)
        if engine is not None:
            engine.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def _engine(self) -> Engine:
        if self._closed:
            raise StoreClosed("the store is closed")
        engine = self._engines.get(os.getpid())
        if engine is None:  # this process was forked since
            fresh = self._connect()
            engine = self._engines.setdefault(os.getpid(), fresh)
            if engine is not fresh:  # another thread was first
                fresh.close()
        return engine
