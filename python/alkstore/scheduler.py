"""Schedules: the calls, and the runner that fires them."""

from __future__ import annotations

import logging
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from ._input import integer, integer_or_none, spec_text
from ._input import name as text
from ._rows import EPOCH
from .errors import AlkstoreError, Busy, LeadershipLost, Unavailable
from .locks import unique_owner
from .types import Fired

if TYPE_CHECKING:
    from .stop import StopToken
    from .store import Engine, Session
    from .types import Tx

log = logging.getLogger("alkstore")

_FIRST_RETRY_S, _LAST_RETRY_S = 0.1, 5.0
_SHORTEST_SLEEP_S = 0.05  # also while another caller has a due schedule in hands


class SchedulerCalls:
    """The calls of a Store on schedules. A schedule enqueues a job at each of its boundaries."""

    if TYPE_CHECKING:

        @property
        def _engine(self) -> Engine: ...

    def schedule(
        self,
        name: str,
        spec: str,
        queue: str,
        payload: Any,
        *,
        priority: int | None = None,
        max_attempts: int | None = None,
        expires_s: int | None = None,
        tx: Tx | None = None,
    ) -> datetime:
        """Set the schedule of that name and return its next boundary. SQL: schedule.

        spec: "@every 30s", "@every 90m", "36h", "7d" likewise. The first boundary is one interval
        from now. Registering it again with the same spec keeps the next boundary, a changed spec
        starts anew; queue, payload and options are replaced. payload: a value that json can
        encode, or RawJson text; each job gets it. expires_s counts from the firing.

        Nothing fires by itself: see run_schedules and fire_schedules. Raises InvalidName,
        InvalidPayload, InvalidOption, InvalidSpec.
        """
        options = {
            "priority": integer_or_none("priority", priority),
            "max_attempts": integer_or_none("max_attempts", max_attempts),
            "expires_s": integer_or_none("expires_s", expires_s),
        }
        names = {"name": text("name", name), "queue": text("queue", queue)}
        unix_seconds = self._engine.schedule(tx, spec_text(spec), payload, {**names, **options})
        return EPOCH + timedelta(seconds=unix_seconds)

    def unschedule(self, name: str, *, tx: Tx | None = None) -> bool:
        """Remove a schedule; the jobs that it fired stay. False: there is none. SQL: unschedule.

        Raises InvalidName.
        """
        return self._engine.accepted(tx, "unschedule", name=text("name", name))

    def fire_schedules(self, name: str | None = None) -> list[Fired]:
        """Fire every schedule that is due, or only the one of that name, if it is due.

        Returns the jobs enqueued, one for each missed boundary, oldest first, at most 64 for a
        schedule: boundaries beyond those are skipped. Any number may fire at once, no boundary
        fires twice. A schedule that cannot enqueue does not stop the others: it keeps its
        boundaries for the next firing, and the view `schedules` shows its error.

        SQL: fire_schedules. Raises Busy, Unavailable, StoreClosed.
        """
        rows = self._engine.fire_schedules(None, name if name is None else text("name", name))
        return [
            Fired(schedule, queue, job_id, EPOCH + timedelta(seconds=boundary))
            for schedule, queue, job_id, boundary in rows
        ]

    def lead_schedules(self, owner: str, ttl_s: int) -> bool:
        """Lead the runners for `ttl_s` seconds: take the leadership or, as leader, renew it.

        False: somebody else leads. SQL: lead_schedules. Raises InvalidName, InvalidOption.
        """
        owner, ttl_s = text("owner", owner), integer("ttl_s", ttl_s)
        return self._engine.accepted(None, "lead_schedules", owner=owner, ttl_s=ttl_s)

    def resign_schedules(self, owner: str) -> bool:
        """Give the leadership back. False: owner does not lead. SQL: resign_schedules.

        Raises InvalidName.
        """
        return self._engine.accepted(None, "resign_schedules", owner=text("owner", owner))

    def run_schedules(self, stop: StopToken, *, owner: str | None = None, ttl_s: int = 30) -> None:
        """Fire schedules at their boundaries until the stop is given.

        Any number of runners may run: one leads and fires, the others wait until it stops, or
        until its leadership of `ttl_s` seconds lapses because it has crashed. The leader renews
        and fires at each boundary, and at least every third of `ttl_s`, which is also how late a
        new schedule may be noticed. On a stop it resigns and returns.

        While the database cannot be reached, or is locked by others, it tries again for ever.
        Boundaries missed meanwhile fire afterwards, as fire_schedules says.

        Raises LeadershipLost, before it fires anything, when another runner leads instead: call
        it again to wait for the leadership. Raises InvalidName, InvalidOption, StoreClosed.
        """
        owner = unique_owner() if owner is None else text("owner", owner)
        _Runner(self, stop, owner, integer("ttl_s", ttl_s)).run()


class _Runner:
    def __init__(self, calls: SchedulerCalls, stop: StopToken, owner: str, ttl_s: int) -> None:
        self._calls = calls
        self._stop = stop
        self._owner = owner
        self._ttl_s = ttl_s
        self._leads = False
        self._retry_s = _FIRST_RETRY_S

    def run(self) -> None:
        try:
            while not self._stop.is_set():
                try:
                    self._serve()
                except (Busy, Unavailable) as error:
                    log.warning("schedules: %s; trying again in %.1f s", error, self._retry_s)
                    self._stop.wait(self._retry_s)
                    self._retry_s = min(2 * self._retry_s, _LAST_RETRY_S, self._ttl_s / 3)
        finally:
            self._resign()

    def _serve(self) -> None:
        """Rounds on one connection, until a stop or a failure."""
        # Not one of the pool's: the runner neither waits for a free one nor keeps one from others.
        with self._calls._engine.session() as session:
            while not self._stop.is_set():
                pause_s = self._round(session)
                self._retry_s = _FIRST_RETRY_S
                self._stop.wait(pause_s)

    def _round(self, session: Session) -> float:
        """Lead and fire, or look whether to lead; how many seconds to sleep then."""
        third = self._ttl_s / 3
        if not session.accepted(None, "lead_schedules", owner=self._owner, ttl_s=self._ttl_s):
            if self._leads:
                self._leads = False
                raise LeadershipLost(f"{self._owner} does not lead the schedules any more")
            return min(third, max(session.leader_lapses_s(), _SHORTEST_SLEEP_S))
        if not self._leads:
            self._leads = True
            log.info("schedules: %s leads", self._owner)
        session.fire_schedules(None, None)
        next_s = session.next_boundary_s()
        return third if next_s is None else min(third, max(next_s, _SHORTEST_SLEEP_S))

    def _resign(self) -> None:
        if self._leads:
            # If it fails, the leadership lapses by itself.
            with suppress(AlkstoreError), self._calls._engine.session() as session:
                session.accepted(None, "resign_schedules", owner=self._owner)
                log.info("schedules: %s has resigned", self._owner)
