"""Do idle consumers slow down an application's commits on SQLite? p99 with them as part of without.

    python bench/herd.py                   # two minutes
    python bench/herd.py --after-a-job     # the same, when the watchers look as often as they can

An application commits an update of a table of its own 200 times a second, paced by the clock.
Beside it nobody waits for jobs, or 16 consumers do: threads of one store in one process, or 16
processes. Each round has all three, in changing order, with new processes and a new file. Told are
the medians of all rounds, the least and the greatest ratio of a round, and what the consumers did
meanwhile: how much of a core they used, all together, and how often they took the write lock, which
should be never. The times depend on the machine, and on what else runs there.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import sys
import tempfile
import threading
import time
from collections import defaultdict
from contextlib import ExitStack, closing
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "python")]

import alkstore  # noqa: E402
from alkstore.sqlite import SqliteEngine  # noqa: E402

COMMITS_A_SECOND = 200
CONSUMERS = 16
CASES = {"nobody": [], "16 threads": [CONSUMERS], "16 processes": [1] * CONSUMERS}  # by process


class Phase(NamedTuple):
    p50_ms: float
    p99_ms: float
    cores: float
    claims: int


def consume(path: str, consumers: int, reports: Connection) -> None:
    """A process of consumers. It tells its CPU time and claims whenever asked."""
    claims = 0
    claim = SqliteEngine.claim

    def counted_claim(self: SqliteEngine, *arguments: object) -> list[list[object]]:
        nonlocal claims
        claims += 1
        return claim(self, *arguments)  # type: ignore[arg-type]

    SqliteEngine.claim = counted_claim  # type: ignore[assignment,method-assign]

    def wait(number: int) -> None:
        for job in store.queue("q").consume(f"worker {number}", stop=stop, poll_s=600):
            job.ack()

    stop = alkstore.StopToken()
    with alkstore.open(path) as store:
        threads = [threading.Thread(target=wait, args=[number]) for number in range(consumers)]
        for thread in threads:
            thread.start()
        reports.send(None)
        while reports.recv():
            reports.send((time.process_time(), claims))
        stop.set()
        for thread in threads:
            thread.join()


def commit_times(path: str, synchronous: str, seconds: float) -> list[float]:
    times = []
    with closing(sqlite3.connect(path, isolation_level=None, timeout=30)) as connection:
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        begun_at = time.perf_counter()
        for number in range(int(seconds * COMMITS_A_SECOND)):
            time.sleep(max(0, begun_at + number / COMMITS_A_SECOND - time.perf_counter()))
            before = time.perf_counter()
            connection.execute("UPDATE counter SET n = n + 1")
            times.append(time.perf_counter() - before)
    return sorted(times)


def run(processes: list[int], options: argparse.Namespace) -> Phase:
    context = get_context("spawn")
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        path = f"{folder}/app.db"
        alkstore.install(path)
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(
                "PRAGMA journal_mode = WAL;CREATE TABLE counter (n); INSERT INTO counter VALUES (0)"
            )
        ends = []
        for consumers in processes:
            mine, theirs = context.Pipe()
            process = context.Process(target=consume, args=(path, consumers, theirs), daemon=True)
            process.start()
            stack.callback(process.join)
            stack.callback(mine.send, False)
            ends.append(mine)
        for end in ends:
            end.recv()

        def report() -> tuple[float, int]:
            for end in ends:
                end.send(True)
            answers = [end.recv() for end in ends]
            return sum(cpu_s for cpu_s, _ in answers), sum(claims for _, claims in answers)

        def come_to_rest() -> None:
            before = -1
            while (claims := report()[1]) != before:
                before = claims
                time.sleep(1)

        come_to_rest()
        if options.after_a_job and processes:
            with alkstore.open(path) as store:
                store.queue("q").enqueue(1)
                while store.queue("q").get_job(1):
                    time.sleep(0.001)
            come_to_rest()  # those who were told as well have seen that it is gone

        began, (cpu_s, claims) = time.perf_counter(), report()
        times = commit_times(path, options.synchronous, options.seconds)
        took, (more_cpu_s, more_claims) = time.perf_counter() - began, report()
        p50, p99 = times[len(times) // 2], times[len(times) * 99 // 100]
        return Phase(p50 * 1e3, p99 * 1e3, (more_cpu_s - cpu_s) / took, more_claims - claims)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--after-a-job", action="store_true")
    parser.add_argument("--synchronous", choices=["FULL", "NORMAL"], default="FULL")
    options = parser.parse_args()

    phases: dict[str, list[Phase]] = defaultdict(list)
    ratios: dict[str, list[float]] = defaultdict(list)
    for number in range(options.rounds):
        names = list(CASES)[:: 1 if number % 2 == 0 else -1]
        for name in names:
            phases[name].append(run(CASES[name], options))
        for name in names:
            ratios[name].append(phases[name][-1].p99_ms / phases["nobody"][-1].p99_ms)
        print(f"round {number + 1} of {options.rounds} done", file=sys.stderr)
    print(
        f"SQLite {sqlite3.sqlite_version}, synchronous {options.synchronous}, medians of "
        f"{options.rounds} rounds; load {os.getloadavg()[1]:.1f} on {os.cpu_count()} cores"
    )
    print(f"{'who waits':14}{'p50 ms':>8}{'p99 ms':>8}{'ratio':>7}{'from':>6}{'to':>6}", end="")
    print(f"{'cores':>7}{'claims':>8}")
    for name in CASES:
        p50, p99, cores, _ = map(median, zip(*phases[name], strict=True))
        claims = sum(phase.claims for phase in phases[name])
        print(f"{name:14}{p50:8.2f}{p99:8.2f}{median(ratios[name]):7.2f}", end="")
        print(f"{min(ratios[name]):6.2f}{max(ratios[name]):6.2f}{cores:7.3f}{claims:8}")


if __name__ == "__main__":
    main()
