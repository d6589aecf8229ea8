"""What all steps of a lock step share: the model, the engines, and who knows a job by which id."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from tests.model.faces import OUTBOX
from tests.model.reference import Model

START = 1_000_000_000
MESSAGES = OUTBOX + "a"  # of an outbox, beside a queue of its name
QUEUES = ("a", "B", MESSAGES)
MAX_LIVE = 5  # where there are many jobs, little happens to each

Handle = tuple[str, int, int]  # queue, job id, attempt


class Steps:
    def __init__(self, faces: list[Any], *, may_pass_over: bool = False) -> None:
        self.faces = faces
        self.may_pass_over = may_pass_over
        self.model = Model(START)
        self.ids: dict[int, list[int]] = {}  # the model's id -> each engine's
        self.known: list[dict[int, int]] = [{} for _ in faces]  # each engine's id -> the model's
        self.claims: list[Handle] = []  # all that were ever handed out
        self.saved: list[tuple[Any, ...]] = []  # what was, at each open transaction and savepoint
        self.story: list[str] = []
        for face in faces:
            face.reset()
            face.set_now(START)

    def close(self) -> None:
        if self.saved:
            self.each(lambda face: face.run("ROLLBACK"))

    def tell(self, text: str) -> None:
        self.story.append(f"{self.model.now - START:>6}: {text}")

    def each(self, call: Callable[[Any], Any]) -> list[Any]:
        return [call(face) for face in self.faces]

    def agree(self, expected: Any, call: Callable[[Any], Any]) -> None:
        for face in self.faces:
            got = call(face)
            assert got == expected, f"{type(face).__name__}: {got}, the model: {expected}"

    # -- ids, which each engine chooses for itself

    def engine_id(self, face: Any, id: int) -> int:
        """The engine's own id; of a job that never was, one that it never gave out."""
        return self.ids[id][self.faces.index(face)] if id in self.ids else 2**40 + id

    def know(self, id: int, engine_ids: list[int]) -> None:
        self.ids[id] = engine_ids
        for known, engine_id in zip(self.known, engine_ids, strict=False):
            known[engine_id] = id

    def in_model_ids(self, face: Any, rows: list[Any]) -> list[tuple[Any, ...]]:
        known = self.known[self.faces.index(face)]
        return [(known.get(row[0]), *row[1:]) for row in rows]

    # -- what to act on

    def is_full(self) -> bool:
        return len(self.model.live) >= MAX_LIVE

    def queue(self, rng: Random) -> str:
        return rng.choice(("a", "a", "a", "B", MESSAGES, MESSAGES))
