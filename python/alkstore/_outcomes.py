"""How handlers ended, on the way to the database: acks in groups, and again until they arrive."""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from contextlib import suppress
from math import inf
from textwrap import shorten
from traceback import format_exception_only
from typing import TYPE_CHECKING, NamedTuple

from ._claimer import Claimed
from ._complaints import Complaints
from ._input import error_text, integer
from .errors import Busy, InvalidOption, StoreClosed, Unavailable

if TYPE_CHECKING:
    from .store import Session

log = logging.getLogger("alkstore")

_GROUP_S = 0.003  # how long an ack waits for others
_RETRY_S = 0.5
_LAST_S = 5.0  # how long to go on after a failure when the worker ends
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
    call: str  # ack, retry or fail; release, where there was no end
    error: str | None = None
    delay_s: int | None = None
    not_before: float = 0.0  # of one that has been sent in vain
    maybe_sent: bool = False  # and yet may have arrived


def outcome_of(claimed: Claimed, error: BaseException) -> Outcome:
    """What becomes of a job whose handler raised; told to the log, if it can be told."""
    job, text = claimed.job, _text(error)
    call = "fail" if isinstance(error, Fail) else "retry"
    delay_s = getattr(error, "delay_s", None) if isinstance(error, Retry) else None
    with suppress(BaseException):  # the error's own code, which runs when it is told, may raise
        if isinstance(error, Fail):
            log.info("job %d of %r will not succeed: %s", job.id, job.queue, _line(text))
        elif isinstance(error, Retry):
            log.info("job %d of %r, attempt %d: %s", job.id, job.queue, job.attempt, _line(text))
        else:
            log.warning(
                "job %d of %r, attempt %d, failed", job.id, job.queue, job.attempt, exc_info=error
            )
    return Outcome(claimed, call, text, delay_s)


def _text(error: BaseException) -> str | None:
    try:
        if isinstance(error, Fail | Retry):
            return str(error) or None
        return "".join(format_exception_only(error)).strip()
    except BaseException:
        return type(error).__name__


def _line(text: str | None) -> str:
    """What the log tells of an error that its author may have meant for a file."""
    return shorten((text or "no reason given")[:10_000], 200)


class Outcomes:
    def __init__(self, complain: Complaints) -> None:
        self._complain = complain
        self._lock = threading.Lock()  # of what follows
        self._waiting: list[Outcome] = []
        self._sending: list[Outcome] = []
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

    def claims(self) -> list[Claimed]:
        """To be held until the database knows what came of them."""
        with self._lock:
            return [outcome.claimed for outcome in self._waiting + self._sending]

    def settle(self, session: Session, *, last: bool = False) -> None:
        """Send what is due, in few calls; at the last all there is."""
        began_at = time.monotonic()
        with self._lock:
            self._waiting.sort(key=lambda outcome: outcome.not_before)
            self._sending = [o for o in self._waiting if last or o.not_before <= began_at]
            self._waiting = [o for o in self._waiting if not (last or o.not_before <= began_at)]
            self._due_at = min([o.not_before for o in self._waiting], default=inf)
        troubled = False
        for group in _groups(self._sending):
            tired = troubled and time.monotonic() > began_at + (_LAST_S if last else _RETRY_S)
            if tired and not last:
                self._keep(group)  # there is other work; next time these come before what failed
                continue
            answers, maybe_sent = ({}, False) if tired else self._send(session, group)
            troubled = troubled or len(answers) < len(group)
            for outcome in group:
                outcome = outcome._replace(maybe_sent=outcome.maybe_sent or maybe_sent)
                self._judge(outcome, answers.get(outcome.claimed.key), last)
        with self._lock:
            self._sending = []

    def _send(
        self, session: Session, group: list[Outcome]
    ) -> tuple[dict[tuple[int, int], bool], bool]:
        """The answers, and whether those that are missing may yet have been given."""
        outcome, job = group[0], group[0].claimed.job
        more = {"delay_s": outcome.delay_s} if outcome.call == "retry" else {}
        try:
            if outcome.call in ("ack", "release"):
                claims = [o.claimed.key for o in group]
                return session.settle(outcome.call, job.queue, claims), False
            accepted = session.accepted(
                None,
                outcome.call,
                queue=job.queue,
                job_id=job.id,
                attempt=job.attempt,
                error=error_text(outcome.error),
                **more,
            )
            return {outcome.claimed.key: accepted}, False
        except StoreClosed:
            raise
        except (Busy, Unavailable) as error:
            self._complain("%s of %r: %s; will be sent again", outcome.call, job.queue, error)
            return {}, isinstance(error, Unavailable)
        except Exception as error:
            if len(group) > 1:  # it need not be the fault of all
                alone = [self._send(session, [one]) for one in group]
                answers = {claim: answer for some, _ in alone for claim, answer in some.items()}
                return answers, any(maybe_sent for _, maybe_sent in alone)
            outcome.claimed.lost = True  # time may not cure it: let it lapse
            self._complain("%s of %r: %s; will be sent again", outcome.call, job.queue, error)
            return {}, False

    def _keep(self, outcomes: list[Outcome]) -> None:
        with self._lock:
            self._waiting += outcomes
            self._due_at = min([self._due_at, *(o.not_before for o in outcomes)])

    def _judge(self, outcome: Outcome, answer: bool | None, last: bool) -> None:
        claimed, now = outcome.claimed, time.monotonic()
        if answer is None and not last and now < claimed.deadline + _UNSURE_S:
            self._keep([outcome._replace(not_before=now + _RETRY_S)])
        elif answer is None:
            log.warning(
                "job %d of %r: its %s could not be sent, it will be run again",
                claimed.job.id,
                claimed.job.queue,
                outcome.call,
            )
        # What is sent again may have been accepted before, a handler may have settled its job, and
        # what was to be handed back is not missed.
        elif not (answer or outcome.maybe_sent or claimed.job._ended or outcome.call == "release"):
            log.warning(
                "job %d of %r: its claim was lost, or it was cancelled, before the %s",
                claimed.job.id,
                claimed.job.queue,
                outcome.call,
            )


def _groups(outcomes: list[Outcome]) -> list[list[Outcome]]:
    """What is sent in one call; what is done before what was not begun."""
    acks: dict[str, list[Outcome]] = defaultdict(list)
    others: list[list[Outcome]] = []
    releases: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        if outcome.call == "ack":
            acks[outcome.claimed.job.queue].append(outcome)
        elif outcome.call == "release":
            releases[outcome.claimed.job.queue].append(outcome)
        else:
            others.append([outcome])
    return [*acks.values(), *others, *releases.values()]
