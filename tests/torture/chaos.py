"""One round: processes at work, and all that happens to them; then the draining of the queues."""

from __future__ import annotations

import math
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg

from tests.harness.server import Server
from tests.torture.actors import Janitor, Worker
from tests.torture.cast import Cast
from tests.torture.database import HANDLED, QUEUES, STATS_VIEW, Face, errors, open_face
from tests.torture.journal import Journal, Undone
from tests.torture.runs import PATIENCE_S

# What happens, and how often of all.
DECKS = {
    "postgres": {
        "kill_process": 16, "stop_process": 3, "move_clock": 8, "hold_snapshot": 3, "hold_locks": 2,
        "vacuum": 2, "kill_backend": 9, "crash_backend": 1, "restart_server": 1,
        "leap": 1,
    },
    "sqlite": {
        "kill_process": 24, "stop_process": 4, "move_clock": 10, "hold_snapshot": 4,
        "hold_locks": 4, "vacuum": 2, "leap": 1,
    },
}  # fmt: skip


class Round:
    """`package`: with processes that work through the package, beside those of raw calls."""

    def __init__(
        self, engine: str, url: str, server: Server | None, folder: Path, *, package: bool
    ) -> None:
        self.engine, self.url, self.server, self.folder = engine, url, server, folder
        self.package = package
        self.rng = random.Random(folder.name)
        with closing(self.face()) as face:
            [(self.moved,)] = face.run("SELECT seconds FROM clock")
            if engine == "sqlite":  # the package switches to WAL, and keeps it
                face.run(f"PRAGMA journal_mode = {self.rng.choice(('wal', 'wal', 'delete'))}")
        self.journal = Journal(folder, "chaos")
        self.happened: Counter[str] = Counter()
        self.snapshots: list[tuple[float, Face]] = []  # until when they are held

    # -- processes

    def run(self, seconds: float) -> None:
        until = time.time() + seconds
        with self.journal.call("move_clock", seconds=self.moved) as outcome:
            outcome["result"] = True  # by the rounds before
        self.cast = Cast(
            self.engine, self.url, self.folder, self.journal, until, package=self.package
        )
        chances = DECKS[self.engine] | ({"terminate_process": 6} if self.package else {})
        deck: list[str] = []
        while time.time() < until - 1:
            time.sleep(self.rng.random() * 0.8)
            self.let_go(time.time())
            self.cast.look()
            if not deck:
                deck = [name for name, times in chances.items() for _ in range(times)]
                self.rng.shuffle(deck)
            name = deck.pop()
            with self.surviving():
                getattr(self, name)()
                self.happened[name] += 1
        self.cast.end_raw()
        self.let_go(math.inf)
        if self.package:
            with self.surviving():
                self.strike_all()
            self.wait_for_workers()
        self.cast.end()

    def strike_all(self) -> None:
        """So that none can go on without getting over something."""
        if self.engine == "postgres":
            self.kill_backend(1000)
        else:
            self.hold_locks(1)

    def wait_for_workers(self) -> None:
        """In peace at last, they take all that is ready."""
        sql = (
            f"SELECT queue, ready + lapsed FROM {STATS_VIEW[self.engine]} WHERE ready + lapsed > 0"
        )
        with self.journal.call("wait_for_workers") as outcome, closing(self.patient_face()) as face:
            give_up_at, left = math.inf, {"": 0}
            while left and time.time() < give_up_at:
                self.cast.look()
                before, left = left, {queue: n for queue, n in face.run(sql) if queue in HANDLED}
                if left != before:
                    give_up_at = time.time() + PATIENCE_S
                time.sleep(0.1)
            outcome["result"] = left

    @contextmanager
    def surviving(self) -> Iterator[None]:
        """What chaos does may strike chaos itself."""
        with suppress(Undone, psycopg.Error), errors():
            yield

    def kill_process(self) -> None:
        self.cast.kill(self.rng)

    def stop_process(self) -> None:
        process = self.rng.choice(self.cast.members).process
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGSTOP)
            time.sleep(self.rng.random() * 3)
            os.kill(process.pid, signal.SIGCONT)

    def terminate_process(self) -> None:
        if at_work := self.cast.at_work():
            member = self.rng.choice(at_work)
            self.cast.terminate(member)
            self.cast.start(member.role)

    # -- the database

    def face(self) -> Face:
        return open_face(self.url, self.engine)

    def move_clock(self, seconds: int | None = None) -> None:
        seconds = seconds or self.rng.choice((1, 3, 10))
        with self.journal.call("move_clock", seconds=seconds) as outcome, errors():
            with closing(self.face()) as face:
                face.run(f"UPDATE clock SET seconds = seconds + {seconds}")
            outcome["result"] = True

    def leap(self) -> None:
        """Past every claim."""
        self.move_clock(400)

    def hold_snapshot(self) -> None:
        face = self.face()
        face.run("BEGIN ISOLATION LEVEL REPEATABLE READ" if self.engine == "postgres" else "BEGIN")
        face.run("SELECT count(*) FROM business")
        self.snapshots.append((time.time() + self.rng.random() * 3, face))

    def let_go(self, now: float) -> None:
        for snapshot in [snapshot for snapshot in self.snapshots if snapshot[0] <= now]:
            self.snapshots.remove(snapshot)
            snapshot[1].close()

    def hold_locks(self, seconds: float | None = None) -> None:
        """On some rows, which claims then pass over, so the audit must know; or on the file."""
        with self.journal.call("hold") as outcome:
            outcome["result"] = True
            with self.surviving(), closing(self.face()) as face:
                face.run("BEGIN")
                face.run(
                    "SELECT id FROM alkstore._job WHERE random() < 0.3 FOR UPDATE SKIP LOCKED"
                    if self.engine == "postgres"
                    else "UPDATE clock SET seconds = seconds"
                )
                time.sleep(seconds or self.rng.random())

    def vacuum(self) -> None:
        statements = {
            "postgres": ("VACUUM (ANALYZE) alkstore._job", "CHECKPOINT"),
            "sqlite": ("PRAGMA wal_checkpoint(TRUNCATE)", "VACUUM"),
        }
        with closing(self.face()) as face:
            for statement in statements[self.engine]:
                face.run(statement)

    def kill_backend(self, most: int = 1) -> None:
        with closing(self.face()) as face:
            face.run(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = "
                f"'torture' AND pid <> pg_backend_pid() ORDER BY random() LIMIT {most}"
            )

    def crash_backend(self) -> None:
        """SIGKILL, after which the server ends all others, and recovers."""
        face = self.face()
        [(pid,)] = face.run("SELECT pg_backend_pid()")
        os.kill(pid, signal.SIGKILL)

    def restart_server(self) -> None:
        assert self.server is not None
        self.server.stop("immediate")
        self.server.start()

    # -- the end

    def drain(self) -> dict[str, Any]:
        """Take and ack whatever can be taken, alone and in order; then what is left."""
        with closing(self.patient_face()) as face:
            with suppress(Undone):  # which the audit will tell of
                self.take_all(face)
            jobs = face.jobs()
            business = [token for (token,) in face.run("SELECT token FROM business")]
            booked = face.run("SELECT token, attempt FROM booked")
        return {"jobs": jobs, "business": business, "booked": booked, "panics": self.panics()}

    def panics(self) -> list[str]:
        """Of threads that nobody waits for."""
        return [
            f"{log.stem}: {line}"
            for log in self.folder.glob("*.log")
            for line in log.read_text(errors="replace").splitlines()
            if line.startswith(("Exception in thread", "Exception ignored", "Fatal Python error"))
        ]

    def patient_face(self) -> Face:
        """The server may be recovering still."""
        while True:
            try:
                return self.face()
            except psycopg.OperationalError:
                time.sleep(0.2)

    def take_all(self, face: Face) -> None:
        everything = QUEUES + HANDLED
        worker = Worker(self.engine, self.url, self.folder, "last_worker", everything, face)
        janitor = Janitor(self.engine, self.url, self.folder, "last_janitor", everything, face)
        for _ in range(10):
            self.move_clock(1000)  # past every delay, deadline and expiry
            claimed = 0
            for queue in everything:
                while taken := worker.claim(queue, 7):
                    claimed += taken
                    while worker.handles:
                        worker.settle_one("ack", *worker.handles.pop())
            for queue in everything:
                expired, _ = janitor.sweep(queue)
                claimed += expired
            if not claimed:
                break
