"""The command line."""

from __future__ import annotations

import argparse
import io
import os
import re
import signal
import sqlite3
import sys
from collections.abc import Sequence
from typing import NoReturn

from . import __version__, _cli_change, _cli_look, _cli_setup, _cli_stats, _cli_work
from ._cli_common import DEFAULT_SCHEMA, NoSuchJob, add_url
from ._cli_text import printable
from .errors import AlkstoreError

_GROUPS = (_cli_setup, _cli_work, _cli_stats, _cli_look, _cli_change)

_DENIED = "42501"  # what PostgreSQL says to a role that lacks a right

_STATUSES = """\
alkstore COMMAND --help shows what a command takes, with examples.

exit status:
  0    done; also when there is nothing to list
  1    failed: the database cannot be used, or refused what was asked
  2    wrong usage
  3    no such job (get, cancel)
  130  ctrl-C; work and run-schedules come to an orderly end at it, and give 0"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return the exit status.

    0: done. 1: it failed. 2: wrong usage. 3: there is no such job. 130: ctrl-C.
    """
    _replace_closed_streams()
    options = parser().parse_args(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # no name may stop a list of them
    try:
        for text in options.run(options):
            print(text)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except OSError as error:
        # Python would flush once more at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):  # the reader has seen enough, as `head` does
            print(f"alkstore: cannot write: {error.strerror}", file=sys.stderr)
        return 1
    except Exception as error:
        if not isinstance(error, _failures()):
            raise
        ours = isinstance(error, AlkstoreError)  # and so a line, in which a name may hold a break
        says = str(error) if ours else " ".join(str(error).split())
        if options.grant and getattr(error.__cause__ or error, "sqlstate", None) == _DENIED:
            says += f"; alkstore.grant_{options.grant} allows it"
        print(f"alkstore: {printable(says)}", file=sys.stderr)
        return 3 if isinstance(error, NoSuchJob) else 1
    return 0


def _replace_closed_streams() -> None:
    """By the null device, for us and for what we start; a closed stream is None in Python."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            number = os.open(os.devnull, os.O_RDWR)  # the least that is free: the one closed
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, mode, closefd=False))


def parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="alkstore",
        description="A durable job queue in PostgreSQL or SQLite.",
        epilog=_STATUSES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"alkstore {__version__}")
    add_url(parser)
    parser.set_defaults(url=None, schema=DEFAULT_SCHEMA)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for group in _GROUPS:
        group.add(commands)
    return parser


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Without a URL that stands in a wrong place: it may hold a password."""
        super().error(re.sub("://.*", "://…", message, flags=re.DOTALL))


def _failures() -> tuple[type[Exception], ...]:
    """The package's errors, and what it lets pass of the drivers, such as a missing privilege."""
    psycopg = sys.modules.get("psycopg")  # which need not be installed
    return (AlkstoreError, sqlite3.Error, *([psycopg.Error] if psycopg else []))
