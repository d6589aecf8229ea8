"""What the journals tell of jobs that were run through the package, in the terms of the audit.

A Worker claims and settles by itself. So a run of a handler tells of a claim made before it, and
of a settling that may have come after it, accepted or not.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tests.torture.handlers import CRASHED
from tests.torture.journal import Call

if TYPE_CHECKING:
    from tests.torture.history import History

PATIENCE_S = 60  # that a process may need at SIGTERM on a busy machine: it drains for much less


def claim(history: History, run: Call) -> Call:
    """The claim of which the run tells."""
    arguments = {"queue": run.arguments["row"]["queue"], "worker": run.arguments["worker"]}
    began = history.calls[0].start
    return replace(
        run, name="claim", arguments=arguments, start=began, done=run.start, end=run.start,
        result=None, happened=True,
    )  # fmt: skip


def settlings(run: Call, stopped: dict[str, float]) -> Iterator[Call]:
    """What the worker may have sent when the run had ended, or when it was told to stop."""
    name, *more = run.result or ["held"]
    unknown = replace(run, done=math.inf, end=math.inf, result=None, happened=None)
    if name != "held":
        yield replace(unknown, name=name, arguments={"more": more})
    if stopped.get(run.actor, math.inf) < run.done:
        yield replace(unknown, name="release", arguments={"more": []})


def stopped(history: History) -> dict[str, float]:
    """When each process was told to stop."""
    return {call.arguments["who"]: call.start for call in history.named("terminate")}


def findings(history: History, final: dict[str, Any]) -> Iterator[str]:
    for call in history.named("terminate"):
        who, status = call.arguments["who"], call.result
        if status is None:
            yield f"{who} did not end within {PATIENCE_S} s of SIGTERM"
        elif status not in (0, CRASHED):
            yield f"{who} ended with {status} at SIGTERM"
    for call in history.named("ended"):
        # Before it is at work, the database may be away.
        if call.result != (CRASHED if call.arguments["at_work"] else 1):
            yield f"{call.arguments['who']} ended by itself, with {call.result}"
    for call in history.named("wait_for_workers"):
        for queue, jobs in (call.result or {}).items():
            yield f"{jobs} ready jobs of queue {queue} were left by all workers"
    for token, times in Counter(token for token, _ in final["booked"]).items():
        if times > 1:
            yield f"job ({token}) was booked {times} times"
    yield from final["panics"]
