"""Schedules, in the model, on the faces, and in lock step: a part of each that goes by itself."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import astuple, dataclass
from random import Random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.model.reference import Model

Row = tuple[Any, ...]

NAMES = ("s1", "s2")
# One text or another for the same interval; and one of which more boundaries are missed than fire.
SPECS = ("@every 60s", "@every 1m", "@every 1m", "@every 100s", "@every 2s")
COLUMNS = (
    "name", "spec", "queue", "payload", "priority", "max_attempts", "expires_s", "next_run_at",
    "last_error", "created_at",
)  # fmt: skip


@dataclass
class Schedule:
    name: str
    spec: str
    queue: str
    payload: str
    priority: int
    max_attempts: int
    expires_s: int | None
    next_run_at: int
    last_error: str | None
    created_at: int

    @property
    def interval_s(self) -> int:
        number, unit = self.spec.removeprefix("@every ")[:-1], self.spec[-1]
        return int(number) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[unit]


class Schedules:
    """Those of the model."""

    def __init__(self, now: int) -> None:
        self.now = now
        self.schedules: dict[str, Schedule] = {}

    @abstractmethod
    def enqueue(
        self,
        queue: str,
        payload: str,
        *,
        run_at: int | None,
        priority: int | None,
        expires_s: int | None,
        max_attempts: int | None,
    ) -> int: ...

    def schedule(
        self,
        name: str,
        spec: str,
        queue: str,
        payload: str,
        priority: int | None,
        max_attempts: int | None,
        expires_s: int | None,
    ) -> int:
        priority, max_attempts = priority or 0, max_attempts or 3
        new = Schedule(
            name, spec, queue, payload, priority, max_attempts, expires_s, 0, None, self.now
        )
        new.next_run_at = self.now + new.interval_s
        if old := self.schedules.get(name):
            new.created_at = old.created_at
            if spec == old.spec:
                new.next_run_at = old.next_run_at
        self.schedules[name] = new
        return new.next_run_at

    def unschedule(self, name: str) -> bool:
        return self.schedules.pop(name, None) is not None

    def fire_schedules(self, name: str | None) -> list[tuple[int, str, str, int]]:
        """The jobs: id, schedule, queue, boundary."""
        fired = []
        due = [s for s in self.schedules.values() if name in (None, s.name)]
        for s in sorted(due, key=lambda s: (s.next_run_at, s.name)):
            boundaries = range(s.next_run_at, self.now + 1, s.interval_s)
            for boundary in boundaries[:64]:
                id = self.enqueue(
                    s.queue,
                    s.payload,
                    run_at=boundary,
                    priority=s.priority,
                    max_attempts=s.max_attempts,
                    expires_s=s.expires_s,
                )
                fired.append((id, s.name, s.queue, boundary))
            s.next_run_at += len(boundaries) * s.interval_s
        return fired


class Face:
    @abstractmethod
    def run(self, sql: str, *values: Any) -> list[Row]: ...


class Postgres(Face):
    def schedule(self, name: str, spec: str, queue: str, payload: str, *options: Any) -> int:
        sql = """
            SELECT extract(epoch FROM alkstore.schedule(
              %s, %s, %s, %s::text, %s::bigint, %s::bigint, %s::bigint))::bigint"""
        return int(self.run(sql, name, spec, queue, payload, *options)[0][0])

    def unschedule(self, name: str) -> bool:
        return bool(self.run("SELECT alkstore.unschedule(%s)", name)[0][0])

    def fire_schedules(self, name: str | None) -> list[Row]:
        sql = """
            SELECT job_id, name, queue, extract(epoch FROM boundary)::bigint
            FROM alkstore.fire_schedules(%s)"""
        return self.run(sql, name)

    def schedules(self) -> list[Row]:
        instants = {c: f"extract(epoch FROM {c})::bigint" for c in COLUMNS if c.endswith("_at")}
        columns = ", ".join({**instants, "payload": "payload::text"}.get(c, c) for c in COLUMNS)
        return self.run(f"SELECT {columns} FROM alkstore.schedules ORDER BY name")


class Sqlite(Face):
    def schedule(self, name: str, spec: str, queue: str, payload: str, *options: Any) -> int:
        sql = """
            INSERT INTO alkstore_schedule(
              name, spec, queue, payload, priority, max_attempts, expires_s)
            VALUES (?, ?, ?, ?, ?, ?, ?)
            RETURNING (
              SELECT next_run_at FROM alkstore_schedules s WHERE s.name = alkstore_schedule.name)"""
        return int(self.run(sql, name, spec, queue, payload, *options)[0][0])

    def unschedule(self, name: str) -> bool:
        sql = "INSERT INTO alkstore_unschedule(name) VALUES (?) RETURNING name"
        return bool(self.run(sql, name))

    def fire_schedules(self, name: str | None) -> list[Row]:
        self.run("INSERT INTO alkstore_fire_schedules(name) VALUES (?)", name)
        return self.run("SELECT job_id, name, queue, boundary FROM alkstore_fired")

    def schedules(self) -> list[Row]:
        return self.run(f"SELECT {', '.join(COLUMNS)} FROM alkstore_schedules ORDER BY name")


class Steps:
    """Those of LockStep."""

    model: Model
    faces: list[Any]

    @abstractmethod
    def tell(self, text: str) -> None: ...
    @abstractmethod
    def queue(self, rng: Random) -> str: ...
    @abstractmethod
    def agree(self, expected: Any, call: Callable[[Any], Any]) -> None: ...
    @abstractmethod
    def is_full(self) -> bool: ...
    @abstractmethod
    def know(self, id: int, engine_ids: list[int]) -> None: ...
    @abstractmethod
    def in_model_ids(self, face: Any, rows: list[Any]) -> list[Row]: ...

    def schedule(self, rng: Random) -> None:
        options = (
            rng.choice((None, 1)),
            rng.choice((None, 1, 9)),
            rng.choice((None, 1, 100)),
        )  # priority, max_attempts, expires_s
        payload = rng.choice(("1", '{"n":  1.0}'))
        arguments = (rng.choice(NAMES), rng.choice(SPECS), rng.choice("aB"), payload, *options)
        self.tell(f"schedule {arguments}")
        expected = self.model.schedule(*arguments)
        self.agree(expected, lambda face: face.schedule(*arguments))
        self.look_at_schedules()

    def unschedule(self, rng: Random) -> None:
        name = rng.choice(NAMES)
        self.tell(f"unschedule {name}")
        expected = self.model.unschedule(name)
        self.agree(expected, lambda face: face.unschedule(name))
        self.look_at_schedules()

    def fire_schedules(self, rng: Random, name: str | None = None) -> None:
        if self.is_full():
            return
        name = name or rng.choice((None, None, *NAMES))
        self.tell(f"fire {name or 'all'}")
        expected = self.model.fire_schedules(name)
        fired = [face.fire_schedules(name) for face in self.faces]
        for position, row in enumerate(expected):
            self.know(row[0], [rows[position][0] for rows in fired if position < len(rows)])
        for face, rows in zip(self.faces, fired, strict=True):
            got = self.in_model_ids(face, rows)
            assert got == expected, f"{type(face).__name__}: {got}, the model: {expected}"
        self.look_at_schedules()

    def look_at_schedules(self) -> None:
        schedules = sorted(self.model.schedules.values(), key=lambda schedule: schedule.name)
        self.agree([astuple(schedule) for schedule in schedules], lambda face: face.schedules())
