"""Goes through each job's history, and says what cannot have been.

Of a call without an answer nobody knows whether it happened: wherever that would excuse what is
seen, nothing is said. Instants are the machine's, except those that the database gave.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.torture import order, runs
from tests.torture.database import HANDLED, is_crowding
from tests.torture.history import SETTLING, Claim, History, Job, Row, Settling
from tests.torture.journal import Call

ENDS = ("ack", "ack_batch", "fail", "cancel")  # after which nobody may have the job again
OF_CHAOS = ("move_clock", "hold", "look", "terminate", "ended", "wait_for_workers")
DEFAULTS = {
    "priority": 0, "max_attempts": 3, "visibility_timeout_s": 300, "backoff_base_s": 5,
    "dead_letter_retention_s": None,
}  # fmt: skip


@dataclass
class Report:
    findings: list[str] = field(default_factory=list)
    figures: Counter[str] = field(default_factory=Counter)


def audit(calls: list[Call], final: dict[str, Any]) -> Report:
    history = History(calls, final)
    report = Report(figures=figures(history))
    report.findings += history.wrong
    report.findings += failures(history)
    report.findings += runs.findings(history, final)
    for job in history.jobs.values():
        report.findings += JobAudit(history, job, report.figures).findings()
    report.findings += prunings(history)
    report.findings += order.findings(history, report.figures)
    return report


def figures(history: History) -> Counter[str]:
    calls, jobs = history.calls, history.jobs.values()
    settlings = [settling for job in jobs for settling in job.settlings]
    return Counter(
        {
            "jobs": sum(history.existed(job) is True for job in jobs),
            "jobs rolled back": sum(history.existed(job) is False for job in jobs),
            "jobs dead at the end": sum(bool(job.final) for job in jobs),
            "calls": sum(c.name not in OF_CHAOS for c in calls),
            "calls undone": sum(call.happened is False for call in calls),
            "runs of handlers": sum(call.name == "run" for call in calls),
            "calls of unknown outcome": sum(call.happened is None for call in calls),
            "claims": sum(bool(claim.call.happened) for job in jobs for claim in job.claims),
            "settlings accepted": sum(bool(s.accepted) for s in settlings),
            "settlings refused": sum(s.call.result is False for s in settlings),
        }
    )


def failures(history: History) -> Iterator[str]:
    for call in history.calls:
        if call.error and not (is_crowding(call.error) or is_deadlock(history, call)):
            yield f"{call.name} of {call.actor} failed: {call.error}"
        if call.name == "look" and call.result:
            yield f"{call.actor} saw jobs {call.result} in two places"


def is_deadlock(history: History, call: Call) -> bool:
    """With a transaction of many calls, this one's or another's; alone, calls never have one."""
    return bool(call.error and call.error.startswith("40P01")) and any(
        other.transaction is not None and other.start < call.done and other.end > call.start
        for other in history.calls
    )


def prunings(history: History) -> Iterator[str]:
    """Sweeps count what they prune: no more may be gone without another reason."""
    for queue in {job.queue for job in history.jobs.values()}:
        sweeps = [c for c in history.named("sweep_expired") if c.arguments["queue"] == queue]
        if any(sweep.happened is None for sweep in sweeps):
            continue
        pruned = sum(sweep.result[1] for sweep in sweeps if sweep.happened)
        gone = sum(
            history.existed(job) is True
            and not job.final
            and not any(settling.possible_end for settling in job.settlings)
            for job in history.jobs.values()
            if job.queue == queue and job.options["dead_letter_retention_s"] is not None
        )
        if gone > pruned:
            yield f"{gone} jobs of queue {queue} are gone, and {pruned} were pruned"


class JobAudit:
    def __init__(self, history: History, job: Job, figures: Counter[str]) -> None:
        self.history, self.job, self.figures = history, job, figures
        self.clock = history.clock
        self.claims = {c.attempt: c for c in job.claims if c.call.happened}

    def findings(self) -> Iterator[str]:
        job, existed = self.job, self.history.existed(self.job)
        if existed is False:
            if job.final or job.claims or job.token in self.history.business:
                yield f"{job} was rolled back, and left a trace"
            return
        if job.enqueue.arguments["business"] and job.token not in self.history.business:
            yield f"{job} was committed without its business row"
        if existed and not job.final and not self.may_be_gone():
            yield f"{job} is lost"
        if len(job.final) > 1:
            yield f"{job} is in two places at the end"
        for claim in job.claims:
            yield from self.claim(claim)
        yield from self.attempts()
        yield from self.leases()
        for settling in job.settlings:
            yield from self.settling(settling)
        for row in job.final:
            yield from self.final(row)

    def may_be_gone(self) -> bool:
        """Settled or cancelled; or dead, and old enough to be pruned."""
        return (
            any(settling.possible_end for settling in self.job.settlings)
            or self.job.options["dead_letter_retention_s"] is not None
        )

    # -- claims

    def claim(self, claim: Claim) -> Iterator[str]:
        row, call = claim.row, claim.call
        if "claimed_at" not in row:  # what a command is told
            return
        now = row["claimed_at"]
        if not (
            self.clock.least(call.start) <= now <= self.clock.most(call.done)
            and row["claim_expires_at"] == now + self.job.options["visibility_timeout_s"]
            and row["run_at"] <= now
            and (row["expires_at"] is None or now <= row["expires_at"])
            and row["queue"] == call.arguments["queue"] == self.job.queue
            and row["worker_id"] == call.arguments["worker"]
            and row["max_attempts"] == self.job.max_attempts
        ):
            yield f"{self.job} was claimed by {call.actor} as {row}"

    def attempts(self) -> Iterator[str]:
        handed_out = [claim for claim in self.job.claims if claim.call.happened]
        for attempt, times in Counter(claim.attempt for claim in handed_out).items():
            if times > 1:
                yield f"attempt {attempt} of {self.job} was handed out {times} times"
        released = {s.attempt for s in self.job.settlings if s.name == "release" and s.possible}
        runs = len(self.claims.keys() - released)
        if runs > self.job.max_attempts:
            yield f"{self.job} ran {runs} times, with max_attempts {self.job.max_attempts}"
        if self.job.queue in HANDLED:  # by claims of which nobody tells
            return
        # An attempt of which nobody tells was handed out by a claim of which nobody tells.
        last = max([*self.claims, *(row["attempts"] for row in self.job.final)], default=0)
        known = {claim.attempt for claim in self.job.claims if claim.call.possible}
        missing = sorted(set(range(1, last + 1)) - known)
        unknown = self.history.unknown_claims[self.job.queue]
        if len(missing) > sum(call.done > self.job.enqueue.start for call in unknown):
            yield f"attempts {missing} of {self.job} were handed out to nobody"

    def leases(self) -> Iterator[str]:
        """Nobody gets a job that somebody holds."""
        for attempt, claim in self.claims.items():
            after = self.claims.get(attempt + 1)
            given_back = any(
                s.name in ("release", "retry") and s.attempt == attempt and s.possible
                for s in self.job.settlings
            )
            if not after or given_back or "claimed_at" not in after.row.keys() & claim.row.keys():
                continue
            if after.row["claimed_at"] <= self.held_until(claim):
                yield f"attempt {attempt + 1} of {self.job} began while {attempt} was held"

    # -- deadlines: a heartbeat may put them off, and also bring them forward

    def heartbeats(self, attempt: int) -> Iterator[tuple[Call, int]]:
        """With the seconds that each asked for."""
        for settling in self.job.settlings:
            if settling.name == "heartbeat" and settling.attempt == attempt and settling.possible:
                [extend_s] = settling.call.arguments["more"]
                yield settling.call, extend_s or self.job.options["visibility_timeout_s"]

    def held_until(self, claim: Claim) -> float:
        """At least."""
        beats = self.heartbeats(claim.attempt)
        deadlines = [self.clock.least(beat.start) + seconds for beat, seconds in beats]
        return min([float(claim.row["claim_expires_at"]), *deadlines])

    def held_until_at_most(self, attempt: int) -> float:
        beats = self.heartbeats(attempt)
        deadlines = [self.clock.most(beat.done) + seconds for beat, seconds in beats]
        for claim in self.job.claims:
            if claim.attempt == attempt and claim.call.possible:
                deadlines.append(math.inf if claim.kept else claim.row["claim_expires_at"])
        return max(deadlines, default=math.inf)

    # -- ack, retry, release, fail, heartbeat, cancel

    def settling(self, settling: Settling) -> Iterator[str]:
        call, attempt = settling.call, settling.attempt
        what = f"{call.name} of attempt {attempt} of {self.job} by {call.actor}"
        if self.must_be_accepted(settling):
            self.figures["settlings that had to be accepted"] += 1
            if call.result is False:
                yield f"{what} was refused"
        if not settling.accepted:
            return
        for other in self.job.settlings:
            over = other.name in ENDS or (other.attempt == attempt and other.name != "heartbeat")
            if over and other.accepted and other.call.end < call.start:
                yield f"{what} was accepted after {other.name} by {other.call.actor}"
        if call.name in ENDS:
            for claim in self.job.claims:
                if claim.call.start > call.end:
                    yield f"{self.job} was claimed by {claim.call.actor} after {what}"
            if self.job.final and settling.possible_end:
                yield f"{self.job} is there after {what}"
        if attempt is not None:
            yield from self.fence(what, call, attempt)

    def fence(self, what: str, call: Call, attempt: int) -> Iterator[str]:
        for later in self.claims.values():
            if later.attempt > attempt and later.call.end < call.start:
                yield f"{what} was accepted after attempt {later.attempt} had begun"
        if self.clock.least(call.start) > self.held_until_at_most(attempt):
            yield f"{what} was accepted after its deadline"

    def must_be_accepted(self, settling: Settling) -> bool:
        """Whether the claim certainly was good, and nothing can have been in the way."""
        call = settling.call
        claims = [claim for claim in self.job.claims if claim.attempt == settling.attempt]
        if call.name not in SETTLING or len(claims) != 1 or call.result is None:
            return False
        [claim] = claims
        visible = claim.call.happened and claim.call.end < call.start
        if not visible and not claim.call.is_in_one_with(call):
            return False
        if self.job.options["expires_s"] is not None:
            return False  # a sweep may have taken it
        return self.clock.most(call.done) <= self.held_until(claim) and not any(
            other.name != "heartbeat"
            and other.call is not call
            and other.call.result is not False
            and other.call.start < call.done
            and other.call.end > claim.call.start
            for other in self.job.settlings
        )

    # -- what is left

    def final(self, row: Row) -> Iterator[str]:
        job = self.job
        if row["state"] != "dead":
            yield f"{job} is {row['state']} after all were drained"
            return
        for name, default in DEFAULTS.items():
            given = job.options[name]
            if row[name] != (default if given is None else given):
                yield f"{job} has {name} {row[name]}, and was given {given}"
        used = row["attempts"] - row["released"]
        if used > job.max_attempts:
            yield f"{job} has used {used} attempts of {job.max_attempts}"
        match row["last_error"]:
            case "expired":
                right = row["expires_at"] is not None and row["died_at"] > row["expires_at"]
            case "max attempts exceeded":
                right = used == job.max_attempts
            case "failed":
                right = None in self.errors("fail")
            case error:
                right = error in self.errors("fail", "retry")
        if not right:
            yield f"{job} is dead of {row['last_error']!r} for no reason"
        if row["retry_error"] is not None and row["retry_error"] not in self.errors("retry"):
            yield f"{job} has the retry_error {row['retry_error']!r}, which nobody gave"

    def errors(self, *names: str) -> set[str | None]:
        """Those given to the job."""
        return {
            s.call.arguments["more"][0]
            for s in self.job.settlings
            if s.name in names and s.possible
        }
