"""The commands `sqlite-utils alkstore …`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import click
import sqlite_utils
from sqlite_utils.cli import output_options, query

from . import open as open_store
from ._cli_common import stdin
from ._input import RawJson
from ._sql import SCHEMA_VERSION
from ._target import install as install_schema
from .errors import AlkstoreError


class _Group(click.Group):
    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except AlkstoreError as error:
            raise click.ClickException(str(error)) from error


@click.group(cls=_Group)
def alkstore() -> None:
    """A durable job queue in the database"""


Command = TypeVar("Command", bound=Callable[..., Any])


def _output(command: Command) -> Command:
    """Give a command the choice of formats that sqlite-utils has for rows."""
    return cast(Command, output_options(command))


_database = click.argument("path", type=click.Path(dir_okay=False))
_existing = click.argument("path", type=click.Path(exists=True, dir_okay=False))


@alkstore.command()
@_database
def install(path: str) -> None:
    """Install the schema; harmless when it is there"""
    done = "installed" if install_schema(path) else "already installed:"
    click.echo(f"{done} alkstore {SCHEMA_VERSION}")


@alkstore.command()
@_existing
@click.argument("queue")
@click.argument("payload")
@click.option("--delay-s", type=int, help="Seconds before the job may be claimed")
@click.option("--priority", type=int, help="Higher is claimed first; default 0")
@click.option("--expires-s", type=int, help="Seconds after which it is not handed out any more")
@click.option("--max-attempts", type=int, help="Claims before the job is dead; default 3")
def enqueue(path: str, queue: str, payload: str, **options: Any) -> None:
    """Add a job and print its id; PAYLOAD is JSON, or - for stdin"""
    text = stdin() if payload == "-" else payload
    with open_store(path) as store:
        click.echo(store.queue(queue).enqueue(RawJson(text), **options))


@alkstore.command()
@_existing
@_output
def stats(path: str, **output: Any) -> None:
    """Jobs per queue: ready, delayed, processing, lapsed, expired, dead"""
    _show(path, "alkstore_queue_stats", None, output)


@alkstore.command()
@_existing
@click.argument("queue", required=False)
@_output
def jobs(path: str, queue: str | None, **output: Any) -> None:
    """Every job, live and dead, of one queue or of all"""
    _show(path, "alkstore_jobs", queue, output)


@alkstore.command()
@_existing
@click.argument("queue", required=False)
@_output
def dead(path: str, queue: str | None, **output: Any) -> None:
    """Dead jobs, with the error that ended them, of one queue or of all"""
    _show(path, "alkstore_dead_jobs", queue, output)


def _show(path: str, view: str, queue: str | None, output: dict[str, Any]) -> None:
    if "alkstore_version" not in sqlite_utils.Database(path).view_names():
        raise click.ClickException(f"no alkstore in {path}: sqlite-utils alkstore install {path}")
    sql = f"SELECT * FROM {view} WHERE :queue IS NULL OR queue = :queue"
    click.get_current_context().invoke(
        query, path=path, sql=sql, param=[("queue", queue)], **output
    )
