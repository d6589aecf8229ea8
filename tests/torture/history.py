"""What the journals tell of each job, and what they tell of the clock."""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from tests.model.faces import CLAIM_COLUMNS, JOB_COLUMNS
from tests.torture import runs
from tests.torture.actors import payload
from tests.torture.journal import Call

SETTLING = ("ack", "release", "fail", "retry", "heartbeat")

Row = dict[str, Any]


@dataclass
class Claim:
    """One job in the answer of a claim; `kept`: by heartbeats, of which nobody tells."""

    call: Call
    row: Row
    kept: bool = False

    @property
    def attempt(self) -> int:
        return int(self.row["attempt"])


@dataclass
class Settling:
    """What one call wanted of one job."""

    call: Call
    attempt: int | None  # None: of a cancel
    accepted: bool | None  # None: not known

    @property
    def name(self) -> str:
        return self.call.name

    @property
    def possible(self) -> bool:
        return self.accepted is not False

    @property
    def possible_end(self) -> bool:
        """Whether the job may have gone by it without a trace."""
        return self.possible and self.name in ("ack", "ack_batch", "cancel")


@dataclass
class Job:
    token: str
    enqueue: Call
    id: int | None = None
    claims: list[Claim] = field(default_factory=list)
    settlings: list[Settling] = field(default_factory=list)
    final: list[Row] = field(default_factory=list)  # its rows at the end

    @property
    def options(self) -> dict[str, Any]:
        options: dict[str, Any] = self.enqueue.arguments["options"]
        return options

    @property
    def queue(self) -> str:
        return str(self.enqueue.arguments["queue"])

    @property
    def max_attempts(self) -> int:
        return int(self.options["max_attempts"] or 3)

    def __str__(self) -> str:
        return f"job {self.id} ({self.token})"


class Clock:
    """Bounds for the database's now: the machine's time and an offset, which only ever rises."""

    def __init__(self, moves: list[Call]) -> None:
        self._asked = self._steps((move.start, move) for move in moves)
        self._done = self._steps((move.done, move) for move in moves if move.happened)

    @staticmethod
    def _steps(moves: Iterable[tuple[float, Call]]) -> list[tuple[float, int]]:
        steps = [(-math.inf, 0)]
        for instant, move in sorted(moves, key=lambda step: step[0]):
            steps.append((instant, steps[-1][1] + move.arguments["seconds"]))
        return steps

    def least(self, instant: float) -> float:
        return self._at(self._done, instant)

    def most(self, instant: float) -> float:
        return self._at(self._asked, instant)

    @staticmethod
    def _at(steps: list[tuple[float, int]], instant: float) -> float:
        if instant == math.inf:
            return math.inf
        return math.floor(instant + steps[bisect_right(steps, (instant, math.inf)) - 1][1])


class History:
    """All calls, sorted by job. What does not fit together at all is in `wrong`."""

    def __init__(self, calls: list[Call], final: dict[str, Any]) -> None:
        self.calls = calls
        self.clock = Clock(list(self.named("move_clock")))
        self.business = set(final["business"])
        self.booked = [tuple(row) for row in final["booked"]]
        self.wrong: list[str] = []
        self.jobs: dict[str, Job] = {}
        self.by_id: dict[int, Job] = {}
        self._collect_enqueued()
        self._collect_final([dict(zip(JOB_COLUMNS, row, strict=True)) for row in final["jobs"]])
        self._collect_claims()
        self._collect_runs()
        self._collect_settlings()
        # By queue, those of which not even the answer is known.
        self.unknown_claims: dict[str, list[Call]] = defaultdict(list)
        for call in self.named("claim"):
            if call.possible and call.result is None:
                self.unknown_claims[call.arguments["queue"]].append(call)

    def named(self, *names: str) -> Iterator[Call]:
        return (call for call in self.calls if call.name in names)

    def existed(self, job: Job) -> bool | None:
        """A commit of which nobody knows is told by the business row that was in it."""
        if job.enqueue.happened is None and job.enqueue.arguments["business"]:
            return job.token in self.business
        return job.enqueue.happened

    def _collect_enqueued(self) -> None:
        for call in self.named("enqueue"):
            for position, token in enumerate(call.arguments["tokens"]):
                self.jobs[token] = job = Job(token, call)
                if self.existed(job) and call.result is not None:
                    self._know(job, call.result[position])

    def _know(self, job: Job, id: int) -> None:
        job.id = job.id or id
        if job.id != id:
            self.wrong.append(f"{job} has the id {id} too")
        elif (other := self.by_id.setdefault(id, job)) is not job:
            self.wrong.append(f"{job} has the id of {other}")

    def _seen(self, id: int, text: str) -> Job | None:
        """The job of a row, by which its id is known too."""
        job = self.jobs.get(json.loads(text)["token"])
        if job is not None:
            if text != payload(job.token):
                self.wrong.append(f"{job} has the payload {text}")
            self._know(job, id)
        return job

    def _collect_final(self, rows: list[Row]) -> None:
        for row in rows:
            job = self._seen(row["job_id"], row["payload"])
            if job is not None:  # else it died in a round before
                job.final.append(row)
            elif row["state"] != "dead":
                self.wrong.append(f"job {row['job_id']} is {row['state']}, of nobody in this round")

    def _collect_claims(self) -> None:
        for call in self.named("claim"):
            for values in call.result or ():
                row = dict(zip(CLAIM_COLUMNS, values, strict=True))
                job = self._seen(row["job_id"], row["payload"])
                if job is None:
                    self.wrong.append(f"job {row['job_id']}, of nobody in this round, was claimed")
                else:
                    job.claims.append(Claim(call, row))

    def _collect_runs(self) -> None:
        stopped = runs.stopped(self)
        for run in self.named("run"):
            row = run.arguments["row"]
            job = self._seen(row["job_id"], row["payload"])
            if job is None:
                self.wrong.append(f"job {row['job_id']}, of nobody in this round, was run")
                continue
            job.claims.append(Claim(runs.claim(self, run), row, row["queue"] != "consumed"))
            for call in runs.settlings(run, stopped):
                job.settlings.append(Settling(call, row["attempt"], None))

    def _collect_settlings(self) -> None:
        for call in self.named(*SETTLING):
            id, attempt = call.arguments["claim"]
            self._settled(call, id, attempt, call.result)
        for call in self.named("ack_batch"):
            claims = call.arguments["claims"]
            for id, attempt in claims:
                # A count tells who was accepted only when it is all or none.
                self._settled(call, id, attempt, {len(claims): True, 0: False}.get(call.result))
        for call in self.named("cancel"):
            self._settled(call, call.arguments["id"], None, call.result)
        for call in self.named("book"):
            id, attempt = call.arguments["claim"]
            job = self.by_id[id]
            accepted = (job.token, attempt) in self.booked
            job.settlings.append(Settling(replace(call, name="ack"), attempt, accepted))

    def _settled(self, call: Call, id: int, attempt: int | None, accepted: bool | None) -> None:
        if id in self.by_id:
            if accepted is not False and not call.happened:
                accepted = call.happened
            self.by_id[id].settlings.append(Settling(call, attempt, accepted))
