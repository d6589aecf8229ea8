"""The commands jobs, dead and get."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from shutil import get_terminal_size
from tempfile import SpooledTemporaryFile

from ._cli_common import (
    Commands,
    NoSuchJob,
    add_command,
    add_job,
    add_json,
    add_queue,
    add_url,
    queue_name,
    views,
    what,
)
from ._cli_text import Column, cut, distance, json_line, legible, printable, table, utc
from ._input import integer
from ._views import Row, Views

_LIMIT = 20  # with a title above, and a note below, on a terminal of 24 lines
_BLOCK = 1000  # rows of which the widths of a table are taken
_MORE = "there are more: --limit N, or --all"

_JOBS = (
    *(Column("ID", right=True), Column("STATE"), Column("WHEN"), Column("ATTEMPTS", right=True)),
    *(
        Column("PRIORITY", right=True),
        Column("WORKER/ERROR", cut=cut),
        Column("PAYLOAD", cut=cut),
    ),
)
_DEAD = (
    *(Column("ID", right=True), Column("DIED"), Column("ATTEMPTS", right=True)),
    *(Column("ERROR", cut=cut), Column("PAYLOAD", cut=cut)),
)


def add(commands: Commands) -> None:
    command = add_command(
        commands,
        "jobs",
        _jobs,
        "list the live jobs of a queue in the order of claims: first those ready now, then those "
        "that become due, by when",
        ["alkstore jobs emails", "alkstore jobs emails --all --json | jq 'select(.attempts > 1)'"],
        grant="operator",
    )
    _add_list(command)

    command = add_command(
        commands,
        "dead",
        _dead,
        "list the dead jobs of a queue, newest first, with the error that ended each",
        ["alkstore dead emails", "alkstore dead emails --limit 5 --json | jq -r .last_error"],
        grant="operator",
    )
    _add_list(command)

    command = add_command(
        commands,
        "get",
        _get,
        "show all of one job, live or dead",
        ["alkstore get emails 7", "alkstore get emails 7 --json | jq -r .payload"],
        grant="operator",
    )
    add_job(command)
    add_json(command, "one object")
    add_url(command)


def _add_list(command: argparse.ArgumentParser) -> None:
    add_queue(command)
    count = command.add_mutually_exclusive_group()
    count.add_argument(
        "--limit",
        type=_count,
        default=_LIMIT,
        metavar="N",
        help=f"the first N at most (default: {_LIMIT})",
    )
    count.add_argument("--all", action="store_true", help="every one")
    add_json(command, "an object a line for each job")
    add_url(command)


def _count(text: str) -> int:
    if text.isdecimal() and 0 < int(text) < 2**31:
        return int(text)
    raise argparse.ArgumentTypeError(f"not a number of jobs: {text!r}")


def _jobs(options: argparse.Namespace) -> Iterable[str]:
    return _list(options, Views.live, _JOBS, _live_cells, "live")


def _dead(options: argparse.Namespace) -> Iterable[str]:
    return _list(options, Views.dead, _DEAD, _dead_cells, "dead")


def _list(
    options: argparse.Namespace,
    read: Callable[..., Generator[Row, None, None]],
    columns: Sequence[Column],
    cells: Callable[[Row], list[str]],
    kind: str,
) -> Iterator[str]:
    queue = queue_name(options)
    limit = None if options.all else options.limit
    with SpooledTemporaryFile(1 << 20, "w+", encoding="utf-8") as spool:
        # Read to the end before anything is printed. A pager may stay open for hours, and a
        # statement as long: it would keep PostgreSQL from vacuuming, and SQLite's WAL growing.
        count = None if limit is None else limit + 1
        with (
            views(options) as view,
            closing(read(view, queue, count, whole=options.json)) as rows,
        ):
            shown = islice(rows, limit)
            for text in (
                (json_line(_public(row)) for row in shown)
                if options.json
                else _tables(shown, columns, cells)
            ):
                spool.write(f"{text}\n")
            more = next(rows, None) is not None
        empty = spool.tell() == 0
        spool.seek(0)
        yield from (line.removesuffix("\n") for line in spool)
    if options.json:
        if more:
            print(f"alkstore: {_MORE}", file=sys.stderr)
    elif empty:
        yield f"no {kind} jobs in {printable(what(options))}"
    elif more:
        yield f"\n{_MORE}"


def _tables(
    rows: Iterator[Row], columns: Sequence[Column], cells: Callable[[Row], list[str]]
) -> Iterator[str]:
    width = get_terminal_size().columns
    gap = ""
    while block := [cells(row) for row in islice(rows, _BLOCK)]:
        yield gap + table(columns, block, width)
        gap = "\n"


def _live_cells(job: Row) -> list[str]:
    held = job["state"] == "processing"
    when = "claim_expires_at" if held else "run_at"
    return [
        str(job["job_id"]),
        job["condition"],
        distance(job["expires_at" if job["condition"] == "expired" else when], job["now"]),
        _attempts(job),
        str(job["priority"]),
        (job["worker_id"] if held else job["retry_error"]) or "",
        legible(job["payload"]),
    ]


def _dead_cells(job: Row) -> list[str]:
    died = distance(job["died_at"], job["now"])
    payload = legible(job["payload"])
    return [str(job["job_id"]), died, _attempts(job), job["last_error"], payload]


def _attempts(job: Row) -> str:
    """As they are compared: without those that were handed back."""
    return f"{job['attempts'] - job['released']}/{job['max_attempts']}"


def _public(job: Row) -> Row:
    return {name: value for name, value in job.items() if name != "now"}


def _get(options: argparse.Namespace) -> Iterable[str]:
    queue = queue_name(options)
    with views(options) as view:
        job = view.job(queue, integer("job_id", options.job_id))
    if job is None:
        raise NoSuchJob(f"no job {options.job_id} in {what(options)}")
    return [json_line(_public(job)) if options.json else "\n".join(_page(job))]


def _page(job: Row) -> Iterator[str]:
    """All that there is about a job, under the names of the columns."""
    facts = _public(job)
    texts = {name: facts.pop(name) for name in ("retry_error", "last_error", "payload")}
    condition = facts.pop("condition")
    if condition != facts["state"]:
        facts["state"] += f", {condition}"
    released = facts.pop("released")
    facts["attempts"] = f"{facts['attempts'] - released} of {facts.pop('max_attempts')}"
    if released:
        facts["attempts"] += f", and {released} released"
    shown = {name: value for name, value in facts.items() if value is not None}
    width = max(map(len, shown))
    for name, value in shown.items():
        if name.endswith("_at"):
            value = f"{utc(value)}, {distance(value, job['now'])}"
        yield f"{name:<{width}}  {printable(str(value))}"
    for name, text in texts.items():
        if text is not None:
            yield f"\n{name}"
            yield from map(printable, text.split("\n"))
