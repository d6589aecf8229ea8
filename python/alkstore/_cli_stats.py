"""The command stats."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator
from shutil import get_terminal_size
from textwrap import wrap

from ._cli_common import Commands, add_command, add_json, add_url, views
from ._cli_text import Column, cut, cut_inside, distance, iso, printable, table, utc
from ._input import addressed
from ._views import COUNTS, Row
from .errors import Busy, Unavailable

_COUNTS = tuple(
    Column(title, right=True) for title in ("READY", "OLDEST", *map(str.upper, COUNTS[1:]))
)
_MEANS = {
    "ready": "waits a minute or more, and none is processing: is a worker running?",
    "lapsed": "a worker died or hung; the next claim takes it: alkstore jobs QUEUE",
    "expired": "past its expires_at, and nobody sweeps: alkstore sweep QUEUE",
    "dead": "will not run again, and says why: alkstore dead QUEUE",
}
_WAITS_LONG_S = 60

_HOME, _END_OF_LINE, _BELOW = "\x1b[H", "\x1b[K", "\x1b[J"


def add(commands: Commands) -> None:
    command = add_command(
        commands,
        "stats",
        _stats,
        "count the jobs of each queue: ready, delayed, processing, lapsed, expired, dead",
        [
            "alkstore stats",
            "alkstore stats --watch 10",
            "alkstore stats --json | jq '.queues[] | select(.lapsed > 0)'",
        ],
        grant="operator",
    )
    command.add_argument(
        "--watch",
        type=_seconds,
        nargs="?",
        const=2.0,
        metavar="SECONDS",
        help="again each so many seconds (default: 2), until ctrl-C",
    )
    add_json(command, "an object, with --watch a line for each round")
    add_url(command)


def _seconds(text: str) -> float:
    try:
        if 0 < (seconds := float(text)) <= 86400:
            return seconds
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"not a number of seconds up to a day: {text!r}")


def _stats(options: argparse.Namespace) -> Iterable[str]:
    if options.watch is not None:
        return _watch(options)
    with views(options) as view:
        now, queues = view.stats()
    return [_as_json(now, queues) if options.json else "\n".join(_picture(now, queues))]


def _watch(options: argparse.Namespace) -> Iterator[str]:
    """Rounds until ctrl-C. Once one has been shown, the database may be away for a while."""
    redraws = sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb" and not options.json
    picture: list[str] | None = None
    while True:
        try:
            with views(options) as view:
                while True:
                    now, queues = view.stats()
                    title = f"{utc(now)}, every {options.watch:g} s"
                    picture = [title, "", *_picture(now, queues, fitted=redraws)]
                    if options.json:
                        yield _as_json(now, queues)
                    else:
                        yield _screen(picture) if redraws else "\n".join([*picture, ""])
                    _pause(options.watch)
        except (Busy, Unavailable) as error:
            if picture is None:
                raise
            trouble = printable(f"alkstore: trying again: {error}")
            if redraws:
                yield _screen(
                    [picture[0], *wrap(trouble, get_terminal_size().columns), *picture[2:]]
                )
            else:
                print(trouble, file=sys.stderr)
            _pause(options.watch)


def _pause(seconds: float) -> None:
    sys.stdout.flush()
    time.sleep(seconds)


def _screen(lines: list[str]) -> str:
    """Drawn over what is there, as far as the terminal reaches, without a flicker."""
    columns, rows = get_terminal_size()
    if len(lines) >= rows:
        lines = [*lines[: rows - 2], f"… and {len(lines) - rows + 2} more lines"]
    return _HOME + "".join(f"{cut(line, columns)}{_END_OF_LINE}\n" for line in lines) + _BELOW


def _as_json(now: int, queues: list[Row]) -> str:
    rows = [{**row, "oldest_ready_at": iso(row["oldest_ready_at"])} for row in queues]
    return json.dumps({"at": iso(now), "queues": rows})


def _picture(now: int, queues: list[Row], *, fitted: bool = False) -> Iterator[str]:
    """The table, a dash for nothing so that the rest stands out, and what to do about it.

    fitted: names are cut, so that a long one leaves the counts their place.
    """
    if not queues:
        yield "no jobs in any queue"
        return
    cells = []
    for row in queues:
        since = row["oldest_ready_at"]
        oldest = "-" if since is None else distance(since, now).removesuffix(" ago")
        ready, *others = (str(row[count] or "-") for count in COUNTS)
        cells.append([_as_given(row["queue"]), ready, oldest, *others])
    name = Column("QUEUE", cut=cut_inside if fitted else None)
    yield from table((name, *_COUNTS), cells, get_terminal_size().columns).split("\n")
    present = {count for count in _MEANS if any(row[count] for row in queues)}
    if not any(_waits_in_vain(row, now) for row in queues):
        present.discard("ready")
    if present:
        yield ""
        yield from (f"{count:<9}{means}" for count, means in _MEANS.items() if count in present)


def _as_given(queue: str) -> str:
    """What to give to the other commands."""
    kind, name = addressed(queue)
    return f"{name} --outbox" if kind == "outbox" else name


def _waits_in_vain(row: Row, now: int) -> bool:
    since = row["oldest_ready_at"]
    return since is not None and now - since >= _WAITS_LONG_S and not row["processing"]
