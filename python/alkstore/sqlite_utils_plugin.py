"""For sqlite-utils: the commands `sqlite-utils alkstore …`, and the schema as a migration set."""

from __future__ import annotations

import click
import sqlite_utils
from sqlite_utils.migrations import Migrations

from ._sql import SCHEMA_VERSION, installer

#: `migrations.apply(db)` installs the schema, once; also `sqlite-utils migrate app.db FILE`
#: with a FILE that imports it.
migrations = Migrations("alkstore")


# The installer brings a transaction of its own.
@migrations(name=SCHEMA_VERSION, transactional=False)
def install_in(db: sqlite_utils.Database) -> None:
    db.conn.executescript(installer("sqlite"))


@sqlite_utils.hookimpl
def register_commands(cli: click.Group) -> None:
    # Not sooner: it imports sqlite_utils.cli, which loads the plugins, and any program that opens
    # a sqlite_utils.Database loads them too.
    from ._sqlite_utils_commands import alkstore

    cli.add_command(alkstore)
