"""What each process did, written down outside the database: before a call what it asks for, after it what came of it.

A process may be killed at any point, so a call without an outcome is one of which nobody knows whether it happened. The
files are appended to by single writes of whole lines; they need no fsync, since processes die here and the machine does not.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class Journal:
    """One process's file."""

    def __init__(self, folder: Path, actor: str) -> None:
        self.actor = actor
        self.calls = 0
        self.transactions = 0
        self.transaction: int | None = None
        self._file = os.open(folder / f"{actor}.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def write(self, **entry: Any) -> None:
        os.write(self._file, (json.dumps(entry | {"t": time.time()}) + "\n").encode())

    @contextmanager
    def call(self, name: str, **arguments: Any) -> Iterator[dict[str, Any]]:
        """Around one call, which puts its result into the dict; an error passes, written down."""
        self.calls += 1
        number = self.calls
        self.write(call=number, name=name, arguments=arguments, transaction=self.transaction)
        outcome: dict[str, Any] = {}
        try:
            yield outcome
        except Undone as error:
            self.write(done=number, undone=str(error))
            raise
        # Any other error: nothing is written, for nothing is known.
        self.write(done=number, result=outcome["result"])

    def begin(self) -> None:
        self.transactions += 1
        self.transaction = self.transactions

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


class Undone(Exception):
    """The database has refused a call and certainly left no trace of it."""


@dataclass
class Call:
    """One call, as far as it is known."""

    actor: str
    name: str
    arguments: dict[str, Any]
    start: float  # wall clock
    done: float = math.inf  # when its answer was there
    end: float = math.inf  # when others could see its effect: at the end of its transaction
    result: Any = None  # None: not known
    happened: bool | None = None  # None: not known
    error: str | None = None
    transaction: tuple[str, int] | None = None

    @property
    def possible(self) -> bool:
        return self.happened is not False


def read(folder: Path) -> list[Call]:
    """All calls of all processes, by their start."""
    calls = [call for file in sorted(folder.glob("*.jsonl")) for call in _read(file)]
    return sorted(calls, key=lambda call: call.start)


def _read(file: Path) -> list[Call]:
    actor = file.stem
    calls: dict[int, Call] = {}
    undone: set[int] = set()
    kept: dict[int, bool | None] = {}  # transactions whose end was asked for
    ended: dict[int, float] = {}
    for line in file.read_text().splitlines(keepends=True):
        if not line.endswith("\n"):
            break  # killed while it wrote: before the call, or before it told of its answer
        entry = json.loads(line)
        match entry:
            case {"call": number}:
                tx = entry["transaction"]
                calls[number] = Call(actor, entry["name"], entry["arguments"], entry["t"])
                calls[number].transaction = None if tx is None else (actor, tx)
            case {"done": number}:
                call = calls[number]
                call.done = entry["t"]
                call.result = entry.get("result")
                call.error = entry.get("undone")
                call.happened = call.error is None
            case {"rolled_back_to": number}:  # a savepoint set when this was the last call
                tx = entry["transaction"]
                undone |= {
                    n for n, c in calls.items() if n > number and c.transaction == (actor, tx)
                }
            case {"ending": number}:
                # To be rolled back is as good as done: without an answer, the connection is gone.
                kept[number] = None if entry["keep"] else False
            case {"ended": number}:
                kept[number] = entry["keep"]
                ended[number] = entry["t"]
            case {"crash": text}:
                calls[0] = Call(actor, "crash", {}, entry["t"], error=text)
    for number, call in calls.items():
        if call.transaction is None:
            call.end = call.done
            continue
        tx = call.transaction[1]
        call.end = ended.get(tx, math.inf)
        keep = kept.get(tx, False)  # never asked to commit: never committed
        if number in undone or keep is False:
            call.happened = False
        elif keep is None and call.happened:
            call.happened = None
    return list(calls.values())
