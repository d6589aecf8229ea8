"""Schedules, in the model and on the faces: a part of each that goes by itself."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

Row = tuple[Any, ...]

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
