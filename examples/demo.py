"""Fingerprints of a tree of files: one job per file, four worker processes, two accidents.

Run it by `make demo`. DIR=… is the tree, by default Python's standard library; ALKSTORE_URL=… the
database, by default SQLite in a temporary folder. A file vanishes before a worker reads it: its job
is retried and ends as a dead letter. A worker gets stuck with jobs in hand and is killed: others do
its jobs when its claims have expired. Exit code 1 if a job was lost, done without its record, done
twice, or recorded wrongly. Ctrl-C ends it, and clears away what it made.
"""

from __future__ import annotations

import hashlib
import itertools
import multiprocessing
import os
import secrets
import signal
import sqlite3
import sys
import sysconfig
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import alkstore

VISIBILITY_TIMEOUT_S = 3  # short, to see the killed worker's jobs come back
SPAWN = multiprocessing.get_context("spawn")  # no process inherits another's connections


def main() -> int:
    tree = Path(os.environ.get("DIR") or sysconfig.get_path("stdlib"))
    if not (files := files_under(tree)):
        raise SystemExit(f"demo: no files under {tree}")
    sys.stdout.reconfigure(errors="backslashreplace")  # a file's name need not be text
    with tempfile.TemporaryDirectory(prefix="alkstore-demo-") as scratch:
        target = os.environ.get("ALKSTORE_URL") or str(Path(scratch, "demo.db"))
        doomed = Path(scratch, "gone-before-it-was-read")
        doomed.touch()
        try:
            alkstore.install(target)  # where it is not there yet
            with alkstore.open(target, busy_timeout_s=60) as store, closing(Demo(store)) as demo:
                print(f"{tree}: {len(files):,} files, and one that will vanish", flush=True)
                demo.enqueue([doomed, *files])
                doomed.unlink()
                demo.run_workers(target)
                return demo.report()
        except alkstore.AlkstoreError as error:
            raise SystemExit(f"demo: {error}") from error


def files_under(tree: Path) -> list[Path]:
    """The regular files, without folders that are not the library's or that Python writes into."""
    paths = []
    for folder, subfolders, names in os.walk(tree):
        subfolders[:] = set(subfolders) - {"__pycache__", "site-packages", "dist-packages"}
        paths += [Path(folder, name) for name in names]
    return sorted(path for path in paths if path.is_file() and not path.is_symlink())


def work(target: str, queue_name: str, number: int, stuck: Event) -> None:
    """One worker process, until it is told to stop. The first gets stuck with its twentieth job."""
    stop = alkstore.StopToken.on_signals(signal.SIGTERM)
    jobs = itertools.count(1)
    with alkstore.open(target, busy_timeout_s=60) as store:
        if number != 1:  # or nothing might be left for the first one to get stuck with
            for _ in range(600):
                if stuck.wait(timeout=0.1) or stop.is_set():
                    break

        def handle(job: alkstore.JobHandle) -> None:
            if number == 1 and next(jobs) >= 20:
                stuck.set()
                multiprocessing.parent_process().join()
            fingerprint(job, store)

        alkstore.Worker(store, {queue_name: handle}, concurrency=2, stop=stop).run()


def fingerprint(job: alkstore.JobHandle, store: alkstore.Store) -> None:
    """Record a file's SHA-256 and number of line ends, or that it could not be read."""
    digest, lines = hashlib.sha256(), 0
    try:
        with open(job.payload, "rb") as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
                lines += piece.count(b"\n")
    except OSError as error:
        result, settle = (None, None), partial(job.retry, error.strerror)
    else:
        result, settle = (digest.hexdigest(), lines), job.ack
    with store.transaction() as tx:  # ack and record become true together, or not at all
        if settle(tx=tx):  # else the claim has expired meanwhile: the job is for another to do
            mark = "?" if isinstance(tx.connection, sqlite3.Connection) else "%s"
            insert = f"INSERT INTO {job.queue} VALUES ({', '.join([mark] * 5)})"
            tx.connection.execute(insert, (job.id, job.attempt, *result, time.time()))


