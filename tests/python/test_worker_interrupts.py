"""Worker when an exception comes from outside, and when a handler forks."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import Any

import pytest

from alkstore import Store, Worker
from alkstore.postgres import PostgresSession
from alkstore.sqlite import SqliteSession
from tests.python.working import count


@pytest.mark.parametrize("call", ["look", "settle"])
def test_a_ctrl_c_during_a_call_strands_nothing(
    store: Store, engine: str, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """Jobs are claimed, and the worker has not heard of it yet; or they are not acked yet."""
    queue = store.queue("q")
    queue.enqueue_batch(range(20))
    session: Any = {"sqlite": SqliteSession, "postgres": PostgresSession}[engine]
    made = getattr(session, call)
    signals = [signal.SIGINT]

    def interrupted(*arguments: Any) -> Any:
        answer = made(*arguments) if call == "look" else None
        if signals:
            signal.raise_signal(signals.pop())
        return answer or made(*arguments)

    monkeypatch.setattr(session, call, interrupted)
    done: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        Worker(store, {"q": lambda job: done.append(job.id)}).run()
    assert count(store, engine, "state = 'processing'") == 0
    assert count(store, engine, "attempts <> released") == 0
    assert [job_id for job_id in done if queue.get_job(job_id)] == []


# The fork ends the handler in one of the usual ways.
FORKS = """
import os, sys
import alkstore

target, how = sys.argv[1:]
stop = alkstore.StopToken()
parent = os.getpid()
children = []


def handle(job):
    os.write(1, f"job {job.payload} {os.getpid() == parent}\\n".encode())
    if job.payload == 20 and (child := os.fork()) != 0:
        children.append(child)
    elif job.payload == 20:
        sys.stdout.write("the end of the child\\n")  # into a buffer
        if how == "return":
            return
        if how == "raise":
            raise ValueError("in the child")
        sys.exit(int(how))
    if job.payload == 99:
        stop.set()


with alkstore.open(target) as store:
    store.queue("q").enqueue_batch(range(100))
    alkstore.Worker(store, {"q": handle}, stop=stop).run()
    print("the end", os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]))
"""


@pytest.mark.parametrize(("how", "status"), [("return", 0), ("raise", 1), ("0", 0), ("7", 7)])
def test_a_fork_of_a_handler_ends_with_it_and_runs_no_other_job(
    store: Store, target: str, how: str, status: int
) -> None:
    program = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKS, target, how]
    done = subprocess.run(program, capture_output=True, text=True, timeout=60)
    said = done.stdout.splitlines()
    assert said[-1] == f"the end {status}"
    jobs = [f"job {n} True" for n in range(100)]
    assert sorted(said[:-1]) == sorted([*jobs, "the end of the child"])
    assert ("ValueError: in the child" in done.stderr) == (how == "raise")
    assert store.queue("q").next_due() is None
