"""Worker in processes of its own: signals, exit statuses, and kills."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from alkstore import Store
from tests.python.waiting import until
from tests.python.working import count, is_gone, record

# Writes down each job that it begins and ends, outside the database. The payload tells for how
# many seconds it works.
PROGRAM = """
import os, sys, time
import alkstore

target, log, options = sys.argv[1], sys.argv[2], eval(sys.argv[3])
file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def tell(event, job):
    os.write(file, f"{event} {job.id} {job.attempt} {os.getpid()}\\n".encode())


def handle(job):
    tell("begin", job)
    time.sleep(job.payload)
    tell("end", job)


stop = alkstore.StopToken.on_signals()
print("ready", flush=True)
with alkstore.open(target, busy_timeout_s=60) as store:
    alkstore.Worker(store, {"q": handle}, stop=stop, **options).run()
print("the end")
"""


class Processes:
    """Worker processes, and what they wrote down."""

    def __init__(self, target: str, log: Path) -> None:
        self._target = target
        self._log = log
        self.running: list[subprocess.Popen[str]] = []

    def start(self, **options: object) -> subprocess.Popen[str]:
        """One that a signal lets end well from now on."""
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, self._target, self._log, repr(options)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.running.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    def told(self) -> list[tuple[str, int, int, int]]:
        """Event, job, attempt and process."""
        lines = self._log.read_text().splitlines() if self._log.exists() else []
        return [
            (event, int(job), int(attempt), int(pid))
            for event, job, attempt, pid in map(str.split, lines)
        ]

    def begun(self) -> list[int]:
        return [job_id for event, job_id, _, _ in self.told() if event == "begin"]


@contextmanager
def cleared(processes: Processes) -> Iterator[Processes]:
    try:
        yield processes
    finally:
        for process in processes.running:
            process.kill()
            process.communicate()


@pytest.fixture
def processes(target: str, tmp_path: Path) -> Iterator[Processes]:
    with cleared(Processes(target, tmp_path / "log")) as processes:
        yield processes


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    stdout, stderr = process.communicate(timeout=60)
    return process.returncode, stdout, stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_the_job_end_and_then_the_process(
    store: Store, processes: Processes, number: int
) -> None:
    queue = store.queue("q")
    first, second = queue.enqueue_batch([2, 0])
    process = processes.start()
    until(lambda: processes.begun() == [first])
    process.send_signal(number)
    assert ended(process) == (0, "the end\n", "")
    assert processes.told() == [
        ("begin", first, 1, process.pid),
        ("end", first, 1, process.pid),
    ]
    assert is_gone(queue, first)
    assert (record(queue, second).state, record(queue, second).attempts) == ("pending", 0)


def test_a_job_is_kept_while_its_worker_drains(store: Store, processes: Processes) -> None:
    queue = store.queue("q", visibility_timeout_s=2)
    job_id = queue.enqueue(5)
    first = processes.start()
    until(lambda: processes.begun() == [job_id])
    second = processes.start(poll_s=0.1)
    first.terminate()
    assert ended(first) == (0, "the end\n", "")
    assert is_gone(queue, job_id)
    second.terminate()
    assert ended(second) == (0, "the end\n", "")
    assert processes.begun() == [job_id]


def test_after_the_drain_limit_the_process_ends_and_another_has_the_job(
    store: Store, processes: Processes
) -> None:
    queue = store.queue("q", visibility_timeout_s=300)
    job_id = queue.enqueue(3600)
    first = processes.start(drain_s=0.5)
    until(lambda: processes.begun() == [job_id])
    first.terminate()
    told = f"job {job_id} of 'q' still runs, and is handed back\n"
    assert ended(first) == (0, "the end\n", told)
    processes.start()
    until(lambda: processes.told()[1:])
    assert processes.told()[1] == ("begin", job_id, 2, processes.running[1].pid)
    assert (record(queue, job_id).released, record(queue, job_id).retry_error) == (1, None)


def test_a_second_signal_ends_it_at_once(store: Store, processes: Processes) -> None:
    job_id = store.queue("q").enqueue(3600)
    process = processes.start()
    until(lambda: processes.begun() == [job_id])
    process.send_signal(signal.SIGTERM)
    until(lambda: process.send_signal(signal.SIGTERM) or process.poll() is not None)
    assert process.returncode == -signal.SIGTERM


def test_nothing_is_lost_or_run_twice_though_workers_are_killed(
    store: Store, engine: str, processes: Processes
) -> None:
    queue = store.queue("q", visibility_timeout_s=4, max_attempts=100)
    jobs = set(queue.enqueue_batch([0.001] * 5000))
    killed: set[int] = set()
    for _ in range(3):
        processes.start(concurrency=4)
    chance = random.Random(1)
    for n in range(1, 5):
        until(lambda n=n: len(processes.begun()) > 800 * n)
        process = processes.running.pop(chance.randrange(3))
        process.kill()
        process.communicate()
        killed.add(process.pid)
        processes.start(concurrency=4)
    until(lambda: count(store, engine, "true") == 0, 180)
    for process in processes.running:
        process.terminate()
    assert [ended(process)[0] for process in processes.running] == [0, 0, 0]

    told = processes.told()
    assert {job_id for event, job_id, _, _ in told if event == "end"} == jobs
    times = Counter(job_id for event, job_id, _, _ in told if event == "begin")
    lost = {job_id for event, job_id, _, pid in told if event == "begin" and pid in killed}
    # Again only what was in the hands of one that was killed.
    assert {job_id for job_id, number in times.items() if number > 1} <= lost
    assert max(times.values()) <= 5


def test_a_killed_workers_job_is_run_when_its_claim_has_lapsed(
    store: Store, processes: Processes
) -> None:
    queue = store.queue("q", visibility_timeout_s=2)
    job_id = queue.enqueue(2)
    first = processes.start()
    until(lambda: processes.begun() == [job_id])
    first.kill()
    second = processes.start(poll_s=600)
    until(lambda: is_gone(queue, job_id))
    second.terminate()
    assert ended(second) == (0, "the end\n", "")
    assert [line[:3] for line in processes.told()] == [
        ("begin", job_id, 1),
        ("begin", job_id, 2),
        ("end", job_id, 2),
    ]