class Demo:
    """One run. Its queue and its business table have the same name, and are gone afterwards."""

    def __init__(self, store: alkstore.Store) -> None:
        self.store = store
        self.queue = store.queue(
            f"alkstore_demo_{secrets.token_hex(4)}",
            visibility_timeout_s=VISIBILITY_TIMEOUT_S,
            backoff_base_s=1,
            dead_letter_retention_s=0,
        )
        self.paths: dict[int, Path] = {}  # by job id
        self.started_at = time.time()

    def enqueue(self, paths: list[Path]) -> None:
        columns = "job_id bigint, attempt bigint, sha256 text, lines bigint, at double precision"
        table = f"CREATE TABLE {self.queue.name} ({columns}, PRIMARY KEY (job_id, attempt))"
        with self.store.transaction() as tx:
            tx.connection.execute(table)
            job_ids = self.queue.enqueue_batch((str(path) for path in paths), tx=tx)
        self.paths = dict(zip(job_ids, paths, strict=True))

    def jobs_left(self) -> dict[int, alkstore.JobRecord]:
        with self.store.transaction() as tx:
            jobs = [self.queue.get_job(job_id, tx=tx) for job_id in self.paths]
        return {job.id: job for job in jobs if job is not None}

    def read(self, what: str) -> list[tuple[Any, ...]]:
        with self.store.transaction() as tx:
            return list(tx.connection.execute(f"SELECT {what} FROM {self.queue.name}"))

    def run_workers(self, target: str) -> None:
        """Start four workers, kill the one that got stuck, wait for the others."""
        stop = alkstore.StopToken.on_signals()  # a call to the database runs to its end first
        stuck = SPAWN.Event()
        first, *others = workers = [
            SPAWN.Process(target=work, args=(target, self.queue.name, number, stuck))
            for number in range(1, 5)
        ]
        try:
            with ctrl_c_ignored():  # by the workers, for good: it is for us, who kill them
                for worker in workers:
                    worker.start()
            with progress(len(self.paths) - 1) as show:  # the vanished one will never be done
                done = 0
                while self.queue.next_due():  # also while a claim may expire, a retry be due
                    if stop.wait(0.1):
                        raise KeyboardInterrupt
                    before, [(done,)] = done, self.read("count(sha256)")
                    if done > before:
                        show(done)
                    if stuck.is_set() and done > len(self.paths) / 3 and first.is_alive():
                        first.kill()
                        first.join()
                        print("killed worker 1, which had jobs in hand", flush=True)
                for worker in others:
                    worker.terminate()
                    worker.join()
        finally:
            for worker in workers:
                worker.kill()
                worker.join()

    def report(self) -> int:
        """Print what happened, check every job, and give the exit code."""
        rows = self.read("job_id, attempt, sha256, at")
        outcomes: dict[int, dict[int, str | None]] = defaultdict(dict)
        for job_id, attempt, sha256, _ in rows:
            outcomes[job_id][attempt] = sha256
        left = self.jobs_left()
        retries, reclaimed, dead, problems = 0, 0, [], []
        for job_id, path in self.paths.items():
            job = left.get(job_id)
            last_attempt = job.attempts if job else max(outcomes[job_id], default=0)
            digests = [sha256 for sha256 in outcomes[job_id].values() if sha256]
            retries += len(outcomes[job_id].keys() - {last_attempt})
            reclaimed += len(outcomes[job_id]) < last_attempt  # a claim ended without a word
            if job and job.state == "dead" and not digests:
                dead.append(f"{path}: {job.last_error}")
            elif job or len(digests) != 1:
                problems.append(f"{path}: {job.state if job else 'gone'}, {len(digests)} records")
            elif digests != [digest_of(path)]:
                problems.append(f"{path}: the record differs from the file")
        first_time = [at for _, attempt, sha256, at in rows if attempt == 1 and sha256]
        rate = len(first_time) / (max(first_time, default=time.time()) - self.started_at)
        print(f"files done       {sum(sha256 is not None for _, _, sha256, _ in rows):,}")
        print(f"retries          {retries:,}")
        print(f"dead letters     {len(dead):,}", *dead, sep="\n                 ")
        print(f"reclaimed jobs   {reclaimed:,}")
        print(f"jobs per second  {rate:,.0f} (those done at the first attempt)")
        print(f"problems         {len(problems):,}", *problems, sep="\n                 ")
        return 1 if problems else 0

    def close(self) -> None:
        with self.store.transaction() as tx:
            tx.connection.execute(f"DROP TABLE IF EXISTS {self.queue.name}")
        while left := self.jobs_left():
            for job_id in left:
                self.queue.cancel(job_id)  # False for a dead one, which the sweep takes
            self.queue.sweep_expired()
            time.sleep(0.1)


def digest_of(path: Path) -> str | None:
    with suppress(OSError), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
    return None


@contextmanager
def ctrl_c_ignored() -> Iterator[None]:
    """For the block, and for as long as they live in processes that are started in it."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def progress(total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on a terminal, plain lines elsewhere."""
    if sys.stdout.isatty():
        from rich.progress import Progress

        with Progress() as bar:
            task = bar.add_task("files", total=total)
            yield lambda done: bar.update(task, completed=done)
    else:
        yield lambda done: print(f"{done:,} of {total:,}", flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("demo: interrupted", file=sys.stderr)
        sys.exit(128 + signal.SIGINT)
