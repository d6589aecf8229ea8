"""The commands sql, install and run-schedules."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterable

from ._cli_common import Commands, add_command, add_target, opened, target
from ._cli_text import printable
from ._sql import ENGINES, SCHEMA_VERSION, installer
from ._target import install, place
from .errors import InvalidOption, LeadershipLost
from .stop import StopToken


def add(commands: Commands) -> None:
    command = add_command(
        commands,
        "sql",
        _sql,
        "print the SQL that installs alkstore",
        ["alkstore sql postgres | psql", "alkstore sql sqlite | sqlite3 app.db"],
    )
    command.add_argument("engine", choices=ENGINES)

    command = add_command(
        commands,
        "install",
        _install,
        "install alkstore into a database; harmless when it is there",
        ["alkstore install app.db", "alkstore install postgresql://localhost/app --schema jobs"],
    )
    add_target(command)

    command = add_command(
        commands,
        "run-schedules",
        _run_schedules,
        "fire schedules at their boundaries until SIGTERM or SIGINT",
        ["alkstore run-schedules app.db", "alkstore run-schedules --ttl-s 10"],
        grant="scheduler",
    )
    add_target(command)
    command.add_argument(
        "--ttl-s",
        type=int,
        default=30,
        metavar="SECONDS",
        help="how soon another runner takes over from one that crashed (default: 30)",
    )


def _sql(options: argparse.Namespace) -> Iterable[str]:
    return [installer(options.engine).rstrip("\n")]


def _install(options: argparse.Namespace) -> Iterable[str]:
    into = target(options)
    where = place(into, options.schema)
    if where == ":memory:":
        raise InvalidOption("name a file: a database in memory would be gone at once")
    if install(into, schema=options.schema):
        return [f"installed alkstore {SCHEMA_VERSION} into {printable(where)}"]
    return [f"alkstore {SCHEMA_VERSION} is already installed in {printable(where)}"]


def _run_schedules(options: argparse.Namespace) -> Iterable[str]:
    with opened(options) as store:
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
        stop = StopToken.on_signals()
        while not stop.is_set():
            try:
                store.run_schedules(stop, ttl_s=options.ttl_s)
            except LeadershipLost as error:
                logging.warning("schedules: %s", error)
    return []
