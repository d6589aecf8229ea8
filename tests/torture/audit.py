"""Rebuilds each job's history from the journals, and says what cannot have been.

A call whose outcome nobody knows may or may not have happened: wherever that would excuse what is seen, nothing is said. All
instants are those of the machine's clock, except those that the database gave.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tests.model.faces import CLAIM_COLUMNS, JOB_COLUMNS
from tests.torture.database import crowded
from tests.torture.journal import Call

SETTLING = ("ack", "release", "fail", "retry", "heartbeat")
ENDING = ("ack", "ack_batch", "fail", "cancel")  # after which nobody may have the job again
GRACE_S = 5  # that a server may take to notice that a client is gone


@dataclass
class Report:
    findings: list[str] = field(default_factory=list)
    figures: Counter[str] = field(default_factory=Counter)


@dataclass
class Claim:
    """One job in one claim's answer."""

    call: Call
    row: dict[str, Any]

    @property
    def attempt(self) -> int:
        return int(self.row["attempt"])


@dataclass
class Settling:
    """What one call wanted of one job. `accepted` None: not known."""

    call: Call
    name: str
    attempt: int | None
    accepted: bool | None

    @property
    def possible(self) -> bool:
        return self.accepted is not False


@dataclass
class History:
    token: str
    enqueue: Call
    id: int | None = None
    claims: list[Claim] = field(default_factory=list)
    settlings: list[Settling] = field(default_factory=list)
    final: list[dict[str, Any]] = field(default_factory=list)

    @property
    def options(self) -> dict[str, Any]:
        return self.enqueue.arguments["options"]  # type: ignore[no-any-return]

    @property
    def max_attempts(self) -> int:
        return int(self.options["max_attempts"] or 3)

    def __str__(self) -> str:
        return f"job {self.id} ({self.token})"


class Clock:
    """Bounds for the database's now: the machine's time and an offset, which is only ever raised."""

    def __init__(self, moves: Iterable[Call]) -> None:
        self._asked: list[tuple[float, float]] = [(-math.inf, 0.0)]
        self._done: list[tuple[float, float]] = [(-math.inf, 0.0)]
        for move in sorted(moves, key=lambda move: move.start):
            self._asked.append((move.start, self._asked[-1][1] + move.arguments["seconds"]))
        for move in sorted((m for m in moves if m.happened), key=lambda move: move.done):
            self._done.append((move.done, self._done[-1][1] + move.arguments["seconds"]))

    def least(self, instant: float) -> float:
        return math.floor(instant + self._at(self._done, instant))

    def most(self, instant: float) -> float:
        return (
            math.inf
            if instant == math.inf
            else math.floor(instant + self._at(self._asked, instant))
        )

    @staticmethod
    def _at(steps: list[tuple[float, float]], instant: float) -> float:
        return steps[bisect_right(steps, (instant, math.inf)) - 1][1]


