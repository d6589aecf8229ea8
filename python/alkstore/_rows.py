"""Rows to values. Both engines select these columns, instants as unix seconds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# In the order of the fields of Job, JobHandle and JobRecord.
_SHARED_COLUMNS = (
    "max_attempts",
    "created_at",
    "run_at",
    "expires_at",
    "worker_id",
    "claimed_at",
    "claim_expires_at",
)
CLAIM_COLUMNS = ("job_id", "queue", "payload", "priority", "attempt", *_SHARED_COLUMNS)
JOB_COLUMNS = (
    *("job_id", "queue", "payload", "priority", "attempts", *_SHARED_COLUMNS),
    "state",
    "visibility_timeout_s",
    "backoff_base_s",
    "dead_letter_retention_s",
    "retry_error",
    "last_error",
    "died_at",
    "released",
)


def instant(unix_seconds: int | None) -> datetime | None:
    return None if unix_seconds is None else EPOCH + timedelta(seconds=unix_seconds)


def values(columns: Sequence[str], row: Sequence[Any]) -> list[Any]:
    """The row's values, with the columns named `…_at` as datetimes."""
    return [
        instant(value) if column.endswith("_at") else value
        for column, value in zip(columns, row, strict=True)
    ]
