"""The processes that work through the package: Worker, Outbox.run, consume, `alkstore work`.

Each writes down each run of a handler, before it and after it. How a run ends is left to chance.
"""

from __future__ import annotations

import logging
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from traceback import format_exception_only
from typing import Any

import alkstore
from alkstore import JobHandle, StopToken, Store
from tests.model.faces import CLAIM_COLUMNS
from tests.model.package import row
from tests.torture.database import SENT, errors
from tests.torture.journal import Journal, Undone

DRAIN_S = 1
CRASHED = 77  # the status of a process that a handler has ended
ENDINGS = {
    "succeed": 60, "book": 12, "settle": 8, "stumble": 6, "retry": 8, "fail": 4, "block": 2,
    "hang": 1, "crash": 0.3,
}  # fmt: skip


class Handlers:
    """Handlers of one process, and its journal."""

    def __init__(self, url: str, folder: Path, name: str) -> None:
        self.url = url
        self.folder = folder
        self.name = name
        self.journal = Journal(folder, name)
        self.rng = random.Random(f"{folder.name} {name}")
        self.may_hang = threading.Semaphore(2)  # so that others go on
        self.poll_s = self.rng.choice((0.5, 5))
        self.stop = StopToken.on_signals(signal.SIGTERM)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one that started us ends us

    def open(self) -> Store:
        """The server may be recovering still."""
        while True:
            try:
                return alkstore.open(self.url, busy_timeout_s=self.rng.choice((0.5, 5)))
            except (alkstore.Unavailable, alkstore.Busy):
                time.sleep(0.1)

    def call(self, name: str, do: Callable[[], Any], job: JobHandle, *more: Any) -> Any:
        arguments = {"queue": job.queue, "claim": (job.id, job.attempt), "more": more}
        with self.journal.call(name, **arguments) as outcome, errors():
            outcome["result"] = result = do()
        return result

    # -- a handler

    def handle(self, job: JobHandle) -> None:
        """Of a Worker, who settles the job by how this ends; a job that we have settled is held."""
        raised: Exception | None = None
        with self.journal.call("run", worker=self.name, row=as_row(job)) as outcome:
            try:
                outcome["result"] = self.act(job)
            except Exception as error:
                outcome["result"], raised = told(error), error
        if raised is not None:
            raise raised

    def act(self, job: JobHandle) -> list[Any]:
        time.sleep(self.rng.choice((0, 0, 0, 0.01, 0.1, 0.4)))
        text = f"{self.name}-{job.id}-{job.attempt}"
        [ending] = self.rng.choices(list(ENDINGS), list(ENDINGS.values()))
        match ending:
            case "book":
                # The work becomes true with its ack.
                with self.store.transaction() as tx:
                    if not self.call("book", lambda: self.book(job, tx.connection, tx), job):
                        raise alkstore.Fail(text)
            case "settle":
                self.settle(job, text)
                return ["held"]
            case "stumble":
                raise ValueError(text)
            case "retry":
                raise alkstore.Retry(
                    self.rng.choice((None, text)), self.rng.choice((None, 0, 0, 2))
                )
            case "fail":
                raise alkstore.Fail(self.rng.choice((None, text)))
            case "block" | "hang" if job.queue == SENT:
                time.sleep(0.5)  # who runs an outbox waits for longer than we do
            case "block":
                time.sleep(3 * DRAIN_S)
            case "hang" if self.may_hang.acquire(blocking=False):
                time.sleep(200)  # longer than anybody has the patience for
            case "crash":
                os._exit(CRASHED)
        return ["ack"]

    def book(self, job: JobHandle, connection: Any, tx: alkstore.Transaction) -> bool:
        token = job.payload["token"]
        connection.execute(f"INSERT INTO booked VALUES ('{token}', {job.attempt})")
        return job.ack(tx=tx)

    def settle(self, job: JobHandle, text: str) -> None:
        call, *more = self.rng.choice(
            (
                ("ack",), ("ack",), ("release",), ("heartbeat", None), ("heartbeat", 9),
                ("fail", text), ("retry", text, 0), ("retry", None, None),
            )
        )  # fmt: skip
        self.call(call, lambda: getattr(job, call)(*more), job, *more)
        if call == "heartbeat":
            self.call("ack", job.ack, job)

    # -- what runs it

    def serve(self) -> None:
        """Two queues and an outbox by one Worker."""
        alkstore.Worker(
            self.store,
            {"served": self.handle, "busy": self.handle, self.store.outbox("sent"): self.handle},
            concurrency=4,
            stop=self.stop,
            poll_s=self.poll_s,
            drain_s=DRAIN_S,
            worker_id=self.name,
        ).run()

    def send(self) -> None:
        outbox = self.store.outbox("sent")
        outbox.run(self.handle, stop=self.stop, concurrency=2, worker_id=self.name)

    def consume(self) -> None:
        """Nobody but us settles these."""
        queue = self.store.queue("consumed")
        batch = self.rng.choice((1, 4))
        for job in queue.consume(self.name, batch=batch, stop=self.stop, poll_s=self.poll_s):
            with self.journal.call("run", worker=self.name, row=as_row(job)) as outcome:
                time.sleep(self.rng.choice((0, 0, 0, 0.01, 0.1)))
                if self.rng.random() < 0.003:
                    os._exit(CRASHED)
                outcome["result"] = ["held"]
            with suppress(Undone, alkstore.Unavailable):  # it lapses
                self.settle(job, f"{self.name}-{job.id}-{job.attempt}")

    def command(self) -> None:
        """`alkstore work` in our place."""
        os.environ["TORTURE_JOURNAL"] = str(self.folder / f"{self.name}.jsonl")
        os.environ["TORTURE_WORKER"] = self.name
        command = f"exec {sys.executable} -I -S {Path(__file__).with_name('command.py')}"
        arguments = {
            "exec": command, "concurrency": 3, "poll-s": self.poll_s, "drain-s": DRAIN_S,
            "worker-id": self.name, "url": self.url,
        }  # fmt: skip
        options = [f"--{name}={value}" for name, value in arguments.items()]
        os.execv(sys.executable, [sys.executable, "-m", "alkstore", "work", "commanded", *options])

    def work(self, role: str) -> None:
        if role == "command":
            self.command()
        logging.info("at work")
        with self.open() as self.store:
            getattr(self, role)()


def as_row(job: JobHandle) -> dict[str, Any]:
    return dict(zip(CLAIM_COLUMNS, row(job), strict=True))


def told(error: Exception) -> list[Any]:
    """How a Worker settles the job of a handler that raises this."""
    if isinstance(error, alkstore.Fail):
        return ["fail", str(error) or None]
    if isinstance(error, alkstore.Retry):
        return ["retry", str(error) or None, error.delay_s]
    return ["retry", "".join(format_exception_only(error)).strip(), None]


def run(role: str, url: str, folder: Path, name: str) -> None:
    """The whole life of a process, until SIGTERM. What it logs tells when it is at work."""
    log = os.open(folder / f"{name}.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.dup2(log, sys.stderr.fileno())
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    os.environ["PGAPPNAME"] = "torture"
    Handlers(url, folder, name).work(role)
