"""An application with a table of its own beside the jobs, in one SQLite file."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

ENQUEUE = "INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', {}) RETURNING job_id"


class Abandon(Exception):
    pass


def connect(path: Path, **options: Any) -> sqlite3.Connection:
    return sqlite3.connect(path, **{"isolation_level": None, "timeout": 0, **options})


def rows(connection: sqlite3.Connection, sql: str) -> list[tuple[Any, ...]]:
    return connection.execute(sql).fetchall()


def queued(path: Path, queue: str = "q") -> list[str]:
    """The payloads of a queue, as another connection sees them."""
    with closing(connect(path)) as other:
        sql = f"SELECT payload FROM alkstore_jobs WHERE queue = '{queue}' ORDER BY job_id"
        return [payload for (payload,) in rows(other, sql)]


def run(script: str, *arguments: object) -> str:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout
