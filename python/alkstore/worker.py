"""Worker: handlers for queues, run by a few threads and fewer connections."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ._input import at_least, public_name, seconds, sized_name
from ._jobs import Jobs
from ._work import Run
from .errors import InvalidOption
from .locks import unique_owner
from .stop import StopToken, token
from .types import JobHandle

if TYPE_CHECKING:
    from .outbox import Outbox
    from .queue import Queue
    from .store import Store

Handler = Callable[[JobHandle], object]

_LATER = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)


class Worker:
    """Claims jobs and hands each to the handler of its queue.

        def send(job):
            deliver(job.payload)

        stop = alkstore.StopToken.on_signals()
        alkstore.Worker(store, {"emails": send}, concurrency=8, stop=stop).run()

    When the handler returns, the job is acked. When it raises, the job is tried again after its
    backoff, with the exception as its error; Retry says when, Fail buries it at once. A handler
    that settles its job itself, as by `job.ack(tx=tx)` in the transaction of its work, just
    returns.

    handlers: by Queue or Outbox, or the name of a queue. concurrency: how many handlers run at
    once, each in a thread of its own, for all queues together. prefetch: at most how many jobs are
    claimed ahead of the handlers; fewer are where handlers are slow, none that would wait for long.
    heartbeat: prolong the claims of jobs in hand, every third of their visibility timeout, from a
    thread and a connection that the handlers cannot block. poll_s: how often to look for jobs even
    if no wake has come. drain_s: for how many seconds a stop waits for running handlers, None for
    ever. worker_id: shown in `jobs`; by default one that says where the worker is.

    The worker keeps up to three connections beside the store's pool, which handlers may use up.
    Raises InvalidName, InvalidOption, TypeError for a handler that is no plain function, as a
    coroutine function is none, and for a stop that is no StopToken.
    """

    def __init__(
        self,
        store: Store,
        handlers: Mapping[Any, Handler],  # str | Queue | Outbox, as which no dict[str, …] passes
        *,
        concurrency: int = 1,
        prefetch: int = 100,
        heartbeat: bool = True,
        stop: StopToken | None = None,
        poll_s: float = 5.0,
        drain_s: float | None = 25.0,
        worker_id: str | None = None,
    ) -> None:
        self.store = store
        self.handlers = {_queue_name(queue): _plain(handler) for queue, handler in handlers.items()}
        if not 0 < len(self.handlers) == len(handlers):
            raise InvalidOption("invalid_option: a worker needs a handler, and one for each queue")
        self.concurrency = at_least(1, "concurrency", concurrency)
        self.prefetch = at_least(0, "prefetch", prefetch)
        self.heartbeat = heartbeat
        self.stop = token(stop)
        self.poll_s = seconds("poll_s", poll_s)
        self.drain_s = None if drain_s is None else seconds("drain_s", drain_s, or_zero=True)
        self.worker_id = unique_owner() if worker_id is None else sized_name("worker_id", worker_id)

    def run(self) -> None:
        """Work until the stop is given, then let go of everything and return.

        From a stop on nothing is claimed. Jobs that no handler has started on are released;
        running handlers may end, with heartbeats, within `drain_s`; the jobs of those that have
        not are released as well, no attempt spent, and their threads left behind.

        Whatever a handler raises, a database that cannot be reached or is locked, and a connection
        that dies, are logged and got over: acks are kept and sent again, claims made again.
        SQL: claim, next_due, ack, retry, fail, release, heartbeat. Raises StoreClosed.
        """
        Run(self).serve()


def _queue_name(queue: str | Queue | Outbox) -> str:
    return queue._queue if isinstance(queue, Jobs) else public_name("queue", queue)


def _plain(handler: Handler) -> Handler:
    """What does its work when it is called."""
    called = (handler, getattr(handler, "__call__", None))  # noqa: B004
    if not callable(handler) or any(does_later(f) for does_later in _LATER for f in called):
        raise TypeError(f"a handler must be a plain function, not {handler!r}")
    return handler
