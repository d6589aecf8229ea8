"""The commands enqueue, cancel and sweep."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ._cli_common import (
    Commands,
    NoSuchJob,
    add_command,
    add_job,
    add_json,
    add_queue,
    add_url,
    jobs_of,
    opened,
    queue_name,
    stdin,
    what,
)
from ._cli_text import json_line, printable
from ._input import RawJson
from .errors import InvalidPayload
from .outbox import Outbox
from .queue import Queue
from .store import Store

_OPTIONS = ("delay_s", "priority", "expires_s", "max_attempts")


def add(commands: Commands) -> None:
    command = add_command(
        commands,
        "enqueue",
        _enqueue,
        "add a job and print its id",
        [
            """alkstore enqueue emails '{"to": 7}' --delay-s 60""",
            "alkstore enqueue emails - < payload.json",
            "alkstore enqueue emails - --lines < payloads.jsonl",
        ],
        grant="producer",
    )
    add_queue(command)
    command.add_argument("payload", metavar="JSON", help="JSON text, or - to read it from stdin")
    command.add_argument(
        "--lines",
        action="store_true",
        help="a job for each line that is not empty; all are added, or none",
    )
    for option, unit, means in (
        ("--delay-s", "SECONDS", "time until the job may be claimed (default: 0)"),
        ("--priority", "N", "higher is claimed first, also negative (default: 0)"),
        ("--expires-s", "SECONDS", "time after which it is not handed out (default: never)"),
        ("--max-attempts", "N", "how many claims before the job is dead (default: 3)"),
    ):
        command.add_argument(option, type=int, metavar=unit, help=means)
    add_json(command, "an object a line for each job")
    add_url(command)

    command = add_command(
        commands,
        "cancel",
        _cancel,
        "delete a live job, also one that is being processed",
        ["alkstore cancel emails 7"],
        grant="operator",
    )
    add_job(command)
    add_json(command, "one object")
    add_url(command)

    command = add_command(
        commands,
        "sweep",
        _sweep,
        "bury the jobs of a queue that have expired, and delete dead ones past their retention",
        ["alkstore sweep emails"],
        grant="worker",
    )
    add_queue(command)
    add_json(command, "one object")
    add_url(command)


def _enqueue(options: argparse.Namespace) -> Iterable[str]:
    text = stdin() if options.payload == "-" else options.payload
    stamps = {option: getattr(options, option) for option in _OPTIONS}
    with opened(options) as store:
        jobs = jobs_of(store, options)
        if options.lines:
            ids = _enqueue_lines(store, jobs, text.split("\n"), stamps)
        else:
            ids = [jobs.enqueue(RawJson(text), **stamps)]
    if options.json:
        return [json_line({"queue": queue_name(options), "job_id": job_id}) for job_id in ids]
    return map(str, ids)


def _enqueue_lines(
    store: Store, jobs: Queue | Outbox, lines: Sequence[str], stamps: Mapping[str, Any]
) -> list[int]:
    """One by one, so that the line which is refused can be named."""
    ids = []
    with store.transaction() as tx:
        for number, line in enumerate(lines, 1):
            if line.strip():
                try:
                    ids.append(jobs.enqueue(RawJson(line), **stamps, tx=tx))
                except InvalidPayload as error:
                    raise InvalidPayload(f"line {number}: {error}") from error
    return ids


def _cancel(options: argparse.Namespace) -> Iterable[str]:
    with opened(options) as store:
        done = jobs_of(store, options).cancel(options.job_id)
    if not done:
        raise NoSuchJob(f"no live job {options.job_id} in {what(options)}")
    if options.json:
        return [json_line({"queue": queue_name(options), "job_id": options.job_id})]
    return [f"cancelled job {options.job_id} of {printable(what(options))}"]


def _sweep(options: argparse.Namespace) -> Iterable[str]:
    with opened(options) as store:
        expired, pruned = jobs_of(store, options).sweep_expired()
    if options.json:
        swept = {"queue": queue_name(options), "expired": expired, "pruned": pruned}
        return [json_line(swept)]
    return [f"expired jobs buried: {expired}; dead jobs past their retention deleted: {pruned}"]