class Audit:
    def __init__(self, calls: list[Call], final: dict[str, Any]) -> None:
        self.calls = calls
        self.report = Report()
        self.clock = Clock([call for call in calls if call.name == "move_clock"])
        self.business = set(final["business"])
        self.jobs: dict[str, History] = {}
        self.by_id: dict[int, History] = {}
        for call in self.named("enqueue"):
            for position, token in enumerate(call.arguments["tokens"]):
                job = History(token, call)
                self.jobs[token] = job
                if call.result is not None and call.happened:
                    self.know(job, call.result[position])
        self.final = [dict(zip(JOB_COLUMNS, row, strict=True)) for row in final["jobs"]]
        self.collect_final()
        self.collect_claims()
        self.collect_settlings()

    def found(self, text: str) -> None:
        self.report.findings.append(text)

    def named(self, *names: str) -> Iterator[Call]:
        return (call for call in self.calls if call.name in names)

    # -- collecting

    def know(self, job: History, id: int) -> None:
        if job.id is None:
            job.id = id
        if job.id != id:
            self.found(f"{job} has the id {id} too")
        elif (other := self.by_id.setdefault(id, job)) is not job:
            self.found(f"{job} has the id of {other}")

    def seen(self, id: int, payload: str) -> History | None:
        """The job of a row, which tells its id."""
        token = json.loads(payload)["token"]
        job = self.jobs.get(token)
        if job is not None:
            if payload != f'{{"token": "{token}",  "n": 1.0}}':
                self.found(f"{job} has the payload {payload}")
            self.know(job, id)
        return job

    def collect_final(self) -> None:
        for row in self.final:
            job = self.seen(row["job_id"], row["payload"])
            if job is not None:  # else of a round before
                job.final.append(row)
            elif row["state"] != "dead":
                self.found(f"job {row['job_id']} of a round before is there again")

    def collect_claims(self) -> None:
        for call in self.named("claim"):
            for values in call.result or ():
                row = dict(zip(CLAIM_COLUMNS, values, strict=True))
                job = self.seen(row["job_id"], row["payload"])
                if job is None:
                    self.found(f"job {row['job_id']}, which nobody enqueued, was claimed")
                else:
                    job.claims.append(Claim(call, row))

    def collect_settlings(self) -> None:
        for call in self.named(*SETTLING):
            id, attempt = call.arguments["claim"]
            accepted = None if call.result is None else bool(call.result)
            self.settled(call, id, attempt, accepted)
        for call in self.named("ack_batch"):
            claims = call.arguments["claims"]
            all_or_none = {len(claims): True, 0: False}
            for id, attempt in claims:
                self.settled(call, id, attempt, all_or_none.get(call.result))
        for call in self.named("cancel"):
            self.settled(call, call.arguments["id"], None, call.result)

    def settled(self, call: Call, id: int, attempt: int | None, accepted: bool | None) -> None:
        if id in self.by_id:
            if accepted and not call.happened:
                accepted = call.happened
            self.by_id[id].settlings.append(Settling(call, call.name, attempt, accepted))

    # -- judging

    def run(self) -> Report:
        for call in self.calls:
            if call.name == "crash":
                self.found(f"{call.actor} ended: {call.error}")
            elif call.error and not (crowded(call.error) and not self.may_not(call)):
                self.found(f"{call.name} of {call.actor} failed: {call.error}")
            elif call.name == "look" and call.result:
                self.found(f"{call.actor} saw jobs {call.result} twice")
        for job in self.jobs.values():
            self.judge(job)
        self.judge_prunings()
        Order(self).judge()
        self.count()
        return self.report

    @staticmethod
    def may_not(call: Call) -> bool:
        """Calls that are transactions of their own never run into a deadlock."""
        return bool(call.error and call.error.startswith("40P01") and call.transaction is None)

    def judge(self, job: History) -> None:
        existed = self.existed(job)
        seen = job.final or job.claims or job.token in self.business
        if existed is False:
            if seen:
                self.found(f"{job} was rolled back, and is there")
            return
        if job.enqueue.arguments["business"] and existed != (job.token in self.business):
            self.found(f"{job} and its business row did not commit together")
        if existed and not job.final and not self.may_be_gone(job):
            self.found(f"{job} is lost")
        if len(job.final) > 1:
            self.found(f"{job} is in two places")
        for claim in job.claims:
            self.judge_claim(job, claim)
        self.judge_attempts(job)
        self.judge_leases(job)
        for settling in job.settlings:
            if self.must_be_accepted(job, settling):
                self.report.figures["settlings that had to be accepted"] += 1
                if settling.call.result is False:
                    self.found(f"{settling.name} by {settling.call.actor} of {job} was refused")
            if settling.accepted and settling.attempt is not None:
                self.judge_accepted(job, settling)
        self.judge_ends(job)
        for row in job.final:
            self.judge_final(job, row)

    def existed(self, job: History) -> bool | None:
        """A commit of which nobody knows is told by the business row that was in it."""
        if job.enqueue.happened is None and job.enqueue.arguments["business"]:
            return job.token in self.business
        return job.enqueue.happened

    def may_be_gone(self, job: History) -> bool:
        if any(s.possible and s.name in ENDING and s.name != "fail" for s in job.settlings):
            return True
        return job.options["dead_letter_retention_s"] is not None and job.token in self.prunable

    @cached_property
    def prunable(self) -> set[str]:
        """Tokens of jobs in whose queue some sweep has, or may have, pruned."""
        queues = {
            call.arguments["queue"]
            for call in self.named("sweep_expired")
            if call.possible and (call.result is None or call.result[1])
        }
        return {
            token for token, job in self.jobs.items() if job.enqueue.arguments["queue"] in queues
        }

    def judge_prunings(self) -> None:
        """Sweeps tell how many they pruned: no more may be gone without another reason."""
        for queue in {call.arguments["queue"] for call in self.named("sweep_expired")}:
            sweeps = [c for c in self.named("sweep_expired") if c.arguments["queue"] == queue]
            if any(c.happened is None for c in sweeps):
                continue
            pruned = sum(c.result[1] for c in sweeps if c.happened)
            gone = sum(
                self.existed(job) is True
                and not job.final
                and not any(
                    s.possible and s.name in ENDING and s.name != "fail" for s in job.settlings
                )
                for job in self.jobs.values()
                if job.enqueue.arguments["queue"] == queue
            )
            if gone > pruned:
                self.found(f"{gone} dead jobs of queue {queue} are gone, {pruned} were pruned")

    def judge_claim(self, job: History, claim: Claim) -> None:
        row, call = claim.row, claim.call
        now = row["claimed_at"]
        if not (
            self.clock.least(call.start) <= now <= self.clock.most(call.done)
            and row["claim_expires_at"] == now + job.options["visibility_timeout_s"]
            and row["run_at"] <= now
            and (row["expires_at"] is None or now <= row["expires_at"])
            and row["queue"] == call.arguments["queue"] == job.enqueue.arguments["queue"]
            and row["worker_id"] == call.arguments["worker"]
            and row["max_attempts"] == job.max_attempts
        ):
            self.found(f"{job} was claimed by {call.actor} as {row}")

    def judge_attempts(self, job: History) -> None:
        claims = [claim for claim in job.claims if claim.call.happened]
        numbers = Counter(claim.attempt for claim in claims)
        for attempt, times in numbers.items():
            if times > 1:
                self.found(f"attempt {attempt} of {job} was handed out {times} times")
        released = {s.attempt for s in job.settlings if s.name == "release" and s.possible}
        if len(numbers.keys() - released) > job.max_attempts:
            self.found(
                f"{job} ran {len(numbers)} times, {len(released)} released, of {job.max_attempts}"
            )
        last = max([*numbers, *(row["attempts"] for row in job.final)], default=0)
        maybe = {claim.attempt for claim in job.claims if claim.call.possible}
        unknown = sum(
            call.start > job.enqueue.start
            for call in self.unknown_claims.get(job.enqueue.arguments["queue"], ())
        )
        missing = set(range(1, last + 1)) - maybe
        if len(missing) > unknown:
            self.found(f"attempts {sorted(missing)} of {job} were handed out to nobody")

    @cached_property
    def unknown_claims(self) -> dict[str, list[Call]]:
        """By queue, the claims of which not even the answer is known."""
        calls = defaultdict(list)
        for call in self.named("claim"):
            if call.happened is None and call.result is None:
                calls[call.arguments["queue"]].append(call)
        return calls

    def heartbeats(self, job: History, attempt: int) -> list[Settling]:
        return [
            s
            for s in job.settlings
            if s.name == "heartbeat" and s.attempt == attempt and s.possible
        ]

    def extension(self, job: History, heartbeat: Settling) -> int:
        [extend_s] = heartbeat.call.arguments["more"]
        return int(extend_s or job.options["visibility_timeout_s"])

    def judge_leases(self, job: History) -> None:
        """Nobody gets a job that somebody holds."""
        claims = {claim.attempt: claim for claim in job.claims if claim.call.happened}
        for attempt, claim in claims.items():
            after = claims.get(attempt + 1)
            given_back = any(
                s.name in ("release", "retry") and s.attempt == attempt and s.possible
                for s in job.settlings
            )
            if after is None or given_back:
                continue
            if after.row["claimed_at"] <= self.certain_deadline(job, claim, math.inf):
                self.found(f"attempt {attempt + 1} of {job} began while attempt {attempt} was held")

    def certain_deadline(self, job: History, claim: Claim, before: float) -> float:
        """A heartbeat can also shorten a claim."""
        deadline = float(claim.row["claim_expires_at"])
        for beat in self.heartbeats(job, claim.attempt):
            if beat.call.start < before:
                deadline = min(
                    deadline, self.clock.least(beat.call.start) + self.extension(job, beat)
                )
        return deadline

    def judge_accepted(self, job: History, settling: Settling) -> None:
        call, attempt = settling.call, settling.attempt
        what = f"{settling.name} of attempt {attempt} of {job} by {call.actor}"
        for claim in job.claims:
            if claim.call.happened and claim.attempt > attempt and claim.call.end < call.start:
                self.found(f"{what} was accepted after attempt {claim.attempt} had begun")
        claims = [c for c in job.claims if c.attempt == attempt and c.call.possible]
        if not claims:
            return
        deadline = max(
            *(c.row["claim_expires_at"] for c in claims),
            *(
                self.clock.most(beat.call.done) + self.extension(job, beat)
                for beat in self.heartbeats(job, attempt)
                if beat.call.start < call.done
            ),
            0,
        )
        if self.clock.least(call.start) > deadline:
            self.found(f"{what} was accepted after its deadline")
        for other in job.settlings:
            ended = other.accepted and other.name != "heartbeat" and other.call.end < call.start
            if ended and other.call is not call:
                if other.name in ENDING or other.attempt == attempt:
                    self.found(f"{what} was accepted after {other.name} by {other.call.actor}")

    def must_be_accepted(self, job: History, settling: Settling) -> bool:
        """Whether the claim certainly was good, and nothing can have been in the way."""
        call = settling.call
        claims = [c for c in job.claims if c.attempt == settling.attempt]
        if settling.name not in SETTLING or len(claims) != 1:
            return False
        [claim] = claims
        before = claim.call.happened and claim.call.end < call.start
        same = call.transaction is not None and claim.call.transaction == call.transaction
        if not (before or same) or job.options["expires_s"] is not None:
            return False  # a sweep may have taken what expires
        return self.clock.most(call.done) <= self.certain_deadline(
            job, claim, call.done
        ) and not any(
            other.name != "heartbeat"
            and other.call is not call
            and other.call.result is not False
            and other.call.start < call.done
            and other.call.end > claim.call.start
            for other in job.settlings
        )

    def judge_ends(self, job: History) -> None:
        """After its end nobody gets the job."""
        for ending in job.settlings:
            if not ending.accepted or ending.name not in ENDING:
                continue
            for claim in job.claims:
                if claim.call.start > ending.call.end:
                    self.found(f"{job} was claimed by {claim.call.actor} after {ending.name}")
            gone = ending.name != "fail"
            if gone and job.final:
                self.found(f"{job} is there after {ending.name} by {ending.call.actor}")

    def judge_final(self, job: History, row: dict[str, Any]) -> None:
        if row["state"] != "dead":
            self.found(f"{job} is {row['state']} after all were drained")
            return
        for name, default in DEFAULTS.items():
            wanted = job.options[name] if job.options[name] is not None else default
            if row[name] != wanted:
                self.found(f"{job} has {name} {row[name]}, not {wanted}")
        if row["attempts"] - row["released"] > job.max_attempts:
            self.found(f"{job} has {row['attempts']} attempts, {row['released']} released")
        used_up = row["attempts"] - row["released"] == job.max_attempts
        match row["last_error"]:
            case "expired":
                right = row["expires_at"] is not None and row["died_at"] > row["expires_at"]
            case "max attempts exceeded":
                right = used_up
            case "failed":
                right = any(s.name == "fail" and s.possible for s in job.settlings)
            case error:
                right = error in self.errors(job, "fail", "retry")
        if not right:
            self.found(f"{job} is dead of {row['last_error']!r}, for no reason")
        if row["retry_error"] is not None and row["retry_error"] not in self.errors(job, "retry"):
            self.found(f"{job} has the retry_error {row['retry_error']!r}, which nobody gave")

    @staticmethod
    def errors(job: History, *names: str) -> set[str]:
        return {
            s.call.arguments["more"][0] for s in job.settlings if s.name in names and s.possible
        }

    # -- counting

    def count(self) -> None:
        figures = self.report.figures
        figures["jobs"] = sum(self.existed(job) is True for job in self.jobs.values())
        figures["jobs rolled back"] = sum(self.existed(job) is False for job in self.jobs.values())
        figures["calls"] = sum(
            call.name not in ("move_clock", "hold", "look") for call in self.calls
        )
        figures["calls of unknown outcome"] = sum(call.happened is None for call in self.calls)
        figures["calls rolled back"] = sum(call.happened is False for call in self.calls)
        figures["claims"] = sum(
            bool(claim.call.happened) for job in self.jobs.values() for claim in job.claims
        )
        settlings = [s for job in self.jobs.values() for s in job.settlings]
        figures["settlings accepted"] = sum(bool(s.accepted) for s in settlings)
        figures["settlings refused"] = sum(s.call.result is False for s in settlings)
        figures["dead jobs"] = sum(bool(job.final) for job in self.jobs.values())


