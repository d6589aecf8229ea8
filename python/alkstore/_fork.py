"""Keeps SQLite connections out of forked processes.

SQLite remembers which locks its process has on a file. A child inherits that memory and not the
locks: a connection that it opens while it also has an inherited one takes locks that are none, and
what it commits can be lost. So the connections are closed before a fork; each side opens its own
when it next needs one.
"""

from __future__ import annotations

import os
import threading
from typing import Protocol
from weakref import WeakSet


class Closable(Protocol):
    path: str

    def close_for_fork(self) -> bool:
        """Close, and stay closed up to after_fork. False: it cannot now, and is as it was."""
        ...

    def after_fork(self) -> None:
        """Undo what keeps it closed; called where close_for_fork was true."""
        ...


_lock = threading.RLock()  # held through a fork, so that nothing is opened meanwhile
_engines: WeakSet[Closable] = WeakSet()
_closed: list[Closable] = []
_left_open: set[str] = set()
_inherited: set[str] = set()


def register(engine: Closable) -> None:
    with _lock:
        _engines.add(engine)


def is_inherited(path: str) -> bool:
    """Whether this process was forked with a connection to the file left open."""
    return path in _inherited


def _before() -> None:
    _lock.acquire()
    for engine in _engines:
        if engine.close_for_fork():
            _closed.append(engine)
        else:
            _left_open.add(engine.path)


def _after() -> None:
    while _closed:
        _closed.pop().after_fork()
    _left_open.clear()
    _lock.release()


def _after_in_child() -> None:
    _inherited.update(_left_open)
    _after()


if hasattr(os, "register_at_fork"):  # else there are no forks
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after_in_child)
