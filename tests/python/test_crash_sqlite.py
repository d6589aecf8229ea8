"""Killed processes on SQLite, and copies made meanwhile: no job lost, twice, or half moved.

KILLS sets how many times the processes are killed: KILLS=200 make test-python
"""

from __future__ import annotations

import copy
import json
import multiprocessing
import os
import random
import signal
import sqlite3
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

import pytest

import alkstore
from alkstore import JobHandle, Queue

KILLS = int(os.environ.get("KILLS", "40"))

FORK = multiprocessing.get_context("fork")  # some milliseconds a process, and there are hundreds

# What belongs together is written in one transaction: a job and its business row, its end and the
# record of it.
BUSINESS = """
CREATE TABLE business (job_id INTEGER PRIMARY KEY, token TEXT NOT NULL UNIQUE);
CREATE TABLE settled (job_id INTEGER PRIMARY KEY);
"""


def connect(path: Path) -> sqlite3.Connection:
    """What a killed process wrote is in the system's hands: nothing here waits for the disk."""
    connection = sqlite3.connect(path, isolation_level=None, timeout=60)
    connection.execute("PRAGMA synchronous = OFF")
    return connection


def rows(connection: sqlite3.Connection, sql: str) -> list[tuple[Any, ...]]:
    return connection.execute(sql).fetchall()


def prepare(path: Path, journal_mode: str) -> None:
    alkstore.install(path)
    with closing(connect(path)) as connection:
        rows(connection, f"PRAGMA journal_mode = {journal_mode}")
        connection.executescript(BUSINESS)


OPTIONS = {"max_attempts": 2, "visibility_timeout_s": 1}  # some claims lapse, many jobs die


# -- what a process does --------------------------------------------------------------------------


def payload(token: str) -> str:
    """One in ten is long, and lies in a table of its own."""
    return token * (1000 if token.endswith("0") else 1)


@dataclass
class Access:
    """A queue; what its calls take as tx to be transactions of their own; and to begin one."""

    queue: Queue
    alone: sqlite3.Connection | None
    transaction: Callable[[], AbstractContextManager[sqlite3.Connection]]


@contextmanager
def access(path: Path, journal_mode: str) -> Iterator[Access]:
    """A store's connection in WAL; one of our own otherwise, since a store turns WAL on."""
    if journal_mode == "wal":
        with alkstore.open(path, busy_timeout_s=60, synchronous="normal") as store:

            @contextmanager
            def transaction() -> Iterator[sqlite3.Connection]:
                with store.transaction() as tx:
                    yield tx.connection

            with transaction() as connection:
                connection.execute("PRAGMA wal_autocheckpoint = 30")  # pages: often
            yield Access(store.queue("q", **OPTIONS), None, transaction)
    else:
        with alkstore.open(":memory:") as store, closing(connect(path)) as own:
            yield Access(store.queue("q", **OPTIONS), own, lambda: begun(own))


