"""Power cuts on SQLite: only what was synced is sure to be on the disk.

apsw lets us write down all that SQLite does to its files. From any first part of that, the disk
after a power cut is made up: what was synced, and of the rest whatever chance leaves.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest

from tests.python.test_crash_sqlite import Told, audit, begun, payload, prepare

SECTOR = 512  # what a disk writes as a whole


class Op(NamedTuple):
    """What was done to a file; or, for no file, what a call that returned has told."""

    kind: str
    file: str
    args: tuple[Any, ...] = ()


class LoggedFile(apsw.VFSFile):
    def __init__(self, log: list[Op], name: Any, flags: list[int]) -> None:
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self._log, self._name = log, Path(path).name
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        self._log.append(Op("write", self._name, (offset, bytes(data))))
        super().xWrite(data, offset)

    def xTruncate(self, size: int) -> None:
        self._log.append(Op("truncate", self._name, (size,)))
        super().xTruncate(size)

    def xSync(self, flags: int) -> None:
        self._log.append(Op("sync", self._name))
        super().xSync(flags)


class LoggedDisk(apsw.VFS):
    def __init__(self, log: list[Op]) -> None:
        self.log = log
        super().__init__("logged", "")

    def xOpen(self, name: Any, flags: list[int]) -> LoggedFile:
        return LoggedFile(self.log, name, flags)

    def xDelete(self, name: str, sync_folder: bool) -> None:
        self.log.append(Op("delete", Path(name).name))
        if sync_folder:
            self.log.append(Op("sync", Path(name).name))
        super().xDelete(name, sync_folder)


def apply(content: bytes | None, op: Op) -> bytes | None:
    if op.kind == "delete":
        return None
    content = content or b""
    if op.kind == "truncate":
        return content[: op.args[0]]
    offset, data = op.args
    return content[:offset].ljust(offset, b"\0") + data + content[offset + len(data) :]


def survivors(ops: list[Op], rng: random.Random) -> Iterator[Op]:
    """What the disk has of operations that were not synced: any of them, any sectors of a write."""
    share = rng.choice((0.0, 0.5, 1.0))
    for op in ops:
        kept = rng.random() < share
        if op.kind == "delete" and not kept:
            return  # the folder names the old file: nothing of a new one is seen
        if op.kind == "write" and kept and rng.random() < 0.2:
            offset, data = op.args
            op = op._replace(args=(offset, data[: rng.randrange(len(data) + 1) & -SECTOR]))
        if kept:
            yield op


def disk_after(ops: list[Op], start: dict[str, bytes], rng: random.Random) -> dict[str, bytes]:
    """The files as a power cut right after these operations may leave them."""
    synced: dict[str, bytes | None] = dict(start)
    pending: dict[str, list[Op]] = {}
    for op in ops:
        if op.kind == "sync":
            for done in pending.pop(op.file, []):
                synced[op.file] = apply(synced.get(op.file), done)
        elif op.kind != "told":
            pending.setdefault(op.file, []).append(op)
    for file, unsynced in pending.items():
        for op in survivors(unsynced, rng):
            synced[file] = apply(synced.get(file), op)
    return {file: content for file, content in synced.items() if content is not None}


def lives_of_jobs(connection: apsw.Connection, tell: Callable[[str, Any], None]) -> None:
    """Every way that a job can go, one transaction each, told of as soon as it has returned."""

    def call(sql: str, *values: object) -> list[tuple[Any, ...]]:
        return connection.execute(sql, values).fetchall()

    by_id = "INSERT INTO alkstore_{}(queue, job_id, attempt) VALUES ('q', ?, ?) RETURNING 1"
    for tokens in (["1", "10", "2"], ["3", "20", "4"]):
        placed = []
        with begun(connection):
            for token in tokens:
                enqueue = "INSERT INTO alkstore_enqueue(queue, payload) VALUES ('q', ?)"
                [(job_id,)] = call(f"{enqueue} RETURNING job_id", json.dumps(payload(token)))
                call("INSERT INTO business VALUES (?, ?)", job_id, token)
                placed.append((job_id, token))
        tell("business", placed)
        [(jobs,)] = call(
            "INSERT INTO alkstore_claim(queue, worker_id, n) VALUES ('q', 'w', 4)"
            " RETURNING (SELECT jobs FROM alkstore_claimed_json)"
        )
        claims = [(job["job_id"], job["attempt"]) for job in json.loads(jobs)]
        tell("claims", claims)
        for claim, end in zip(claims, ("ack", "release", "fail", "heartbeat"), strict=False):
            with begun(connection):
                assert call(by_id.format(end), *claim) == [(1,)]
                if end == "ack":
                    call("INSERT INTO settled VALUES (?)", claim[0])
            if end in ("ack", "fail"):
                tell("settled" if end == "ack" else "dead", [claim[0]])


@pytest.mark.parametrize(
    ("journal_mode", "synchronous", "keeps_what_was_told"),
    [
        ("wal", "FULL", True),
        ("wal", "NORMAL", False),
        ("delete", "EXTRA", True),
        ("delete", "FULL", False),
    ],
)
def test_a_power_cut_at_any_point_leaves_every_job_in_one_place(
    tmp_path: Path, journal_mode: str, synchronous: str, keeps_what_was_told: bool
) -> None:
    path = tmp_path / "app.db"
    prepare(path, journal_mode)
    start = {path.name: path.read_bytes()}
    disk = LoggedDisk([])
    with closing(apsw.Connection(str(path), vfs="logged")) as connection:
        if journal_mode == "wal":  # needs shared memory, which apsw's files lack, or just one user
            connection.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
        connection.execute(f"PRAGMA synchronous = {synchronous}").fetchall()
        connection.execute("PRAGMA wal_autocheckpoint = 20").fetchall()
        lives_of_jobs(connection, lambda *told: disk.log.append(Op("told", "", told)))
        log = list(disk.log)

    rng = random.Random(f"{journal_mode} {synchronous}")
    told = Told()
    lost = False
    for end, op in enumerate(log, start=1):
        if op.kind == "told":
            told.add(*op.args)
        for file in tmp_path.glob("copy*"):
            file.unlink()
        for name, content in disk_after(log[:end], start, rng).items():
            (tmp_path / name.replace("app", "copy")).write_bytes(content)
        copied = tmp_path / "copy.db"
        if keeps_what_was_told:
            audit(copied, told)
        else:
            audit(copied, Told())
            lost = lost or not holds(copied, told)
    assert lost is not keeps_what_was_told  # what docs/sqlite.md says of these settings


def holds(path: Path, told: Told) -> bool:
    try:
        audit(path, told)
    except AssertionError:
        return False
    return True
