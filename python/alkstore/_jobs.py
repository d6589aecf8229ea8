"""What a queue and an outbox have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ._input import integer, integer_or_none, unix_seconds
from ._rows import JOB_COLUMNS, values
from .types import JobRecord, Swept

if TYPE_CHECKING:
    from .store import Store
    from .types import Tx


class Jobs(ABC):
    """Jobs under a name, a queue's or an outbox's."""

    name: str
    _store: Store
    _stamps: dict[str, int | None]  # the options that are not given with each job

    @property
    @abstractmethod
    def _queue(self) -> str:
        """The name in the database."""

    def __repr__(self) -> str:
        return f"<alkstore.{type(self).__name__} {self.name!r}>"

    def enqueue(
        self,
        payload: Any,
        *,
        delay_s: int | None = None,
        run_at: datetime | None = None,
        priority: int | None = 0,
        expires_s: int | None = None,
        max_attempts: int | None = None,
        tx: Tx | None = None,
    ) -> int:
        """Add a job and return its id. SQL: enqueue, or outbox_enqueue.

        payload: a value that json can encode, or RawJson text. delay_s: seconds before it may be
        claimed; wins over run_at, an aware datetime, cut to whole seconds. priority: higher first.
        expires_s: seconds from now, after which it is not handed out any more. max_attempts: in
        place of the queue's; an outbox's are 3. None is the default of each.

        Raises InvalidPayload, InvalidOption.
        """
        options = self._options(delay_s, run_at, priority, expires_s, max_attempts)
        return self._store._engine.enqueue(tx, self._queue, payload, options)

    def cancel(self, job_id: int, *, tx: Tx | None = None) -> bool:
        """Delete a live job, pending or processing. False: there is none.

        SQL: cancel, or outbox_cancel. Raises InvalidOption.
        """
        return self._store._engine.cancel(tx, self._queue, integer("job_id", job_id))

    def get_job(self, job_id: int, *, tx: Tx | None = None) -> JobRecord | None:
        """Read a job, live or dead. None: it was acked, cancelled, pruned, or never was here.

        SQL: get_job. Raises InvalidOption.
        """
        row = self._store._engine.get_job(tx, self._queue, integer("job_id", job_id))
        return None if row is None else JobRecord(*values(JOB_COLUMNS, row))

    def sweep_expired(self, *, tx: Tx | None = None) -> Swept:
        """Bury the jobs past their expires_at, delete the dead ones past their retention.

        Returns both counts. SQL: sweep_expired, or outbox_sweep_expired.
        """
        return Swept(*self._store._engine.sweep_expired(tx, self._queue))

    def _options(
        self,
        delay_s: int | None,
        run_at: datetime | None,
        priority: int | None,
        expires_s: int | None,
        max_attempts: int | None,
    ) -> dict[str, int | None]:
        options = {
            **self._stamps,
            "delay_s": integer_or_none("delay_s", delay_s),
            "run_at": unix_seconds("run_at", run_at),
            "priority": integer_or_none("priority", priority),
            "expires_s": integer_or_none("expires_s", expires_s),
        }
        if max_attempts is not None:
            options["max_attempts"] = integer_or_none("max_attempts", max_attempts)
        return options
