"""Login roles on PostgreSQL."""

from __future__ import annotations

import itertools
import os
from urllib.parse import quote, urlsplit

import psycopg
from psycopg import sql

KINDS = ("producer", "worker", "scheduler", "operator")
PASSWORD = "secret"

_numbers = itertools.count(1)


class Roles:
    """Login roles of one test; roles belong to the whole server, so their names are new."""

    def __init__(self, pg_url: str) -> None:
        self.pg_url = pg_url
        self.owner = psycopg.connect(pg_url, autocommit=True)
        self._made: list[str] = []

    def create(self, kind: str = "stranger") -> str:
        """A role with the grants of a kind, or with none; the URL to log in as it."""
        name = f"alkstore {kind} {os.getpid()} {next(_numbers)}"
        create = sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}")
        self.owner.execute(create.format(sql.Identifier(name), PASSWORD))
        self._made.append(name)
        if kind in KINDS:
            self.owner.execute(f"SELECT alkstore.grant_{kind}(%s)", (name,))
        host = urlsplit(self.pg_url).netloc.rpartition("@")[2]
        return urlsplit(self.pg_url)._replace(netloc=f"{quote(name)}:{PASSWORD}@{host}").geturl()

    def close(self) -> None:
        for name in map(sql.Identifier, self._made):
            self.owner.execute(sql.SQL("DROP OWNED BY {} CASCADE").format(name))
            self.owner.execute(sql.SQL("DROP ROLE {}").format(name))
        self.owner.close()
