"""The calls of the scheduler on SQLite."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ._input import payload_text
from .errors import InvalidSpec


class SqliteSchedules:
    if TYPE_CHECKING:

        def _call(
            self, tx: object, sql: str, values: Sequence[Any] | Mapping[str, Any]
        ) -> list[tuple[Any, ...]]: ...

    def schedule(self, tx: object, spec: str, payload: Any, options: Mapping[str, Any]) -> int:
        sql = """
            INSERT INTO alkstore_schedule(
                name, spec, queue, payload, priority, max_attempts, expires_s)
            VALUES (:name, :spec, :queue, :payload, :priority, :max_attempts, :expires_s)
            RETURNING (SELECT next_run_at FROM alkstore_schedules s WHERE s.name = :name)"""
        values = {"spec": spec, "payload": payload_text(payload), **options}
        try:
            [(unix_seconds,)] = self._call(tx, sql, values)
        except InvalidSpec as error:  # SQLite cannot put a value into a message
            raise InvalidSpec(f"{error}, not {spec!r}") from error
        return int(unix_seconds)

    def fire_schedules(self, tx: object, name: str | None) -> list[list[Any]]:
        sql = """
            INSERT INTO alkstore_fire_schedules(name) VALUES (?)
            RETURNING (
                SELECT json_group_array(json_array(name, queue, job_id, boundary))
                FROM alkstore_fired)"""
        try:
            [(fired,)] = self._call(tx, sql, (name,))
        except sqlite3.Error as error:
            # SQLite cannot go on after an error within a call, as PostgreSQL does: here, by name.
            if name is None:
                return [job for due in self._due(tx) for job in self.fire_schedules(tx, due)]
            sql = "INSERT INTO __alkstore_schedule_failed(name, error) VALUES (?, ?)"
            self._call(tx, sql, (name, str(error)))
            return []
        return list(json.loads(fired))

    def _due(self, tx: object) -> list[str]:
        sql = """
            SELECT name FROM alkstore_schedules, __alkstore_clock WHERE next_run_at <= now
            ORDER BY next_run_at, name"""
        return [name for (name,) in self._call(tx, sql, ())]

    def next_boundary_s(self) -> float | None:
        """Seconds to the next boundary; to the next try, of what could not fire."""
        sql = "SELECT min(max(next_run_at - ?, last_error IS NOT NULL)) FROM alkstore_schedules"
        [(seconds,)] = self._call(None, sql, (time.time(),))
        return None if seconds is None else float(seconds)

    def leader_lapses_s(self) -> float:
        """Seconds until another may lead."""
        sql = "SELECT expires_at + 1 - ? FROM alkstore_locks WHERE name = '__alkstore_scheduler'"
        rows = self._call(None, sql, (time.time(),))
        return float(rows[0][0]) if rows else 0.0
