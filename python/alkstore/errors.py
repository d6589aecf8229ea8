"""What alkstore raises, and how an engine's code becomes a class.

The engines refuse wrong arguments with a code: SQLSTATE on PostgreSQL, the first word of the
message on SQLite. Only the code is looked at, never the text behind it. An error of the driver
that is not listed here passes unchanged.
"""

from __future__ import annotations

from ._sql import SCHEMA_VERSION


class AlkstoreError(Exception):
    """Base class of every error that alkstore raises."""


class InvalidName(AlkstoreError):
    """AK001: a name that is empty, too long, reserved or not text."""


class InvalidPayload(AlkstoreError):
    """AK002: a payload that is not JSON, or not storable as text."""


class InvalidOption(AlkstoreError):
    """AK003: an option out of its range or of a wrong type."""


class InvalidSpec(AlkstoreError):
    """AK004: a schedule that is not of the form `@every <n><unit>`."""


class LockHeld(AlkstoreError):
    """The lock is held by somebody else."""


class LockLost(AlkstoreError):
    """The lock was lost before the work under it had ended: it lapsed, others may have had it."""


class LeadershipLost(AlkstoreError):
    """Another runner leads the schedules now."""


class StoreClosed(AlkstoreError):
    """The store was closed."""


class NotInstalled(AlkstoreError):
    """The database lacks the alkstore schema."""


class VersionMismatch(AlkstoreError):
    """The database holds an alkstore schema of a version that this package does not know."""


class Busy(AlkstoreError):
    """The database is held by others for now. Nothing was done; try again.

    On SQLite: another connection kept the write lock for longer than the busy timeout, or the
    caller's transaction read before somebody else wrote, which only a new transaction cures.
    On PostgreSQL: a serialization failure, a deadlock or a lock timeout.
    """


class Unavailable(AlkstoreError):
    """The database cannot be reached, opened or, as on a full disk, written."""


BY_CODE: dict[str, type[AlkstoreError]] = {
    "AK001": InvalidName,
    "AK002": InvalidPayload,
    "AK003": InvalidOption,
    "AK004": InvalidSpec,
}


def check_version(found: str) -> None:
    """Raise VersionMismatch unless the installed schema is the one that this package calls."""
    if found != SCHEMA_VERSION:
        raise VersionMismatch(
            f"the database holds alkstore schema {found}, "
            f"this package works with schema {SCHEMA_VERSION}"
        )
