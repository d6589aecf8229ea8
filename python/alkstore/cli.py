"""The command line."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
from collections.abc import Sequence

from . import __version__
from ._sql import ENGINES, SCHEMA_VERSION, installer
from ._target import install, is_sqlite, open, place
from .errors import AlkstoreError, InvalidOption, LeadershipLost, NotInstalled
from .stop import StopToken


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return the exit status: 0, 1 when it failed, 2 for wrong usage.

    130 after ctrl-C.
    """
    options = _parser().parse_args(arguments)
    try:
        text = options.run(options)
    except AlkstoreError as error:
        print(f"alkstore: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    try:
        if text is not None:
            print(text, flush=True)
    except OSError as error:
        # Python would flush once more at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):  # the reader has seen enough, as `head` does
            print(f"alkstore: cannot write: {error.strerror}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="alkstore", description="A durable job queue in PostgreSQL or SQLite."
    )
    parser.add_argument("--version", action="version", version=f"alkstore {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    sql = commands.add_parser("sql", help="print the SQL that installs alkstore")
    sql.add_argument("engine", choices=ENGINES)
    sql.set_defaults(run=_sql)

    command = commands.add_parser("install", help="install alkstore into a database")
    _add_target(command)
    command.set_defaults(run=_install)

    command = commands.add_parser(
        "run-schedules", help="fire schedules at their boundaries until SIGTERM or SIGINT"
    )
    _add_target(command)
    command.add_argument(
        "--ttl",
        type=int,
        default=30,
        metavar="SECONDS",
        help="how soon another runner takes over from one that crashed (default: 30)",
    )
    command.set_defaults(run=_run_schedules)
    return parser


def _add_target(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "target",
        nargs="?",
        default=os.environ.get("ALKSTORE_URL") or None,
        help="a file path, sqlite:///PATH or postgresql://URL (default: $ALKSTORE_URL)",
    )
    command.add_argument(
        "--schema", default="alkstore", help="the PostgreSQL schema of alkstore (default: alkstore)"
    )


def _target(options: argparse.Namespace) -> str:
    if options.target is None:
        raise InvalidOption("name a database, or set ALKSTORE_URL")
    return str(options.target)


def _sql(options: argparse.Namespace) -> str:
    return installer(options.engine).rstrip("\n")


def _install(options: argparse.Namespace) -> str:
    target = _target(options)
    where = place(target, options.schema)
    if where == ":memory:":
        raise InvalidOption("name a file: a database in memory would be gone at once")
    where = where.encode(errors="backslashreplace").decode()  # a file's name need not be text
    if install(target, schema=options.schema):
        return f"installed alkstore {SCHEMA_VERSION} into {where}"
    return f"alkstore {SCHEMA_VERSION} is already installed in {where}"


def _run_schedules(options: argparse.Namespace) -> None:
    target = _target(options)
    where = place(target, options.schema)
    if is_sqlite(target) and not os.path.exists(where):
        raise NotInstalled(f"there is no file {where}: a new one would have no schedules to fire")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    stop = StopToken.on_signals()
    with open(target, schema=options.schema) as store:
        while not stop.is_set():
            try:
                store.run_schedules(stop, ttl_s=options.ttl)
            except LeadershipLost as error:
                logging.warning("schedules: %s", error)
