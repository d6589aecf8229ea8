"""How long from the commit of a job to its handler, in another process? And what does waiting cost?

    python bench/wake_latency.py                                 # 20 minutes; PG=18 for another
    python bench/wake_latency.py --samples 200 --idle-seconds 10        # 4 minutes

One process enqueues, another one consumes by Queue.consume or by a Worker: on a new SQLite file,
with synchronous FULL and NORMAL, and on a PostgreSQL of its own with fsync, or the one at --url.
The time is taken when enqueue has returned and when the handler begins, by the one clock of the
machine. Quiet is a job every so often, busy is hundreds a second, paced by the clock and not by
the answers. Rounds go through all cases in turns. Then the CPU time that a consumer process with
nothing to do takes: just after the last job, a while later, and while another process commits 200
times a second what is none of the queue's business. What else the machine had to do tells in the
load average, and in how long an enqueue took: as a claim, it ends when the disk has its commit.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "python")]

import alkstore  # noqa: E402
from alkstore import JobHandle, Queue, StopToken, Worker  # noqa: E402
from tests.harness.server import Server  # noqa: E402

REPORT = "report"  # the payload that asks a consumer for what it has noted
REPORT_WITHIN_S = 60
COMMITS_A_SECOND = 200


class Case(NamedTuple):
    database: str
    target: str
    synchronous: str  # which PostgreSQL leaves alone
    consumer: str

    @property
    def title(self) -> str:
        return f"{self.database}, {self.consumer}"


class Latencies(NamedTuple):
    enqueue: list[float]  # what a call with a commit takes
    handler: list[float]  # from its return to the handler


def consume(case: Case, queue_name: str, reports: Connection) -> None:
    """The consumer process."""
    stop = StopToken.on_signals(signal.SIGTERM)
    begun_at: dict[int, float] = {}  # by payload

    def handle(job: JobHandle) -> None:
        now = time.monotonic()
        if job.payload == REPORT:
            reports.send(begun_at)
            begun_at.clear()
        else:
            begun_at[job.payload] = now

    with alkstore.open(case.target, synchronous=case.synchronous) as store:
        if case.consumer == "Worker":
            Worker(store, {queue_name: handle}, stop=stop).run()
        else:
            for job in store.queue(queue_name).consume("consumer", batch=10, stop=stop):
                handle(job)
                job.ack()


class Consumer:
    """A consumer process of a queue of its own, seen from the process that enqueues."""

    def __init__(self, case: Case, queue: Queue) -> None:
        context = get_context("spawn")
        self._queue = queue
        self._reports, theirs = context.Pipe(duplex=False)
        self._process = context.Process(target=consume, args=(case, queue.name, theirs))
        self._process.start()
        theirs.close()
        self.latencies(20, 1 / 50)  # statements are prepared, caches warm

    def latencies(self, samples: int, every_s: float) -> Latencies:
        """Milliseconds, for jobs at that interval."""
        asked_at, committed_at = [], []
        first_at = time.monotonic()
        for number in range(samples):
            time.sleep(max(0, first_at + number * every_s - time.monotonic()))
            asked_at.append(time.monotonic())
            self._queue.enqueue(number)
            committed_at.append(time.monotonic())
        self._queue.enqueue(REPORT)
        if not self._reports.poll(REPORT_WITHIN_S):
            raise RuntimeError(f"no report within {REPORT_WITHIN_S} s")
        begun_at = self._reports.recv()
        return Latencies(
            [1000 * (c - a) for a, c in zip(asked_at, committed_at, strict=True)],
            [1000 * (begun_at[number] - c) for number, c in enumerate(committed_at)],
        )

    def cpu_s(self) -> float:
        """CPU seconds so far, of all threads; asked of the kernel, to leave the process alone."""
        assert self._process.pid is not None
        return time.clock_gettime(~self._process.pid << 3 | 2)  # clock_getcpuclockid(3) on Linux

    def close(self) -> None:
        self._process.terminate()
        self._process.join()


@contextmanager
def consumer(case: Case) -> Iterator[Consumer]:
    with (
        alkstore.open(case.target, synchronous=case.synchronous) as store,
        closing(Consumer(case, store.queue(f"{case.title} {os.getpid()}"))) as started,
    ):
        yield started


def unrelated_commits(target: str, until: Connection) -> None:
    """A process that commits to a table of its own, 200 times a second, until told."""
    with alkstore.open(target) as store:
        with store.transaction() as tx:
            tx.connection.execute("CREATE TABLE IF NOT EXISTS unrelated (n integer)")
            tx.connection.execute("DELETE FROM unrelated")
            tx.connection.execute("INSERT INTO unrelated VALUES (0)")
        next_at = time.monotonic()
        while not until.poll(max(0, next_at - time.monotonic())):
            next_at += 1 / COMMITS_A_SECOND
            with store.transaction() as tx:
                tx.connection.execute("UPDATE unrelated SET n = n + 1")


@contextmanager
def beside_unrelated_commits(target: str) -> Iterator[None]:
    context = get_context("spawn")
    theirs, ours = context.Pipe(duplex=False)
    process = context.Process(target=unrelated_commits, args=(target, theirs))
    process.start()
    try:
        yield
    finally:
        ours.send(None)
        process.join()


class Percentiles(NamedTuple):
    p50: float
    p99: float
    most: float

    @classmethod
    def of(cls, values: list[float]) -> Percentiles:
        cuts = quantiles(values, n=100, method="inclusive")
        return cls(cuts[49], cuts[98], max(values))

    def __str__(self) -> str:
        return f"p50 {self.p50:6.2f}  p99 {self.p99:7.2f}  max {self.most:7.2f}"


def measure_latencies(cases: list[Case], options: argparse.Namespace) -> None:
    paces = {"quiet": options.gap_ms / 1000, "busy": 1 / options.rate}
    rounds: dict[str, list[Percentiles]] = defaultdict(list)
    print(f"from commit to handler in ms, {options.samples} samples a round")
    for _ in range(options.rounds):
        for case in cases:
            with consumer(case) as consuming:
                for pace, every_s in paces.items():
                    title = f"{case.title:30}{pace:7}"
                    enqueue, handler = consuming.latencies(options.samples, every_s)
                    rounds[title].append(Percentiles.of(handler))
                    beside = f"enqueue {median(enqueue):.2f}  load {os.getloadavg()[0]:.1f}"
                    print(f"{title}{rounds[title][-1]}  {beside}", flush=True)
    print(f"\nmedians of {options.rounds} rounds, and the least p50")
    for title, all_ in rounds.items():
        middle = Percentiles(*map(median, zip(*all_, strict=True)))
        print(f"{title}{middle}  least {min(all_).p50:.2f}")


def measure_idle(cases: list[Case], seconds: float) -> None:
    """Consumers of one database at once: they have nothing to do."""
    with ExitStack() as stack:
        consumers = [stack.enter_context(consumer(case)) for case in cases]

        def cpu_s_a_minute() -> list[float]:
            before = [each.cpu_s() for each in consumers]
            time.sleep(seconds)
            return [60 * (c.cpu_s() - b) / seconds for c, b in zip(consumers, before, strict=True)]

        columns = [cpu_s_a_minute(), cpu_s_a_minute()]
        with beside_unrelated_commits(cases[0].target):
            columns.append(cpu_s_a_minute())
    load = os.getloadavg()[0]
    for case, figures in zip(cases, zip(*columns, strict=True), strict=True):
        print(f"{case.title:30}{''.join(f'{f:9.2f}' for f in figures)}  load {load:.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--samples", type=int, default=1000, help="of each case in a round")
    parser.add_argument("--gap-ms", type=float, default=100, help="from job to job when quiet")
    parser.add_argument("--rate", type=float, default=500, help="jobs a second when busy")
    parser.add_argument("--idle-seconds", type=float, default=60)
    parser.add_argument("--url", help="a PostgreSQL database; alkstore is installed")
    options = parser.parse_args()

    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        databases = [
            (f"SQLite {mode}", str(Path(folder, f"{mode}.db")), mode) for mode in ("full", "normal")
        ]
        if options.url is None:
            options.url = stack.enter_context(Server(durable=True)).url
        alkstore.install(options.url)
        databases.append(("PostgreSQL", options.url, "full"))
        consumers = ("Queue.consume", "Worker")
        cases = [[Case(*database, consumer) for consumer in consumers] for database in databases]
        measure_latencies([case for group in cases for case in group], options)
        print("\nCPU seconds a minute when idle: after work, later, beside unrelated commits")
        for group in cases:
            measure_idle(group, options.idle_seconds)


if __name__ == "__main__":
    main()
