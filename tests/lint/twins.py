"""sql/postgres and sql/sqlite have the same files, so that who changes one finds the other."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

# Files that one engine alone has, and why.
POSTGRES_ALONE = {
    "uninstall.sql": "in SQLite the objects are dropped by their prefix",
    "core/schema.sql": "SQLite has no schemas; its objects are told by their prefix",
    "core/options.sql": "a SQLite trigger calls no function: each call checks its own options",
    "core/wake.sql": "SQLite consumers watch PRAGMA data_version",
    "core/privileges.sql": "SQLite has no roles",
    "queue/get_job.sql": "in SQLite a SELECT from alkstore_jobs",
    **{
        f"outbox/outbox_{call}.sql": "in SQLite column outbox of the queue's call"
        for call in ("enqueue", "claim", "get_job", "cancel", "sweep_expired")
    },
}
SQLITE_ALONE: dict[str, str] = {}


def check(
    sql: Path,
    postgres_alone: Mapping[str, str] = POSTGRES_ALONE,
    sqlite_alone: Mapping[str, str] = SQLITE_ALONE,
) -> list[str]:
    """The complaints about a folder with both trees."""
    postgres, sqlite = (
        {file.relative_to(sql / engine).as_posix() for file in (sql / engine).rglob("*.sql")}
        for engine in ("postgres", "sqlite")
    )
    complaints = []
    for engine, alone, allowed in (
        ("postgres", postgres - sqlite, postgres_alone),
        ("sqlite", sqlite - postgres, sqlite_alone),
    ):
        complaints += [f"{engine}/{name} has no twin" for name in sorted(alone - allowed.keys())]
        complaints += [
            f"{engine}/{name} is listed as having no twin, but is not there or has one"
            for name in sorted(allowed.keys() - alone)
        ]
    return complaints
