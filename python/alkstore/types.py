"""What the calls give back: frozen values, instants as aware UTC datetimes."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from ._input import error_text, integer_or_none
from .errors import AlkstoreError, InvalidPayload

if TYPE_CHECKING:
    import sqlite3
    from typing import TypeAlias

    import psycopg

    from .store import Store

    # What `tx=` takes: a transaction of a store, or a connection of the caller's own.
    Tx: TypeAlias = "Transaction | sqlite3.Connection | psycopg.Connection[Any]"

_UNREAD: Any = object()


class Swept(NamedTuple):
    """What one sweep did."""

    expired: int  # jobs past expires_at, now dead
    pruned: int  # dead jobs past their retention, now deleted


class Fired(NamedTuple):
    """A job that a schedule enqueued."""

    name: str  # the schedule's
    queue: str
    job_id: int
    boundary: datetime


class Transaction:
    """A transaction opened by Store.transaction(), to be passed to calls as `tx`."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    @property
    def connection(self) -> Any:
        """The sqlite3.Connection or psycopg.Connection, for the business rows."""
        if self._connection is None:
            raise AlkstoreError("the transaction has ended")
        return self._connection


@dataclass(frozen=True, slots=True)
class Job:
    """What a claim and a reading both tell of a job."""

    id: int
    queue: str
    payload_text: str  # the exact JSON text that was enqueued
    priority: int
    attempts: int
    max_attempts: int
    created_at: datetime
    run_at: datetime
    expires_at: datetime | None
    worker_id: str | None
    claimed_at: datetime | None
    claim_expires_at: datetime | None

    _value: Any = field(default=_UNREAD, init=False, repr=False, compare=False)

    @property
    def payload(self) -> Any:
        """The decoded payload, decoded when first asked for.

        Raises InvalidPayload where Python's json cannot read what the database can, as with very
        deep nesting; payload_text is there all the same.
        """
        if self._value is _UNREAD:
            try:
                value = json.loads(self.payload_text)
            except (ValueError, RecursionError) as error:
                raise InvalidPayload(f"job {self.id}: payload not decodable: {error}") from error
            object.__setattr__(self, "_value", value)
        return self._value


@dataclass(frozen=True, slots=True)
class JobRecord(Job):
    """A job as get_job reads it, live or dead."""

    state: str  # pending, processing or dead
    visibility_timeout_s: int
    backoff_base_s: int
    dead_letter_retention_s: int | None  # None: kept for ever
    retry_error: str | None  # the last error given to retry
    last_error: str | None  # why it is dead
    died_at: datetime | None
    released: int  # claims handed back by release, which do not count as attempts used


@dataclass(frozen=True, slots=True)
class JobHandle(Job):
    """A claimed job in the hands of one worker, until claim_expires_at.

    Every method is True when it was accepted. False means that the claim is no longer this
    worker's: it expired, was taken over, or the job was cancelled; nothing was changed. Given
    `tx`, a method is part of that transaction.
    """

    worker_id: str
    claimed_at: datetime
    claim_expires_at: datetime

    _store: Store = field(repr=False, compare=False, kw_only=True)
    # Whether a call through this very object has ended the claim, though maybe rolled back since.
    _ended: bool = field(default=False, init=False, repr=False, compare=False)

    @property
    def attempt(self) -> int:
        """The number of this claim on the job, from 1. (id, attempt) names the claim for ever."""
        return self.attempts

    def ack(self, *, tx: Tx | None = None) -> bool:
        """The work is done: delete the job. SQL: ack."""
        return self._accepted(tx, "ack")

    def retry(
        self,
        error: str | BaseException | None = None,
        delay_s: int | None = None,
        *,
        tx: Tx | None = None,
    ) -> bool:
        """Hand the job back to be tried again, or bury it when this was the last attempt.

        delay_s: seconds from now, None for the job's backoff. error: readable as retry_error, and
        as last_error when buried. SQL: retry. Raises InvalidOption.
        """
        text = error_text(error)
        delay_s = integer_or_none("delay_s", delay_s)
        return self._accepted(tx, "retry", error=text, delay_s=delay_s)

    def release(self, *, tx: Tx | None = None) -> bool:
        """Hand the job back unused: claimable at once, no attempt spent. SQL: release."""
        return self._accepted(tx, "release")

    def fail(self, error: str | BaseException | None = None, *, tx: Tx | None = None) -> bool:
        """Bury the job at once, attempts left or not, with `error` as last_error. SQL: fail."""
        return self._accepted(tx, "fail", error=error_text(error))

    def heartbeat(self, extend_s: int | None = None, *, tx: Tx | None = None) -> bool:
        """Make the claim expire `extend_s` seconds from now, by default the visibility timeout.

        claim_expires_at of this object stays as it was. SQL: heartbeat. Raises InvalidOption.
        """
        extend_s = integer_or_none("extend_s", extend_s)
        return self._accepted(tx, "heartbeat", extend_s=extend_s)

    def _accepted(self, tx: Tx | None, call: str, **more: str | int | None) -> bool:
        accepted = self._store._engine.accepted(
            tx, call, queue=self.queue, job_id=self.id, attempt=self.attempt, **more
        )
        if accepted and call != "heartbeat":
            object.__setattr__(self, "_ended", True)
        return accepted