DEFAULTS = {
    "priority": 0, "max_attempts": 3, "visibility_timeout_s": 300, "backoff_base_s": 5,
    "dead_letter_retention_s": None,
}  # fmt: skip


class Order:
    """Whether claims took the first of what they could see.

    Within one claim's answer that is plain. Across jobs it is only told of a claim that ran alone on its queue, and of jobs
    that lay there untouched, ready and visible, from before the second of that claim until after it.
    """

    def __init__(self, audit: Audit) -> None:
        self.audit = audit
        self.clock = audit.clock

    def judge(self) -> None:
        for call in self.audit.named("claim"):
            ranks = [rank(dict(zip(CLAIM_COLUMNS, row, strict=True))) for row in call.result or ()]
            if ranks != sorted(ranks):
                self.audit.found(f"a claim by {call.actor} has its jobs out of order: {ranks}")
        for queue in {call.arguments["queue"] for call in self.audit.named("claim")}:
            self.judge_queue(queue)

    def judge_queue(self, queue: str) -> None:
        idle = sorted(
            (spell for job in self.audit.jobs.values() for spell in self.idle(job, queue)),
            key=lambda spell: spell.start,
        )
        current: list[Idle] = []
        position = 0
        for call in self.alone(queue):
            while position < len(idle) and idle[position].start < call.start:
                current.append(idle[position])
                position += 1
            current = [spell for spell in current if spell.end > call.start]
            self.judge_claim(call, [spell for spell in current if spell.end > call.done])

    def judge_claim(self, call: Call, waiting: list[Idle]) -> None:
        rows = [dict(zip(CLAIM_COLUMNS, row, strict=True)) for row in call.result]
        now = rows[0]["claimed_at"] if rows else self.clock.least(call.start)
        last = max((rank(row) for row in rows), default=(math.inf, 0, 0))
        for spell in waiting:
            if spell.ready_from < now and self.clock.most(spell.start) < now:
                self.audit.report.figures["pairs in order"] += 1
                if spell.rank < last:
                    self.audit.found(
                        f"a claim by {call.actor} at {call.start} passed over {spell.job}, "
                        f"ready since {spell.ready_from}, now {now}"
                    )

    def alone(self, queue: str) -> Iterator[Call]:
        """Claims during which nothing else happened in the queue."""
        windows = []
        for call in self.audit.calls:
            if call.name in ("claim", "sweep_expired") and call.arguments["queue"] == queue:
                # Who was killed may have gone on for a while.
                end = call.end if call.end < math.inf else call.start + GRACE_S
                windows.append((call.start, end, call))
            elif call.name == "hold":
                windows.append((call.start, call.done + GRACE_S, call))
        windows.sort(key=lambda window: window[0])
        latest = -math.inf
        for position, (start, end, call) in enumerate(windows):
            follows = windows[position + 1][0] if position + 1 < len(windows) else math.inf
            judged = call.name == "claim" and call.result is not None and call.arguments["n"] != 0
            if judged and latest < start and follows > end:
                yield call
            latest = max(latest, end)

    def idle(self, job: History, queue: str) -> Iterator[Idle]:
        """When the job lay there ready, as far as that is certain."""
        if job.enqueue.arguments["queue"] != queue or job.id is None or not job.enqueue.happened:
            return
        if job.options["expires_s"] is not None:
            return  # a sweep may take it at any time
        touches = [*((c.call, c) for c in job.claims), *((s.call, s) for s in job.settlings)]
        touches.sort(key=lambda touch: touch[0].start)
        options = job.options
        known: float | None = self.clock.most(job.enqueue.done) + (options["delay_s"] or 0)
        if options["delay_s"] is None and options["run_at"] is not None:
            known = options["run_at"]
        start = job.enqueue.end
        attempt = 0
        for call, touch in touches:
            if known is not None and start < call.start:
                row = self.row_after(job, start)
                # Else somebody of whom nothing is known had it in between.
                if row is not None and row["attempt"] == attempt + 1:
                    yield Idle(job, start, call.start, known, rank(row))
            # Of two at the same time nobody knows which was the last.
            known = None if call.start < start else self.ready_after(job, touch)
            start = max(start, call.end)
            if isinstance(touch, Claim) and call.happened:
                attempt = touch.attempt
        # The drain takes all that is left: what comes after the last touch is not idle.

    @staticmethod
    def row_after(job: History, instant: float) -> dict[str, Any] | None:
        """The next claim, whose row tells the run_at that the job had."""
        rows = [(c.call.start, c.row) for c in job.claims if c.call.start > instant]
        return min(rows, key=lambda row: row[0], default=(0, None))[1]

    def ready_after(self, job: History, touch: Claim | Settling) -> float | None:
        """From which now on the job is ready after this, if that is certain."""
        call = touch.call
        if not call.happened:
            return None
        if isinstance(touch, Claim):
            if touch.attempt >= job.max_attempts:
                return None  # the next claim may bury it
            return float(touch.row["claim_expires_at"])
        if touch.accepted and touch.name == "release":
            return self.clock.most(call.done)
        if touch.accepted and touch.name == "retry" and call.arguments["more"][1] is not None:
            return self.clock.most(call.done) + float(call.arguments["more"][1])
        return None


@dataclass
class Idle:
    job: History
    start: float
    end: float
    ready_from: float
    rank: tuple[float, int, int]


def rank(row: dict[str, Any]) -> tuple[float, int, int]:
    return (-row["priority"], row["run_at"], row["job_id"])


def audit(calls: list[Call], final: dict[str, Any]) -> Report:
    return Audit(calls, final).run()
