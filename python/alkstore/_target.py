"""From what a user names, a path or URL, to an engine."""

from __future__ import annotations

import os
import re
from functools import partial
from typing import TYPE_CHECKING

from ._input import at_least, name
from .errors import InvalidName, InvalidOption, Unavailable
from .sqlite import SqliteEngine
from .store import Store

if TYPE_CHECKING:
    from .postgres import PostgresEngine

Target = str | os.PathLike[str]

# Other URLs, and libpq's `host=localhost dbname=app`: taken for paths they would make such files.
_NO_PATH = re.compile(
    r".*://|(file|sqlite|postgres|postgresql):|(host|hostaddr|port|dbname|user|service) *=",
    re.DOTALL | re.IGNORECASE,
)


def open(
    target: Target,
    *,
    busy_timeout_s: float = 5.0,
    synchronous: str = "full",
    schema: str = "alkstore",
    pool_size: int = 10,
) -> Store:
    """Open a store: a file path, `sqlite:///path`, `:memory:`, or `postgresql://…`.

    A SQLite file is made and gets the schema where it lacks it; it is switched to WAL, and
    `busy_timeout_s` is how many seconds a call waits while others write. `synchronous="full"`
    makes each commit outlive a power cut. "normal" saves the wait for the disk at each commit, and
    a power cut may undo the last ones: an enqueue that had returned, or an ack, so that a job is
    done again. The file stays sound either way, and a killed process loses nothing.

    On PostgreSQL, `schema` is where alkstore was installed, `pool_size` the most connections in
    use at once. A call waits up to 30 seconds for one, also while the server is away.

    Raises NotInstalled (PostgreSQL), VersionMismatch, Unavailable, Busy, InvalidName (of the
    schema), InvalidOption.
    """
    if _is_postgres(target):
        at_least(1, "pool_size", pool_size)
        return Store(partial(_postgres(), str(target), _checked(schema), pool_size))
    if not 0 <= busy_timeout_s <= 2_000_000:
        raise InvalidOption("invalid_option: busy_timeout_s must be from 0 to 2000000")
    if synchronous not in ("full", "normal"):
        raise InvalidOption("invalid_option: synchronous must be 'full' or 'normal'")
    return Store(partial(SqliteEngine, _path(target), busy_timeout_s, synchronous))


def install(target: Target, *, schema: str = "alkstore") -> bool:
    """Install the schema into a database; False when it was there already.

    `schema` is the PostgreSQL schema to make. Any number may install at once.
    Raises VersionMismatch, Unavailable, Busy, InvalidName (of the schema), InvalidOption.
    """
    if _is_postgres(target):
        return _postgres().install(str(target), _checked(schema))
    return SqliteEngine.install(_path(target))


def place(target: Target, schema: str) -> str:
    """Where in the world that is, without the password that a URL may hold."""
    return f"schema {schema}" if _is_postgres(target) else _path(target)


def is_sqlite(target: Target) -> bool:
    return not _is_postgres(target)


def _is_postgres(target: Target) -> bool:
    return str(target).startswith(("postgresql://", "postgres://"))


def _postgres() -> type[PostgresEngine]:
    try:
        from .postgres import PostgresEngine
    except ImportError as error:
        hint = "PostgreSQL needs an extra: pip install 'alkstore[postgres]'"
        raise Unavailable(f"{hint} ({error})") from error
    return PostgresEngine


def _checked(schema: str) -> str:
    if not name("schema", schema):
        raise InvalidName("invalid_name: schema must not be empty")
    return schema


def _path(target: Target) -> str:
    path = os.fsdecode(target)
    if path.startswith("sqlite://"):
        path = path.removeprefix("sqlite://").removeprefix("/") or ":memory:"
    if not path or "\0" in path or _NO_PATH.match(path):  # not shown: it may hold a password
        expected = "a file path, sqlite:///PATH or postgresql://URL"
        raise InvalidOption(f"invalid_option: the target must be {expected}")
    # Absolute, so that it is the same file after a chdir and a fork.
    try:
        return path if path == ":memory:" else os.path.abspath(path)
    except OSError as error:
        reason = f"the current folder: {error.strerror}"
        raise Unavailable(f"cannot open {path} as an SQLite database: {reason}") from error
