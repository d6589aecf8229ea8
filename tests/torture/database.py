"""A connection to the tortured database, and which of its errors say that nothing happened."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

import alkstore
from alkstore._sql import installer
from tests.model.faces import OUTBOX, Postgres, Sqlite
from tests.torture.journal import Undone

# Now is the machine's time and an offset. It is only ever raised: so the time before a call and
# the time after it bound the now that the call has read, without asking the database.
SETUP = {
    "postgres": """
        CREATE TABLE business (token text PRIMARY KEY);
        CREATE TABLE booked (token text, attempt bigint);
        CREATE TABLE clock (seconds bigint NOT NULL);
        INSERT INTO clock VALUES (0);
        CREATE OR REPLACE FUNCTION alkstore._now() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
          SELECT date_trunc('second', clock_timestamp()) + make_interval(secs => seconds)
          FROM public.clock
        $$""",
    "sqlite": """
        CREATE TABLE business (token TEXT PRIMARY KEY);
        CREATE TABLE booked (token TEXT, attempt INTEGER);
        CREATE TABLE clock (seconds INTEGER NOT NULL);
        INSERT INTO clock VALUES (0);
        DROP VIEW __alkstore_clock;
        CREATE VIEW __alkstore_clock(now) AS SELECT unixepoch() + seconds FROM clock""",
}
JOB_TABLE = {"postgres": "alkstore._job", "sqlite": "__alkstore_job"}
STATS_VIEW = {"postgres": "alkstore.queue_stats", "sqlite": "alkstore_queue_stats"}
JOBS_VIEW = {"postgres": "alkstore.jobs", "sqlite": "alkstore_jobs"}

QUEUES = ("a", "b", "c", "d")  # of raw calls
SENT = OUTBOX + "sent"
HANDLED = ("served", "busy", "consumed", "commanded", SENT)  # by the package

Face = Postgres | Sqlite


def set_up(url: str, engine: str) -> None:
    face = open_face(url, engine)
    face.script(installer(engine))
    face.script(SETUP[engine])
    face.close()


def open_face(url: str, engine: str) -> Face:
    if engine == "sqlite":
        return Sqlite(url, timeout=2)
    options = "-c lock_timeout=10s"
    face = Postgres(url, application_name="torture", options=options, connect_timeout=10)
    face.run("RESET alkstore.notify")
    return face


@contextmanager
def errors() -> Iterator[None]:
    """Raise Undone for an error that leaves nothing of the call; let the others pass."""
    try:
        yield
    except psycopg.Error as error:
        # Classes 08 and 57P: the connection is gone, perhaps after the call was committed.
        if error.sqlstate is None or error.sqlstate.startswith(("08", "57P")):
            raise
        raise Undone(f"{error.sqlstate} {error}") from error
    except sqlite3.Error as error:
        raise Undone(str(error)) from error
    except alkstore.Busy as error:
        raise Undone(f"{getattr(error.__cause__, 'sqlstate', '')} {error}".strip()) from error


def is_lost(error: Exception) -> bool:
    """Whether the connection is gone, which happens here."""
    lost = psycopg.OperationalError | psycopg.InterfaceError | alkstore.Unavailable
    return isinstance(error, lost)


def is_crowding(error: str) -> bool:
    """A lock timeout, a busy file, a store that another thread keeps."""
    return error.startswith(("55P03", "database is locked", "another thread has had"))
