"""Queue: a method is one SQL call with its arguments and rows mapped; only consume() is more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ._claimer import consume
from ._input import at_least, integer, integer_or_none, name, public_name, seconds, sized_name
from ._jobs import Jobs
from ._rows import CLAIM_COLUMNS, instant, values
from .stop import StopToken, token
from .types import JobHandle

if TYPE_CHECKING:
    from .store import Store
    from .types import Tx


class Queue(Jobs):
    """A named queue of a store, made by Store.queue().

    Where a method takes `tx`, it is a Transaction of the store or a connection of your own
    (sqlite3.Connection, psycopg.Connection); the call is then part of your transaction, and
    nothing is begun, committed or rolled back on it. Without it each call is a transaction.

    Any call may raise Busy, Unavailable or StoreClosed.
    """

    def __init__(
        self,
        store: Store,
        name: str,
        *,
        visibility_timeout_s: int | None,
        max_attempts: int | None,
        backoff_base_s: int | None,
        dead_letter_retention_s: int | None,
    ) -> None:
        self.name = public_name("queue", name)
        self._store = store
        self._stamps = {
            "visibility_timeout_s": integer_or_none("visibility_timeout_s", visibility_timeout_s),
            "max_attempts": integer_or_none("max_attempts", max_attempts),
            "backoff_base_s": integer_or_none("backoff_base_s", backoff_base_s),
            "dead_letter_retention_s": integer_or_none(
                "dead_letter_retention_s", dead_letter_retention_s
            ),
        }

    @property
    def _queue(self) -> str:
        return self.name

    def enqueue_batch(
        self,
        payloads: Iterable[Any],
        *,
        delay_s: int | None = None,
        run_at: datetime | None = None,
        priority: int | None = 0,
        expires_s: int | None = None,
        max_attempts: int | None = None,
        tx: Tx | None = None,
    ) -> list[int]:
        """Add a job for each payload, all or none; their ids in the order of the payloads.

        The options are those of enqueue, the same for every job. SQL: enqueue_batch.
        Raises InvalidPayload, InvalidOption.
        """
        options = self._options(delay_s, run_at, priority, expires_s, max_attempts)
        return self._store._engine.enqueue_batch(tx, self.name, list(payloads), options)

    def claim_one(self, worker_id: str, *, tx: Tx | None = None) -> JobHandle | None:
        """Claim the next job; None when none is ready.

        worker_id: whose it is then, as the view `jobs` shows; any name. SQL: claim.
        Raises InvalidName.
        """
        handles = self.claim_batch(worker_id, 1, tx=tx)
        return handles[0] if handles else None

    def claim_batch(
        self, worker_id: str, n: int | None, *, tx: Tx | None = None
    ) -> list[JobHandle]:
        """Claim up to n jobs, by priority (higher first), run_at and id.

        Fewer than n does not mean that the queue is empty; none means that none was ready. n of 0
        or less gives none, None is 1. SQL: claim. Raises InvalidName, InvalidOption.
        """
        rows = self._store._engine.claim(
            tx, self.name, name("worker_id", worker_id), integer_or_none("n", n)
        )
        return [JobHandle(*values(CLAIM_COLUMNS, row), _store=self._store) for row in rows]

    def consume(
        self,
        worker_id: str,
        *,
        batch: int = 1,
        stop: StopToken | None = None,
        poll_s: float = 5.0,
    ) -> Iterator[JobHandle]:
        """Claim jobs as they come, for ever or until the stop is given: wait when there are none.

        The wait ends when a job is committed, when next_due comes, and every `poll_s` seconds, in
        case that a wake was lost. A job that is iterated over is not acked by that. `batch` jobs
        are claimed at once; all should be done within the visibility timeout, and those that were
        not reached when the loop ends are released.

        A database that is away or locked is logged and waited for. More of this is in the contract,
        under poll-net. SQL: claim, next_due, release. Raises InvalidName, InvalidOption,
        StoreClosed, and TypeError for a stop that is no StopToken.
        """
        sized_name("worker_id", worker_id)  # SQL would only be asked once there is a job
        at_least(1, "batch", batch)
        return consume(self, worker_id, batch, token(stop), seconds("poll_s", poll_s))

    def ack_batch(self, claims: Iterable[JobHandle | int], *, tx: Tx | None = None) -> int:
        """Ack many jobs and return how many were accepted; the others are left alone.

        A handle is accepted under its own claim only. A bare id is accepted under whatever claim
        the job is: a worker that lost its claim would ack the next one's. SQL: ack_batch.
        Raises InvalidOption.
        """
        ids: list[int] = []
        attempts: list[int | None] = []
        for claim in claims:
            if isinstance(claim, JobHandle):
                ids.append(claim.id)
                attempts.append(claim.attempt)
            else:
                ids.append(integer("job_id", claim))
                attempts.append(None)
        return self._store._engine.ack_batch(tx, self.name, ids, attempts)

    def next_due(self, *, tx: Tx | None = None) -> datetime | None:
        """When a claim will next find a job: not in the future when one is ready now.

        None: never, unless something is enqueued or handed back. SQL: next_due.
        """
        return instant(self._store._engine.next_due(tx, self.name))
