"""The calls of the scheduler on PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ._input import payload_text

if TYPE_CHECKING:
    from psycopg.rows import TupleRow


class PostgresSchedules:
    if TYPE_CHECKING:

        def _call(
            self, tx: object, sql: str, values: Sequence[Any] | Mapping[str, Any]
        ) -> list[TupleRow]: ...

    def schedule(self, tx: object, spec: str, payload: Any, options: Mapping[str, Any]) -> int:
        sql = """
            SELECT extract(epoch FROM alkstore.schedule(
                %(name)s::text, %(spec)s::text, %(queue)s::text, %(payload)s::text,
                priority => %(priority)s::bigint, max_attempts => %(max_attempts)s::bigint,
                expires_s => %(expires_s)s::bigint))::bigint"""
        values = {"spec": spec, "payload": payload_text(payload), **options}
        [(unix_seconds,)] = self._call(tx, sql, values)
        return int(unix_seconds)

    def fire_schedules(self, tx: object, name: str | None) -> list[Sequence[Any]]:
        sql = """
            SELECT name, queue, job_id, extract(epoch FROM boundary)::bigint
            FROM alkstore.fire_schedules(%s::text)"""
        return list(self._call(tx, sql, (name,)))

    def next_boundary_s(self) -> float | None:
        """Seconds to the next boundary; to the next try, of what could not fire."""
        sql = """
            SELECT min(greatest(
                extract(epoch FROM s.next_run_at - t.now), (s.last_error IS NOT NULL)::int))::float
            FROM alkstore.schedules s, (SELECT clock_timestamp() AS now) t"""
        [(seconds,)] = self._call(None, sql, ())
        return None if seconds is None else float(seconds)

    def leader_lapses_s(self) -> float:
        """Seconds until another may lead."""
        sql = """
            SELECT coalesce(max(extract(epoch FROM l.expires_at - clock_timestamp()) + 1), 0)::float
            FROM alkstore.locks l WHERE l.name = '__alkstore_scheduler'"""
        [(seconds,)] = self._call(None, sql, ())
        return float(seconds)
