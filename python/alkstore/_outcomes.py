"""How handlers ended, on the way to the database: acks in groups, and again until they arrive."""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from ._claimer import Claimed
from ._input import error_text, integer
from .errors import InvalidOption, StoreClosed

if TYPE_CHECKING:
    from .store import Session

log = logging.getLogger("alkstore")

_GROUP_S = 0.003  # how long an ack waits for others
_RETRY_S = 0.5
_UNSURE_S = 2.0  # by so much later than we may the database see a claim end


class Fail(Exception):
    """Raised by a handler of a Worker: the job can never succeed. Bury it, with this as its error.

    Not an AlkstoreError, as Retry is none: nothing has gone wrong with the queue.
    """


class Retry(Exception):
    """Raised by a handler of a Worker: try the job again, with this as its error.

    delay_s: in so many seconds, None for after the job's backoff. Any other exception does the
    same as one without delay_s, but is logged with its traceback, as nobody has foreseen it.
    Raises InvalidOption.
    """

    def __init__(self, error: str | None = None, delay_s: int | None = None) -> None:
        super().__init__(*([] if error is None else [error]))
        # Here, where it can still be told: afterwards there is nobody to hear it.
        if delay_s is not None and not 0 <= integer("delay_s", delay_s) < 2**31:
            raise InvalidOption("invalid_option: delay_s must be from 0 to 2147483647")
        self.delay_s = delay_s


class Outcome(NamedTuple):
    claimed: Claimed
    call: str  # ack, retry or fail
    error: str | None = None
    delay_s: int | None = None
    not_before: float = 0.0  # of one that has been sent in vain


class Outcomes:
    def __init__(self, complain: Callable[..., None]) -> None:
        self._complain = complain
        self._lock = threading.Lock()
        self._waiting: list[Outcome] = []
        self._due_at = inf

    def add(self, outcome: Outcome) -> bool:
        """True when it is the first of a group."""
        with self._lock:
            self._waiting.append(outcome)
            due_at = time.monotonic() + _GROUP_S
            first = due_at < self._due_at
            self._due_at = min(due_at, self._due_at)
            return first

    def pause_s(self) -> float:
        """How many seconds there is nothing to send; infinite without outcomes."""
        return max(0.0, self._due_at - time.monotonic())

    def settle(self, session: Session) -> None:
        """Send what there is, one call for all acks of a queue."""
        now = time.monotonic()
        with self._lock:
            outcomes = [outcome for outcome in self._waiting if outcome.not_before <= now]
            self._waiting = [outcome for outcome in self._waiting if outcome.not_before > now]
            self._due_at = min([outcome.not_before for outcome in self._waiting], default=inf)
        acks: dict[str, list[Outcome]] = defaultdict(list)
        for outcome in outcomes:
            if outcome.call == "ack":
                acks[outcome.claimed.job.queue].append(outcome)
            else:
                self._judge(outcome, self._send(session, outcome))
        for queue, group in acks.items():
            answers = self._ack(session, queue, group)
            for outcome in group:
                self._judge(outcome, answers.get(outcome.claimed.key))

    def _ack(
        self, session: Session, queue: str, acks: list[Outcome]
    ) -> dict[tuple[int, int], bool]:
        try:
            return session.settle("ack", queue, [ack.claimed.key for ack in acks])
        except StoreClosed:
            raise
        except Exception as error:
            self._complain("acks of %r: %s; they will be sent again", queue, error)
            return {}

    def _send(self, session: Session, outcome: Outcome) -> bool | None:
        job = outcome.claimed.job
        more = {"delay_s": outcome.delay_s} if outcome.call == "retry" else {}
        try:
            return session.accepted(
                None,
                outcome.call,
                queue=job.queue,
                job_id=job.id,
                attempt=job.attempt,
                error=error_text(outcome.error),
                **more,
            )
        except StoreClosed:
            raise
        except Exception as error:
            self._complain("%s of %r: %s; will be sent again", outcome.call, job.queue, error)
            return None

    def _judge(self, outcome: Outcome, answer: bool | None) -> None:
        claimed, now = outcome.claimed, time.monotonic()
        if answer is None and now < claimed.deadline + _UNSURE_S:
            again = outcome._replace(not_before=now + _RETRY_S)
            with self._lock:
                self._waiting.append(again)
                self._due_at = min(self._due_at, again.not_before)
        # What is sent again may have been accepted before, a handler may have settled its job.
        elif answer is None or not (answer or outcome.not_before or claimed.job._ended):
            log.warning(
                "job %d of %r: its claim was lost, or it was cancelled, before the %s",
                claimed.job.id,
                claimed.job.queue,
                outcome.call,
            )
