"""Whether claims took the first of what they could see.

Within one claim's answer that is plain. Across claims it is told only of one that ran alone on its
queue, and of jobs that lay there untouched, ready and visible, from before the second of that claim
until after its end. PostgreSQL may go on, for the rest of a second, from where the same session's
claim has ended; so those of the second must have run alone too, or they passed over what was held.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from tests.model.faces import CLAIM_COLUMNS
from tests.torture.database import HANDLED
from tests.torture.history import Claim, Clock, History, Job, Row, Settling
from tests.torture.journal import Call

GRACE_S = 5  # that a server may take to notice that a client is gone

Rank = tuple[float, int, int]


@dataclass
class Idle:
    """A time for which a job certainly lay there."""

    job: Job
    start: float
    end: float
    ready_from: float
    rank: Rank


def rank(row: Row) -> Rank:
    return -row["priority"], row["run_at"], row["job_id"]


def rows(claim: Call) -> list[Row]:
    return [dict(zip(CLAIM_COLUMNS, row, strict=True)) for row in claim.result or ()]


def findings(history: History, figures: Counter[str]) -> Iterator[str]:
    for call in history.named("claim"):
        ranks = [rank(row) for row in rows(call)]
        if ranks != sorted(ranks):
            yield f"a claim by {call.actor} has its jobs out of order: {ranks}"
    for queue in {job.queue for job in history.jobs.values()} - set(HANDLED):
        spells = sorted(
            (
                spell
                for job in history.jobs.values()
                if job.queue == queue
                for spell in idle(history, job)
            ),
            key=lambda spell: spell.start,
        )
        lying: list[Idle] = []
        for call in alone(history, queue):
            while spells and spells[0].start < call.start:
                lying.append(spells.pop(0))
            lying = [spell for spell in lying if spell.end > call.start]
            yield from passed_over(history.clock, call, lying, figures)


def passed_over(
    clock: Clock, call: Call, lying: list[Idle], figures: Counter[str]
) -> Iterator[str]:
    taken = rows(call)
    now = taken[0]["claimed_at"] if taken else clock.least(call.start)
    # No row: anything that was ready comes before that.
    last = max((rank(row) for row in taken), default=(math.inf, 0, 0))
    for spell in lying:
        if spell.end > call.done and spell.ready_from < now and clock.most(spell.start) < now:
            figures["pairs in order"] += 1
            if spell.rank < last:
                yield (
                    f"a claim by {call.actor} at {call.start} passed over {spell.job}, "
                    f"ready since {spell.ready_from}, now {now}"
                )


def alone(history: History, queue: str) -> Iterator[Call]:
    """The claims during which nothing else happened in the queue."""
    windows: list[tuple[float, float, Call]] = []
    for call in history.named("claim", "sweep_expired"):
        if call.arguments["queue"] == queue:
            # Whoever was killed may have gone on for a while.
            end = call.start + GRACE_S if call.end == math.inf else call.end
            windows.append((call.start, end, call))
    windows += [(hold.start, hold.done + GRACE_S, hold) for hold in history.named("hold")]
    windows.sort(key=lambda window: window[0])
    latest = -math.inf
    starts = [*(start for start, *_ in windows), math.inf]
    doubtful: set[tuple[str, int]] = set()  # whose claims, and in which second
    for (start, end, call), follows in zip(windows, starts[1:], strict=True):
        if call.name == "claim" and call.result is not None:
            # One without a row has looked everywhere, and leaves nothing to go on from.
            seconds = {(call.actor, row["claimed_at"]) for row in rows(call)}
            if latest >= start or end >= follows:
                doubtful |= seconds
            elif not seconds & doubtful:
                yield call
        latest = max(latest, end)


def idle(history: History, job: Job) -> Iterator[Idle]:
    if not job.enqueue.happened or job.options["expires_s"] is not None:
        return  # a sweep may take what expires at any time
    touches: list[Claim | Settling] = [*job.claims, *job.settlings]
    ready_from = _enqueued_for(history.clock, job)
    start, attempt = job.enqueue.end, 0
    for touch in sorted(touches, key=lambda touch: touch.call.start):
        call = touch.call
        after = _next_claim(job, start)
        # With an attempt left out, somebody of whom nothing is known had it in between.
        if ready_from is not None and after and after["attempt"] == attempt + 1:
            yield Idle(job, start, call.start, ready_from, rank(after))
        # Of two touches at the same time nobody knows which was the last.
        ready_from = None if call.start < start else _ready_after(history.clock, job, touch)
        start = max(start, call.end)
        if isinstance(touch, Claim) and call.happened:
            attempt = touch.attempt
    # At the end all are drained: after the last touch there is none that waits.


def _next_claim(job: Job, instant: float) -> Row | None:
    """Its row tells the run_at that the job had before."""
    later = [claim for claim in job.claims if claim.call.start > instant]
    return min(later, key=lambda claim: claim.call.start).row if later else None


def _enqueued_for(clock: Clock, job: Job) -> float | None:
    """The least now at which it was ready for certain."""
    delay_s, run_at = job.options["delay_s"], job.options["run_at"]
    if delay_s is None and run_at is not None:
        return float(run_at)
    return clock.most(job.enqueue.done) + (delay_s or 0)


def _ready_after(clock: Clock, job: Job, touch: Claim | Settling) -> float | None:
    """The same after a touch; None where it is not certain."""
    if isinstance(touch, Claim):
        # Of the last attempt: the next claim may bury it.
        last = touch.attempt >= job.max_attempts
        return None if last or not touch.call.happened else float(touch.row["claim_expires_at"])
    if touch.accepted and touch.name == "release":
        return clock.most(touch.call.done)
    if touch.accepted and touch.name == "retry" and touch.call.arguments["more"][1] is not None:
        return clock.most(touch.call.done) + float(touch.call.arguments["more"][1])
    return None
