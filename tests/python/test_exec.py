"""A command as a handler: what it is given, and what its end means for the job."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from alkstore import JobRecord, RawJson, Store
from alkstore._exec import Command
from tests.python.waiting import until
from tests.python.working import is_gone, record, running


@contextmanager
def working(store: Store, command: Command, **options: Any) -> Iterator[None]:
    try:
        with running(store, {"q": command}, **options):
            yield
    finally:
        command.kill()


def buried(store: Store, command: str, *, payload: str = "null") -> JobRecord:
    """The job, after the command has been its only attempt."""
    queue = store.queue("q", max_attempts=1)
    job_id = queue.enqueue(RawJson(payload))
    with working(store, Command(command)):
        until(lambda: record(queue, job_id).state == "dead")
    return record(queue, job_id)


def test_the_payload_comes_on_standard_input_byte_for_byte(store: Store, tmp_path: Path) -> None:
    payload = '{"b":1,  "a":[1.0,1e2], "a":"日本\\u0000"}' + " " * 200_000  # more than a pipe holds
    queue = store.queue("q")
    job_id = queue.enqueue(RawJson(payload))
    with working(store, Command(f"sleep 0.1; cat > {tmp_path}/payload")):
        until(lambda: is_gone(queue, job_id))
    assert (tmp_path / "payload").read_text() == payload


def test_the_environment_tells_which_job_it_is(store: Store, tmp_path: Path) -> None:
    queue = store.queue("q")
    job_id = queue.enqueue(1)
    command = f'echo "$ALKSTORE_QUEUE $ALKSTORE_JOB_ID $ALKSTORE_ATTEMPT" > {tmp_path}/told'
    with working(store, Command(command)):
        until(lambda: is_gone(queue, job_id))
    assert (tmp_path / "told").read_text() == f"q {job_id} 1\n"


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("echo no route to host >&2; exit 3", "exit status 3: no route to host"),
        ("echo out; echo one >&2; echo two >&2; false", "exit status 1: one\ntwo"),
        ("exit 3", "exit status 3"),
        ("kill -9 $$", "killed by SIGKILL"),
        ("echo page 2 of 9 >&2; kill -9 $$", "killed by SIGKILL: page 2 of 9"),
        ("kill -35 $$", "killed by signal 35"),
        (r"printf 'a\200b' >&2; false", "exit status 1: a\ufffdb"),
    ],
)
def test_any_other_status_than_0_is_an_error(store: Store, command: str, error: str) -> None:
    job = buried(store, command)
    assert (job.retry_error, job.last_error, job.attempts) == (error, error, 1)


@pytest.mark.parametrize(
    ("command", "ended"),
    [
        ("echo no route to host >&2; exit 7", "exit status 7: no route to host"),
        ("kill -9 $$", "killed by SIGKILL"),
    ],
)
def test_the_log_tells_whose_command_failed_and_how(
    store: Store, caplog: pytest.LogCaptureFixture, command: str, ended: str
) -> None:
    with caplog.at_level("INFO", "alkstore"):
        job = buried(store, command)
    told = [record.message for record in caplog.records if "attempt" in record.message]
    assert told == [f"job {job.id} of 'q', attempt 1: {ended}"]


def test_of_a_long_error_the_end_is_kept(store: Store) -> None:
    job = buried(store, "head -c 200000 /dev/zero | tr '\\0' x >&2; echo the end >&2; exit 1")
    assert job.last_error is not None
    assert job.last_error == "exit status 1: " + "x" * (60_000 - len("the end\n")) + "the end"


def test_standard_error_is_passed_on(store: Store, capfd: pytest.CaptureFixture[str]) -> None:
    queue = store.queue("q")
    job_id = queue.enqueue(1)
    with working(store, Command("echo told on the way >&2")):
        until(lambda: is_gone(queue, job_id))
        until(lambda: "told on the way\n" in capfd.readouterr().err)


def test_a_process_left_behind_does_not_hold_up_the_job(store: Store, tmp_path: Path) -> None:
    command = f"sleep 600 & echo $! > {tmp_path}/pid; echo failed >&2; exit 1"
    try:
        assert buried(store, command).last_error == "exit status 1: failed"
    finally:
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


def test_a_kill_takes_what_the_command_has_started_along(store: Store, tmp_path: Path) -> None:
    queue = store.queue("q")
    job_id = queue.enqueue(1)
    pid = tmp_path / "pid"
    command = Command(f"sleep 600 & echo $! > {tmp_path}/new; mv {tmp_path}/new {pid}; wait")
    with working(store, command, drain_s=0):
        until(pid.exists)
    until(lambda: not Path("/proc", pid.read_text().strip()).exists())
    job = record(queue, job_id)
    assert (job.state, job.attempts, job.released, job.retry_error) == ("pending", 1, 1, None)


def test_nothing_is_started_after_a_kill(store: Store, tmp_path: Path) -> None:
    command = Command(f"touch {tmp_path}/started")
    command.kill()
    store.queue("q").enqueue(1)
    handle = store.queue("q").claim_one("w")
    assert handle is not None
    with pytest.raises(InterruptedError):
        command(handle)
    assert not (tmp_path / "started").exists()
