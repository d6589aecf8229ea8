"""What does a Worker gain over workers that claim one job, do it and ack it, each by itself?

    python bench/worker_throughput.py [--rounds 7] [--jobs 4000]       # PG=18 for another version

Eight handlers at once, which do nothing or sleep for a millisecond, on a new SQLite file and on a
PostgreSQL of its own, both durable. The other shape is eight threads, each with a connection of its
own, in one process and in four, and by the driver alone: nothing of the package slows it down. The
shapes take turns in each round; each gets the same jobs, enqueued before it starts. The ratios are
of the rates of one round. All of this depends on the machine and on what else runs there.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import sqlite3
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import NamedTuple

import psycopg

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "python")]

import alkstore  # noqa: E402
from alkstore import JobHandle, StopToken, Store, Worker  # noqa: E402
from tests.harness.server import Server  # noqa: E402

CONCURRENCY = 8
SPAWN = multiprocessing.get_context("spawn")


class Case(NamedTuple):
    engine: str
    handler_s: float
    shape: str


def by_worker(store: Store, target: str, jobs: int, handler_s: float) -> float:
    """Seconds from the start of a Worker until it has ended, with all acks sent."""
    stop = StopToken()
    numbers = itertools.count(1)

    def handle(job: JobHandle) -> None:
        work(handler_s)
        if next(numbers) == jobs:
            stop.set()

    began = time.perf_counter()
    Worker(store, {"q": handle}, concurrency=CONCURRENCY, stop=stop).run()
    return time.perf_counter() - began


def work(handler_s: float) -> None:
    if handler_s:
        time.sleep(handler_s)


def by_threads(store: Store, target: str, jobs: int, handler_s: float) -> float:
    start, end = threading.Barrier(CONCURRENCY + 1), threading.Barrier(CONCURRENCY + 1)
    for _ in range(CONCURRENCY):
        arguments = (target, handler_s, start.wait, end.wait)
        threading.Thread(target=one_by_one, args=arguments).start()
    start.wait()
    began = time.perf_counter()
    end.wait()
    return time.perf_counter() - began


def by_processes(store: Store, target: str, jobs: int, handler_s: float) -> float:
    start, end = SPAWN.Barrier(CONCURRENCY + 1), SPAWN.Barrier(CONCURRENCY + 1)
    processes = [
        SPAWN.Process(target=some_threads, args=(target, handler_s, start, end)) for _ in range(4)
    ]
    for process in processes:
        process.start()
    start.wait()
    began = time.perf_counter()
    end.wait()
    took_s = time.perf_counter() - began
    for process in processes:
        process.join()
    return took_s


def some_threads(target: str, handler_s: float, start: object, end: object) -> None:
    threads = [
        threading.Thread(target=one_by_one, args=(target, handler_s, start.wait, end.wait))
        for _ in range(CONCURRENCY // 4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def one_by_one(
    target: str, handler_s: float, start: Callable[[], object], end: Callable[[], object]
) -> None:
    """Claim a job, do it, ack it, until there is none."""
    naive = on_postgres if target.startswith("postgres") else on_sqlite
    naive(target, handler_s, start)
    end()


def on_postgres(url: str, handler_s: float, start: Callable[[], object]) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        start()
        claim = "SELECT job_id, attempt, payload::text FROM alkstore.claim('q', 'naive')"
        while row := connection.execute(claim).fetchone():
            work(handler_s)
            connection.execute("SELECT alkstore.ack('q', %s, %s)", row[:2])


def on_sqlite(path: str, handler_s: float, start: Callable[[], object]) -> None:
    with closing(sqlite3.connect(path, timeout=60, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = FULL")
        start()
        claim = """
            INSERT INTO alkstore_claim(queue, worker_id) VALUES ('q', 'naive')
            RETURNING (SELECT jobs FROM alkstore_claimed_json)"""
        ack = "INSERT INTO alkstore_ack(queue, job_id, attempt) VALUES ('q', ?, ?) RETURNING 1"
        while found := json.loads(connection.execute(claim).fetchall()[0][0]):
            work(handler_s)
            connection.execute(ack, (found[0]["job_id"], found[0]["attempt"])).fetchall()


SHAPES = {
    "Worker": by_worker,
    "1 process": by_threads,
    "4 processes": by_processes,
}
CASES = [
    Case(engine, handler_s, shape)
    for engine in ("sqlite", "postgres")
    for handler_s in (0.0, 0.001)
    for shape in SHAPES
]


def run(case: Case, target: str, jobs: int) -> float:
    """Jobs a second."""
    with alkstore.open(target) as store:
        queue = store.queue("q")
        queue.enqueue_batch({"to": number} for number in range(jobs))
        if case.engine == "postgres":
            with psycopg.connect(target, autocommit=True) as connection:
                connection.execute("VACUUM ANALYZE alkstore._job")
        took_s = SHAPES[case.shape](store, target, jobs, case.handler_s)
        if queue.next_due() is not None:
            raise RuntimeError("not all jobs are done")
    return jobs / took_s


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--jobs", type=int, default=4000)
    options = parser.parse_args()

    rates: dict[Case, list[float]] = defaultdict(list)
    with Server(durable=True) as server, tempfile.TemporaryDirectory() as folder:
        targets = {"sqlite": f"{folder}/app.db", "postgres": server.url}
        alkstore.install(server.url)
        for number in range(options.rounds):
            for case in CASES if number % 2 == 0 else CASES[::-1]:
                rates[case].append(run(case, targets[case.engine], options.jobs))
            print(f"round {number + 1} of {options.rounds} done", file=sys.stderr)
        print(f"PostgreSQL {server.major}, SQLite {sqlite3.sqlite_version}; ", end="")
        print(f"medians of {options.rounds} rounds, {options.jobs} jobs")
    print(f"{'':10}{'handler':>8}  {'shape':12}{'jobs/s':>8}{'Worker is':>11}{'from':>7}{'to':>7}")
    for case, all_ in rates.items():
        best = rates[case._replace(shape="Worker")]
        ratios = [ours / theirs for ours, theirs in zip(best, all_, strict=True)]
        print(f"{case.engine:10}{1000 * case.handler_s:5.0f} ms  {case.shape:12}", end="")
        print(f"{median(all_):8.0f}", end="" if case.shape != "Worker" else "\n")
        if case.shape != "Worker":
            print(f"{median(ratios):10.1f}x{min(ratios):7.1f}{max(ratios):7.1f}")


if __name__ == "__main__":
    main()
