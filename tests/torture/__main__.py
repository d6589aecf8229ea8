"""Tortures an engine in rounds of a minute, each followed by an audit.

    python -m tests.torture sqlite|postgres [--minutes 1] [--seed TEXT]

In a round, processes produce, work and sweep while this one kills, stops, locks, restarts and moves the clock. Then it
drains the queues, and the audit goes through all that was journaled. What is found is printed, with the folder of the
journals, and makes the exit status 1.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg

from tests.harness.server import Server
from tests.torture.actors import QUEUES, Worker, run
from tests.torture.audit import audit
from tests.torture.database import errors, open_face, set_up
from tests.torture.journal import Journal, Undone, read

ROUND_S = 60
CAST = {"producer": 2, "worker": 4, "janitor": 1}

processes = multiprocessing.get_context(
    "forkserver"
)  # a fork of this one would share its connections


class Round:
    def __init__(self, engine: str, url: str, server: Server | None, folder: Path) -> None:
        self.engine, self.url, self.server, self.folder = engine, url, server, folder
        with closing(self.face()) as face:
            [(self.moved,)] = face.run("SELECT seconds FROM clock")
        self.rng = random.Random(folder.name)
        self.journal = Journal(folder, "chaos")
        self.done: Counter[str] = Counter()
        self.cast: list[tuple[str, Any]] = []
        self.names = 0
        self.holders: list[tuple[float, Any]] = []  # connections in the way of others, until when

    # -- processes

    def start(self, role: str) -> None:
        self.names += 1
        arguments = (role, self.engine, self.url, self.folder, f"{role}{self.names}", self.until)
        process = processes.Process(target=run, args=arguments, daemon=True)
        process.start()
        self.cast.append((role, process))

    def run(self, seconds: float) -> None:
        self.until = time.time() + seconds
        with self.journal.call("move_clock", seconds=self.moved) as outcome:
            outcome["result"] = True  # by the rounds before
        for role, number in CAST.items():
            for _ in range(number):
                self.start(role)
        deck: list[str] = []
        while time.time() < self.until - 1:
            time.sleep(self.rng.random() * 0.8)
            self.let_go(time.time())
            if not deck:
                deck = [name for name, times in DECKS[self.engine].items() for _ in range(times)]
                self.rng.shuffle(deck)
            name = deck.pop()
            with self.surviving():
                getattr(self, name)()
                self.done[name] += 1
        for _, process in self.cast:
            process.join(timeout=30)
            if process.is_alive():
                process.kill()
                process.join()
        self.let_go(math.inf)

    @contextmanager
    def surviving(self) -> Iterator[None]:
        """What chaos does may strike chaos itself."""
        with suppress(Undone, psycopg.Error), errors():
            yield

    def kill_process(self) -> None:
        index = self.rng.randrange(len(self.cast))
        role, process = self.cast.pop(index)
        process.kill()
        process.join()
        self.start(role)

    def stop_process(self) -> None:
        _, process = self.rng.choice(self.cast)
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGSTOP)
            time.sleep(self.rng.random() * 3)
            os.kill(process.pid, signal.SIGCONT)

    # -- the database

    def face(self) -> Any:
        return open_face(self.url, self.engine)

    def move_clock(self, seconds: int | None = None) -> None:
        seconds = seconds or self.rng.choice((1, 3, 10))
        with self.journal.call("move_clock", seconds=seconds) as outcome, errors():
            face = self.face()
            face.run("UPDATE clock SET seconds = seconds + " + str(seconds))
            face.close()
            outcome["result"] = True

    def hold(self, sql: str) -> None:
        face = self.face()
        face.run("BEGIN ISOLATION LEVEL REPEATABLE READ" if self.engine == "postgres" else "BEGIN")
        self.holders.append((time.time() + self.rng.random() * 3, face))
        face.run(sql)

    def let_go(self, now: float) -> None:
        for holder in [holder for holder in self.holders if holder[0] <= now]:
            self.holders.remove(holder)
            holder[1].close()

    def hold_snapshot(self) -> None:
        self.hold("SELECT count(*) FROM business")

    def hold_locks(self) -> None:
        """Some rows; on SQLite the file. The audit must know, since a claim passes over such rows."""
        with self.journal.call("hold") as outcome:
            with self.surviving():
                self.hold(
                    "SELECT id FROM alkstore._job WHERE random() < 0.3 FOR UPDATE SKIP LOCKED"
                    if self.engine == "postgres"
                    else "UPDATE clock SET seconds = seconds"
                )
                time.sleep(self.rng.random())
            self.let_go(math.inf)
            outcome["result"] = True

    def vacuum(self) -> None:
        face = self.face()
        if self.engine == "postgres":
            face.run("VACUUM (ANALYZE) alkstore._job")
            face.run("CHECKPOINT")
        else:
            face.run("PRAGMA wal_checkpoint(TRUNCATE)")
            face.run("VACUUM")
        face.close()

    def kill_backend(self) -> None:
        face = self.face()
        face.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
            "AND application_name = 'torture' ORDER BY random() LIMIT 1"
        )
        face.close()

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
        worker = Worker(self.engine, self.url, self.folder, "drain")
        while True:
            try:
                worker.face = self.face()
                break
            except psycopg.OperationalError:
                time.sleep(0.2)
        with suppress(Undone):  # which the audit will tell of
            self.take_all(worker)
        jobs = worker.face.jobs()
        business = [token for (token,) in worker.face.run("SELECT token FROM business")]
        worker.face.close()
        return {"jobs": jobs, "business": business}

    def take_all(self, worker: Worker) -> None:
        for _ in range(10):
            self.move_clock(1000)  # past every delay, deadline and expiry
            claimed = 0
            for queue in QUEUES:
                while taken := worker.claim(queue, 7):
                    claimed += taken
                    for handle in worker.handles:
                        worker.call(
                            "ack",
                            lambda h=handle: worker.face.settle("ack", *h),
                            queue=queue,
                            claim=handle[1:],
                            more=[],
                        )
                    worker.handles.clear()
            for queue in QUEUES:
                expired, _ = worker.call(
                    "sweep_expired", lambda q=queue: worker.face.sweep_expired(q), queue=queue
                )
                claimed += expired
            if not claimed:
                break


DECKS = {
    "postgres": {
        "kill_process": 16, "stop_process": 3, "move_clock": 8, "hold_snapshot": 3, "hold_locks": 2,
        "vacuum": 2, "kill_backend": 9, "crash_backend": 1, "restart_server": 1,
    },
    "sqlite": {
        "kill_process": 24, "stop_process": 4, "move_clock": 10, "hold_snapshot": 4, "hold_locks": 4,
        "vacuum": 2,
    },
}  # fmt: skip


def torture(engine: str, minutes: float, seed: str, folder: Path) -> int:
    findings = 0
    totals: Counter[str] = Counter()
    with ExitStack() as stack:
        server = None
        url = str(folder / "app.db")
        if engine == "postgres":
            server = stack.enter_context(Server(durable=True))
            url = server.url
        set_up(url, engine)
        stop_at = time.time() + 60 * minutes
        number = 0
        while (left := stop_at - time.time()) > 5:
            number += 1
            journals = folder / f"{seed}-{number}"
            journals.mkdir()
            round = Round(engine, url, server, journals)
            round.run(min(ROUND_S, left))
            final = round.drain()
            (journals / "final.json").write_text(json.dumps(final))
            report = audit(read(journals), final)
            totals += report.figures + round.done
            findings += len(report.findings)
            for finding in report.findings:
                print(f"FOUND in {journals}: {finding}", flush=True)
            if not report.findings:
                shutil.rmtree(journals)
            print(f"round {number}: {figures(report.figures + round.done)}", flush=True)
    print(f"{engine}, seed {seed}, {number} rounds: {figures(totals)}")
    print(f"findings: {findings}")
    return findings


def figures(counts: Counter[str]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in sorted(counts.items()))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("engine", choices=["sqlite", "postgres"])
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--seed", default=None)
    options = parser.parse_args()
    seed = options.seed or f"{random.randrange(10**6)}"
    processes.set_forkserver_preload(["tests.torture.actors"])
    folder = Path(tempfile.mkdtemp(prefix="alkstore-torture-"))
    if torture(options.engine, options.minutes, seed, folder):
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