@contextmanager
def begun(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    connection.execute("BEGIN IMMEDIATE")
    yield connection
    connection.execute("COMMIT")


class Worker:
    """Does random things, and tells of each one when it has returned."""

    def __init__(self, name: str, access: Access, tell: Callable[[str, Any], None]) -> None:
        self.name = name
        self.rng = random.Random(name)
        self.count = 0
        self.queue, self.alone, self.transaction = access.queue, access.alone, access.transaction
        self.tell = tell

    def step(self) -> None:
        self.rng.choices([self.enqueue, self.claim, self.sweep], [5, 5, 1])[0]()

    def enqueue(self) -> None:
        tokens = []
        for _ in range(self.rng.randint(1, 3)):
            self.count += 1
            tokens.append(f"{self.name}-{self.count}")
        expires_s = 1 if self.rng.random() < 0.1 else None
        with self.transaction() as connection:
            payloads = [payload(token) for token in tokens]
            ids = self.queue.enqueue_batch(payloads, expires_s=expires_s, tx=connection)
            placed = list(zip(ids, tokens, strict=True))
            connection.executemany("INSERT INTO business VALUES (?, ?)", placed)
        self.tell("business", placed)

    def claim(self) -> None:
        handles = self.queue.claim_batch(self.name, self.rng.randint(1, 4), tx=self.alone)
        self.tell("claims", [(handle.id, handle.attempt) for handle in handles])
        ends = [self.ack, self.retry, self.fail, self.release, self.heartbeat, self.cancel]
        for handle in handles:
            self.rng.choices([*ends, lambda handle: None], [5, 2, 2, 1, 1, 1, 1])[0](handle)

    def ack(self, handle: JobHandle) -> None:
        with self.transaction() as connection:
            if done := handle.ack(tx=connection):
                connection.execute("INSERT INTO settled VALUES (?)", (handle.id,))
        if done:
            self.tell("settled", [handle.id])

    def cancel(self, handle: JobHandle) -> None:
        with self.transaction() as connection:
            if done := self.queue.cancel(handle.id, tx=connection):
                connection.execute("INSERT INTO settled VALUES (?)", (handle.id,))
        if done:
            self.tell("settled", [handle.id])

    def retry(self, handle: JobHandle) -> None:
        handle.retry("again", delay_s=0, tx=self.alone)

    def fail(self, handle: JobHandle) -> None:
        if handle.fail("no use", tx=self.alone):
            self.tell("dead", [handle.id])

    def release(self, handle: JobHandle) -> None:
        handle.release(tx=self.alone)

    def heartbeat(self, handle: JobHandle) -> None:
        handle.heartbeat(tx=self.alone)

    def sweep(self) -> None:
        self.queue.sweep_expired(tx=self.alone)


def work(path: Path, journal_mode: str, journal: Path) -> None:
    """A process that works until it is killed. What it wrote to the journal stays."""
    file = os.open(journal, os.O_WRONLY | os.O_APPEND)

    def tell(what: str, of: Any) -> None:
        os.write(file, (json.dumps([what, of]) + "\n").encode())

    with access(path, journal_mode) as mine:
        worker = Worker(journal.name, mine, tell)
        while True:
            worker.step()


# -- the audit ------------------------------------------------------------------------------------


@dataclass
class Told:
    """What calls have returned: it holds from then on, whatever happens to the machine."""

    business: dict[int, str] = field(default_factory=dict)
    claims: dict[int, int] = field(default_factory=dict)
    settled: set[int] = field(default_factory=set)
    dead: set[int] = field(default_factory=set)

    def add(self, what: str, of: list[Any]) -> None:
        match what:
            case "business":
                self.business.update(of)
            case "claims":
                for job_id, attempt in of:
                    self.claims[job_id] = max(attempt, self.claims.get(job_id, 0))
            case "settled":
                self.settled.update(of)
            case "dead":
                self.dead.update(of)

    def and_by(self, journals: list[Path]) -> Told:
        """With all that stands in the journals by now."""
        told = copy.deepcopy(self)
        for journal in journals:
            *lines, _unfinished = journal.read_text().split("\n")
            for line in lines:
                told.add(*json.loads(line))
        return told


def audit(path: Path, told: Told) -> None:
    with closing(connect(path)) as connection:
        assert rows(connection, "PRAGMA integrity_check") == [("ok",)]
        business = dict(rows(connection, "SELECT job_id, token FROM business"))
        settled = {job_id for (job_id,) in rows(connection, "SELECT job_id FROM settled")}
        jobs = rows(
            connection,
            "SELECT job_id, state, payload, attempts, attempts - released <= max_attempts"
            " FROM alkstore_jobs",
        )
        long = rows(connection, "SELECT id FROM __alkstore_payload ORDER BY id")
        [(last_id,)] = rows(
            connection, "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name LIKE 'alk%'"
        )
    # Every job is live, or dead, or settled: once.
    assert Counter([job[0] for job in jobs] + list(settled)) == Counter(business.keys())
    texts = {job_id: json.dumps(payload(token)) for job_id, token in business.items()}
    assert {job[0]: job[2] for job in jobs} == {job[0]: texts[job[0]] for job in jobs}
    assert long == [(job[0],) for job in sorted(jobs) if len(texts[job[0]]) > 2000]
    assert all(within_attempts for *_, within_attempts in jobs)
    assert max(business, default=0) <= last_id
    # What was told is so.
    assert told.business.items() <= business.items()
    assert told.settled <= settled
    assert told.dead <= {job_id for job_id, state, *_ in jobs if state == "dead"}
    attempts = {job_id: attempts for job_id, _, _, attempts, _ in jobs}
    assert all(attempts.get(job_id, n) >= n for job_id, n in told.claims.items())


def drain(path: Path, journal_mode: str) -> None:
    """Whatever is left can be worked off."""
    with access(path, journal_mode) as mine, closing(connect(path)) as connection:
        while due := rows(connection, "SELECT next_due - unixepoch() FROM alkstore_next_due"):
            time.sleep(max(0, due[0][0]))  # claims of the killed lapse within a second or two
            with mine.transaction() as tx:
                handles = mine.queue.claim_batch("drain", 100, tx=tx)
                acked = [(handle.id,) for handle in handles if handle.ack(tx=tx)]
                tx.executemany("INSERT INTO settled VALUES (?)", acked)
                mine.queue.sweep_expired(tx=tx)
        assert rows(connection, "SELECT DISTINCT state FROM alkstore_jobs") == [("dead",)]


# -- kills ----------------------------------------------------------------------------------------


def size(*paths: Path) -> int:
    return sum(path.stat().st_size for path in paths)


def until_more_is_written(journals: list[Path], than: int = 0) -> None:
    give_up_at = time.monotonic() + 60
    while size(*journals) <= than:
        assert time.monotonic() < give_up_at
        time.sleep(0.001)


def copy_as_a_power_cut_leaves_it(path: Path, to: Path) -> None:
    """Copy a database that others write to, so that the copy is what a power cut could have left.

    Copying takes its time, and a power cut does not. What makes up for that is an open read
    transaction. In WAL mode it keeps the WAL from being begun anew: while it is copied, after the
    main file, it only grows, so it has whatever a checkpoint may have half written into the main
    file meanwhile. With a rollback journal nobody can write to the main file; the journal is
    copied at any moment of its making. -shm does not outlive a power cut.
    """
    for file in to.parent.glob(f"{to.name}*"):
        file.unlink()
    # By another program: where a process closes a file, it loses its locks on it.
    wal = "-wal" if Path(f"{path}-wal").exists() else "-journal"
    script = 'cp "$1" "$2"; if [ -e "$1$3" ]; then cp "$1$3" "$2$3" || [ ! -e "$1$3" ]; fi'
    subprocess.run(["sh", "-c", script, "sh", path, to, wal], check=True, stderr=DEVNULL)


@contextmanager
def three_at_work(
    path: Path, journal_mode: str, name: Path
) -> Iterator[tuple[list[Path], list[BaseProcess]]]:
    """Processes at work and their journals; none of them is left."""
    journals = [name.with_suffix(f".{n}") for n in range(3)]
    for journal in journals:
        journal.touch()
    processes = [FORK.Process(target=work, args=(path, journal_mode, j)) for j in journals]
    try:
        for process in processes:
            process.start()
        until_more_is_written(journals)
        yield journals, list(processes)
    finally:
        for process in processes:
            process.kill()
            process.join()


def kill(process: BaseProcess) -> None:
    process.kill()
    process.join()
    assert process.exitcode == -signal.SIGKILL  # it was at work until then


@pytest.mark.parametrize("journal_mode", ["wal", "delete"])
def test_killed_processes_leave_every_job_in_one_place(tmp_path: Path, journal_mode: str) -> None:
    path, copied = tmp_path / "app.db", tmp_path / "copy.db"
    prepare(path, journal_mode)
    rng = random.Random(journal_mode)
    told = Told()
    for number in range(KILLS // 2):
        name = tmp_path / f"round {number}"
        with three_at_work(path, journal_mode, name) as (journals, processes):
            with closing(connect(path)) as reader:
                reader.execute("BEGIN")
                rows(reader, "SELECT * FROM sqlite_schema")
                told_before = told.and_by(journals)
                copy_as_a_power_cut_leaves_it(path, copied)
            until_more_is_written(journals, than=size(*journals) + rng.randrange(2000))
            time.sleep(rng.uniform(0, 0.01))  # a kill comes at any point, within a call too
            kill(processes.pop(rng.randrange(3)))
            until_more_is_written(journals, than=size(*journals))  # it is in nobody's way
            for process in processes:
                kill(process)
        told = told.and_by(journals)
        audit(path, told)
        audit(copied, told_before)
    drain(path, journal_mode)
    audit(path, told)
    print(f"{KILLS // 2} times 3 processes killed: {len(told.business)} jobs")


# -- backups --------------------------------------------------------------------------------------


@pytest.mark.parametrize("journal_mode", ["wal", "delete"])
def test_a_backup_beside_the_work_is_whole(tmp_path: Path, journal_mode: str) -> None:
    path, vacuumed, backed_up = (tmp_path / name for name in ("app.db", "vacuumed.db", "backup.db"))
    prepare(path, journal_mode)
    with three_at_work(path, journal_mode, tmp_path / "backup") as (journals, processes):
        for _ in range(5):
            until_more_is_written(journals, than=size(*journals))
            told = Told().and_by(journals)
            with closing(connect(path)) as own, closing(connect(backed_up)) as to:
                own.execute("VACUUM INTO ?", (str(vacuumed),))
                own.backup(to)
            audit(vacuumed, told)
            audit(backed_up, told)
            vacuumed.unlink()
        for process in processes:
            kill(process)
