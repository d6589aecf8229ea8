"""What each process did, written down outside the database: before a call, and when it is answered.

A process may be killed at any point: of a call without an answer nobody knows whether it happened.
A file is appended to by single writes of whole lines, and needs no fsync: the machine goes on.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class Undone(Exception):
    """The database has refused a call, and certainly nothing is left of it."""


class Journal:
    """One process's file."""

    def __init__(self, folder: Path, actor: str) -> None:
        self.actor = actor
        self.calls = 0
        self._numbers = itertools.count(1)  # which threads may share
        self.transactions = 0
        self.transaction: int | None = None
        self._file = os.open(folder / f"{actor}.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def write(self, **entry: Any) -> None:
        os.write(self._file, (json.dumps(entry | {"t": time.time()}) + "\n").encode())

    @contextmanager
    def call(self, name: str, **arguments: Any) -> Iterator[dict[str, Any]]:
        """Around one call, which puts its result into the dict."""
        self.calls = number = next(self._numbers)
        self.write(call=number, name=name, arguments=arguments, transaction=self.transaction)
        outcome: dict[str, Any] = {}
        try:
            yield outcome
        except Undone as error:
            self.write(done=number, undone=str(error))
            raise
        # After any other error nothing is written, for nothing is known.
        self.write(done=number, result=outcome["result"])

    def begin(self) -> None:
        self.transactions += 1
        self.transaction = self.transactions

    def roll_back_to(self, number: int) -> None:
        """To a savepoint, set when that was the last call."""
        self.write(rolled_back_to=number, transaction=self.transaction)

    @contextmanager
    def end(self, *, keep: bool) -> Iterator[None]:
        self.write(ending=self.transaction, keep=keep)
        try:
            yield
        except Undone:
            self.write(ended=self.transaction, keep=False)
            raise
        else:
            self.write(ended=self.transaction, keep=keep)
        finally:
            self.transaction = None


@dataclass
class Call:
    """One call, as far as it is known."""

    actor: str
    name: str
    arguments: dict[str, Any]
    start: float  # by the machine's clock
    done: float = math.inf  # when its answer was there
    end: float = math.inf  # when others could see its effect: at the end of its transaction
    result: Any = None  # None: not known
    happened: bool | None = None  # None: not known
    error: str | None = None
    transaction: int | None = None

    @property
    def possible(self) -> bool:
        return self.happened is not False

    def is_in_one_with(self, other: Call) -> bool:
        """In one transaction."""
        here, there = ((c.actor, c.transaction) for c in (self, other))
        return here == there and self.transaction is not None


def read(folder: Path) -> list[Call]:
    """All calls of all processes, by their start."""
    calls = [call for file in folder.glob("*.jsonl") for call in _read(file)]
    return sorted(calls, key=lambda call: call.start)


def _read(file: Path) -> list[Call]:
    actor = file.stem
    calls: dict[Any, Call] = {}
    undone: set[Any] = set()
    kept: dict[int, bool | None] = {}  # of each transaction whose end was asked for
    ended: dict[int, float] = {}
    for line in file.read_text().splitlines(keepends=True):
        if not line.endswith("\n"):
            break  # killed while it wrote: before the call, or before its answer counted
        entry = json.loads(line)
        t, transaction = entry["t"], entry.get("transaction")
        match entry:
            case {"call": number, "name": name, "arguments": arguments}:
                calls[number] = Call(actor, name, arguments, t, transaction=transaction)
            case {"done": number}:
                call = calls[number]
                call.done = t
                call.result = entry.get("result")
                call.error = entry.get("undone")
                call.happened = call.error is None
            case {"rolled_back_to": last}:
                undone |= {
                    n for n, call in calls.items() if n > last and call.transaction == transaction
                }
            case {"ending": number, "keep": keep}:
                # To be rolled back is as good as done: without an answer, the connection is gone.
                kept[number] = None if keep else False
            case {"ended": number, "keep": keep}:
                kept[number] = keep
                ended[number] = t
            case {"crash": text}:
                calls[0] = Call(actor, "crash", {}, t, error=text)
    for number, call in calls.items():
        if call.transaction is None:
            call.end = call.done
            continue
        call.end = ended.get(call.transaction, math.inf)
        keep = kept.get(call.transaction, False)  # never asked to commit: never committed
        if number in undone or keep is False:
            call.happened = False
        elif keep is None and call.happened:
            call.happened = None
    return list(calls.values())
