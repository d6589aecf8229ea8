"""Kill the leading schedule runner again and again; look whether a boundary is lost or doubled.

    python bench/leader_kills.py                     a new SQLite file
    python bench/leader_kills.py postgresql://...    a PostgreSQL database; alkstore is installed

Three runner processes, one schedule `@every 1s`. Every so often the runner that leads gets SIGKILL
and a new one is started. At the end each boundary must have given exactly one job, and no two jobs
that follow each other may lie further apart than the leadership's time to live plus one second, or
plus what a busy machine is allowed by --late. Exit status 1 when that does not hold.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import alkstore
from alkstore import Job, Store

NAME = "leader kills"
SECOND = timedelta(seconds=1)


class Runners:
    """A number of runner processes; one that is killed is replaced."""

    def __init__(self, target: str, ttl_s: int, number: int) -> None:
        self._command = [sys.executable, "-m", "alkstore", "run-schedules", target]
        self._command += ["--ttl-s", str(ttl_s)]
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        for _ in range(number):
            self._start()

    def _start(self) -> None:
        process = subprocess.Popen(self._command, stderr=subprocess.DEVNULL)
        self._processes[process.pid] = process

    def __contains__(self, pid: object) -> bool:
        return pid in self._processes

    def kill(self, pid: int) -> None:
        process = self._processes.pop(pid)
        process.kill()
        process.wait()
        self._start()

    def stop(self) -> dict[int, int]:
        """Ask all to stop; the exit status of each process."""
        for process in self._processes.values():
            process.terminate()
        return {pid: process.wait(timeout=60) for pid, process in self._processes.items()}


def leader_pid(store: Store, target: str) -> int | None:
    """The process that leads: a runner's name for itself is host:pid:number."""
    locks = "alkstore.locks" if target.startswith("postgres") else "alkstore_locks"
    with store.transaction() as tx:
        query = f"SELECT owner FROM {locks} WHERE name = '__alkstore_scheduler'"
        rows = tx.connection.execute(query).fetchall()
    return int(rows[0][0].split(":")[-2]) if rows else None


def kill_leaders(store: Store, target: str, runners: Runners, seconds: int, every: int) -> int:
    """Kill the leader every so many seconds, the last time so early that another can take over."""
    kills = 0
    living_leader(store, target, runners)
    end = time.monotonic() + seconds
    next_kill = time.monotonic() + every
    while time.monotonic() < end:
        if time.monotonic() >= next_kill and next_kill + every / 2 <= end:
            runners.kill(living_leader(store, target, runners))
            kills += 1
            next_kill += every
        time.sleep(0.05)
    return kills


def living_leader(store: Store, target: str, runners: Runners) -> int:
    """Wait until one leads that has not been killed."""
    while (pid := leader_pid(store, target)) not in runners:
        time.sleep(0.05)
    assert pid is not None
    return pid


def fired(store: Store) -> Iterator[Job]:
    """All jobs, in the order of their boundaries."""
    queue = store.queue(NAME)
    while handles := queue.claim_batch("bench", 1000):
        queue.ack_batch(handles)
        yield from handles


@contextmanager
def database(target: str | None) -> Iterator[str]:
    if target is not None:
        alkstore.install(target)
        yield target
    else:
        with tempfile.TemporaryDirectory() as folder:
            yield str(Path(folder, "leader_kills.db"))


def run(target: str, seconds: int, every: int, ttl_s: int, late_s: int) -> bool:
    with alkstore.open(target) as store:
        store.unschedule(NAME)
        list(fired(store))  # what an earlier run has left
        first = store.schedule(NAME, "@every 1s", NAME, None)
        runners = Runners(target, ttl_s, number=3)
        kills = kill_leaders(store, target, runners, seconds, every)
        leader = living_leader(store, target, runners)
        statuses = runners.stop()
        store.unschedule(NAME)
        jobs = list(fired(store))

    count = Counter(job.run_at for job in jobs)
    expected = [first + number * SECOND for number in range((max(count) - first) // SECOND + 1)]
    missing = [boundary for boundary in expected if boundary not in count]
    doubled = [boundary for boundary in expected if count[boundary] > 1]
    gaps = [(after.created_at - before.created_at) // SECOND for before, after in pairwise(jobs)]
    longest = sorted(gaps)[-kills:][::-1]
    print(f"{seconds} s, ttl {ttl_s} s, a leader killed every {every} s: {kills} kills")
    print(f"{len(jobs)} jobs for {len(expected)} boundaries")
    print(f"{len(missing)} missing, {len(doubled)} doubled")
    print(f"longest gaps between two jobs, in seconds: {', '.join(map(str, longest))}")
    return (
        kills > 0
        and len(expected) >= seconds - ttl_s - late_s
        and not missing
        and not doubled
        and max(gaps) <= ttl_s + 1 + late_s
        and statuses[leader] == 0
        # One that has just been started may not listen to the signal yet.
        and set(statuses.values()) <= {0, -signal.SIGTERM}
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("target", nargs="?", help="a file path or postgresql://URL")
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--kill-every", type=int, default=15, metavar="SECONDS")
    parser.add_argument("--ttl", type=int, default=5, metavar="SECONDS")
    parser.add_argument("--late", type=int, default=0, metavar="SECONDS")
    options = parser.parse_args()
    with database(options.target) as target:
        held = run(target, options.seconds, options.kill_every, options.ttl, options.late)
    print("each boundary once, no gap too long" if held else "FAILED")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
