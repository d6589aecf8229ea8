"""What the commands share: how they are declared, and how they come to their database."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from textwrap import fill
from typing import TypeAlias

from ._input import OUTBOX_PREFIX, name
from ._target import is_sqlite, open
from ._views import Views, check_installed, reading
from .errors import AlkstoreError, InvalidName, InvalidOption, InvalidPayload
from .outbox import Outbox
from .queue import Queue
from .store import Store

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

# What a command does: it gives the texts to print, each with its lines, or raises.
Run: TypeAlias = Callable[[argparse.Namespace], Iterable[str]]

DEFAULT_SCHEMA = "alkstore"


class NoSuchJob(AlkstoreError):
    """The command names a job that is not there; it has an exit status of its own."""


def add_command(
    commands: Commands,
    name: str,
    run: Run,
    does: str,
    examples: Sequence[str],
    grant: str | None = None,
) -> argparse.ArgumentParser:
    """Declare a command. Its arguments, and how to name its database, are still to be added.

    grant: what lets a role of PostgreSQL do it, `operator` for alkstore.grant_operator.
    """
    needs = "" if grant is None else f" A PostgreSQL role needs alkstore.grant_{grant}."
    command = commands.add_parser(
        name,
        help=does,
        description=fill(f"{does[0].upper()}{does[1:]}.{needs}", 79),
        epilog="\n  ".join(["examples:", *examples]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.set_defaults(run=run, grant=grant)
    return command


def add_url(command: argparse.ArgumentParser) -> None:
    """To a command and to what stands before it; neither may set what the other was given."""
    command.add_argument(
        "--url",
        default=argparse.SUPPRESS,
        metavar="TARGET",
        help="a file path, sqlite:///PATH or postgresql://URL (default: $ALKSTORE_URL)",
    )
    command.add_argument(
        "--schema",
        default=argparse.SUPPRESS,
        help=f"the PostgreSQL schema of alkstore (default: {DEFAULT_SCHEMA})",
    )


def add_target(command: argparse.ArgumentParser) -> None:
    """For a command that takes nothing else: the target without --url as well."""
    command.add_argument("target", nargs="?", metavar="TARGET", help="the same as --url TARGET")
    add_url(command)


def add_json(command: argparse.ArgumentParser, what: str) -> None:
    command.add_argument("--json", action="store_true", help=f"for machines: {what}")


def add_queue(command: argparse.ArgumentParser) -> None:
    command.add_argument("queue", metavar="QUEUE", help="the name of the queue")
    command.add_argument("--outbox", action="store_true", help="QUEUE is the name of an outbox")


def add_job(command: argparse.ArgumentParser) -> None:
    add_queue(command)
    command.add_argument("job_id", metavar="ID", type=int, help="the job_id of the job")


def target(options: argparse.Namespace) -> str:
    """The database that the command line names, or the environment."""
    positional: str | None = getattr(options, "target", None)
    if positional is not None and options.url is not None:
        raise InvalidOption("name one database: TARGET, or --url TARGET")
    named = positional if options.url is None else options.url
    found: str | None = os.environ.get("ALKSTORE_URL") or None if named is None else named
    if found is None:
        raise InvalidOption("name a database by --url TARGET, or set ALKSTORE_URL")
    if is_sqlite(found) and options.schema != DEFAULT_SCHEMA:
        raise InvalidOption("--schema is for PostgreSQL: an SQLite file has no schemas")
    return found


def opened(options: argparse.Namespace) -> Store:
    """The store, which must be there: a wrong path must not become a new file."""
    where = target(options)
    check_installed(where, options.schema)
    return open(where, schema=options.schema)


def views(options: argparse.Namespace) -> AbstractContextManager[Views]:
    return reading(target(options), options.schema)


def jobs_of(store: Store, options: argparse.Namespace) -> Queue | Outbox:
    """The queue to act on, or the outbox."""
    queue_name(options)
    return store.outbox(options.queue) if options.outbox else store.queue(options.queue)


def queue_name(options: argparse.Namespace) -> str:
    """The name that the database has for it; any name that text can be."""
    given = name(kind(options), options.queue)
    if options.outbox:
        return OUTBOX_PREFIX + given
    if given.startswith(OUTBOX_PREFIX):
        own = given.removeprefix(OUTBOX_PREFIX)
        raise InvalidName(f"invalid_name: of an outbox give its own name: {own} --outbox")
    return given


def what(options: argparse.Namespace) -> str:
    """How to call it in a sentence."""
    return f"{kind(options)} {options.queue}"


def kind(options: argparse.Namespace) -> str:
    return "outbox" if options.outbox else "queue"


def stdin() -> str:
    """What comes in, without the newline that ends a text file."""
    read = sys.stdin.buffer.read()
    try:
        return read.decode().removesuffix("\n")
    except UnicodeDecodeError as error:
        number = read.count(b"\n", 0, error.start) + 1
        raise InvalidPayload(f"line {number}: invalid_payload: not UTF-8 text") from error
