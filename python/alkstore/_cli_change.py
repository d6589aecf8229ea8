"""The commands enqueue, cancel and sweep."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable

from ._cli_common import (
    Commands,
    NoSuchJob,
    add_command,
    add_job,
    add_json,
    add_queue,
    add_url,
    opened,
)
from ._cli_text import json_line, printable
from ._input import RawJson
from .errors import InvalidPayload

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
    )
    add_queue(command)
    command.add_argument("payload", metavar="JSON", help="JSON text, or - to read it from stdin")
    command.add_argument(
        "--lines",
        action="store_true",
        help="a job for each line that is not empty; all are added, or none",
    )
    command.add_argument("--delay-s", type=int, help="seconds before the job may be claimed")
    command.add_argument("--priority", type=int, help="higher is claimed first; default 0")
    command.add_argument(
        "--expires-s", type=int, help="seconds after which it is not handed out any more"
    )
    command.add_argument(
        "--max-attempts", type=int, help="claims before the job is dead; default 3"
    )
    add_json(command, "an object a line for each job")
    add_url(command)

    command = add_command(
        commands,
        "cancel",
        _cancel,
        "delete a live job, also one that is being processed",
        ["alkstore cancel emails 7"],
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
    )
    add_queue(command)
    add_json(command, "one object")
    add_url(command)


def _enqueue(options: argparse.Namespace) -> Iterable[str]:
    text = _stdin() if options.payload == "-" else options.payload
    texts = [line for line in text.split("\n") if line.strip()] if options.lines else [text]
    with opened(options) as store:
        ids = store.queue(options.queue).enqueue_batch(
            map(RawJson, texts), **{option: getattr(options, option) for option in _OPTIONS}
        )
    if options.json:
        return [json_line({"queue": options.queue, "job_id": job_id}) for job_id in ids]
    return map(str, ids)


def _stdin() -> str:
    """What comes in, without the newline that ends a text file."""
    try:
        return sys.stdin.buffer.read().decode().removesuffix("\n")
    except UnicodeDecodeError as error:
        raise InvalidPayload("invalid_payload: what came in is not UTF-8 text") from error


def _cancel(options: argparse.Namespace) -> Iterable[str]:
    with opened(options) as store:
        done = store.queue(options.queue).cancel(options.job_id)
    if not done:
        raise NoSuchJob(f"no live job {options.job_id} in queue {options.queue}")
    if options.json:
        return [json_line({"queue": options.queue, "job_id": options.job_id})]
    return [f"cancelled job {options.job_id} of queue {printable(options.queue)}"]


def _sweep(options: argparse.Namespace) -> Iterable[str]:
    with opened(options) as store:
        expired, pruned = store.queue(options.queue).sweep_expired()
    if options.json:
        return [json_line({"queue": options.queue, "expired": expired, "pruned": pruned})]
    return [f"expired jobs buried: {expired}; dead jobs past their retention deleted: {pruned}"]
