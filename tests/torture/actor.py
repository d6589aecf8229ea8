"""What the processes of raw calls have in common: a connection, a journal, and transactions."""

from __future__ import annotations

import random
import sqlite3
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.torture.database import JOB_TABLE, QUEUES, Face, errors, is_lost, open_face
from tests.torture.journal import Journal, Undone


class Actor(ABC):
    """A connection and a journal. What fails is given up, a lost connection is made anew."""

    def __init__(
        self,
        engine: str,
        url: str,
        folder: Path,
        name: str,
        queues: Sequence[str] = QUEUES,
        face: Face | None = None,
    ) -> None:
        self.engine = engine
        self.url = url
        self.queues = queues
        self.journal = Journal(folder, name)
        self.round = folder.name
        self.rng = random.Random(f"{folder.name} {name}")
        self.face: Any = face

    @abstractmethod
    def step(self) -> None: ...

    def work(self, until: float) -> None:
        while time.time() < until:
            try:
                if self.face is None:
                    self.face = open_face(self.url, self.engine)
                self.step()
            except Undone:
                pass
            except Exception as error:
                if not is_lost(error):
                    raise
                self.face = None
                time.sleep(0.1)
            time.sleep(self.rng.choice((0, 0, 0.01, 0.05)))

    def live(self) -> list[int]:
        with errors():
            return [id for (id,) in self.face.run(f"SELECT id FROM {JOB_TABLE[self.engine]}")]

    def call(self, name: str, do: Callable[[], Any], /, **arguments: Any) -> Any:
        with self.journal.call(name, **arguments) as outcome, errors():
            outcome["result"] = result = do()
        return result

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with errors():
            self.face.run("BEGIN IMMEDIATE" if self.engine == "sqlite" else "BEGIN")
        self.journal.begin()
        try:
            yield
        except Undone:
            self.end(keep=False)
            raise
        except BaseException:
            self.journal.transaction = None
            raise
        self.end(keep=self.rng.random() < 0.7)

    def end(self, *, keep: bool) -> None:
        with self.journal.end(keep=keep), errors():
            try:
                self.face.run("COMMIT" if keep else "ROLLBACK")
            except sqlite3.OperationalError:  # refused, and open still
                self.face.run("ROLLBACK")
                raise

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Rolled back, or not."""
        with errors():
            self.face.run("SAVEPOINT s")
        before, keep = self.journal.calls, self.rng.random() < 0.5
        yield
        if not keep:
            self.journal.roll_back_to(before)
            with errors():
                self.face.run("ROLLBACK TO SAVEPOINT s")

    def pause(self, at_most_s: float) -> None:
        time.sleep(self.rng.random() * at_most_s)
