"""What an own connection asks of the disk, and what is left alone on the caller's."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import alkstore


def pragma(connection: Any, name: str) -> Any:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


@pytest.mark.parametrize(("options", "level"), [({}, 2), ({"synchronous": "normal"}, 1)])
def test_an_own_connection_is_in_wal_and_as_synchronous_as_asked(
    sqlite_path: Path, options: dict[str, str], level: int
) -> None:
    with alkstore.open(sqlite_path, **options) as store, store.transaction() as tx:
        assert pragma(tx.connection, "journal_mode") == "wal"
        assert pragma(tx.connection, "synchronous") == level


@pytest.mark.parametrize("synchronous", ["off", "FULL", "", "full; DROP TABLE x"])
def test_no_other_level_is_taken(sqlite_path: Path, synchronous: str) -> None:
    with pytest.raises(alkstore.InvalidOption, match="synchronous must be 'full' or 'normal'"):
        alkstore.open(sqlite_path, synchronous=synchronous)
    assert not sqlite_path.exists()


def test_a_connection_of_the_caller_keeps_its_settings(sqlite_path: Path) -> None:
    names = ("synchronous", "busy_timeout", "foreign_keys", "recursive_triggers", "cache_size")
    with (
        alkstore.open(sqlite_path) as store,
        closing(sqlite3.connect(sqlite_path, timeout=1.5)) as mine,
    ):
        mine.execute("PRAGMA synchronous = OFF")
        before = [pragma(mine, name) for name in names]
        queue = store.queue("q")
        queue.enqueue(1, tx=mine)
        queue.claim_one("w", tx=mine)
        mine.commit()
        assert [pragma(mine, name) for name in names] == before
        assert before[0] == 0
