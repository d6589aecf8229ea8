"""`alkstore work`: a real process, its commands, and how it ends."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from alkstore import Store
from tests.python.commands import failure, run
from tests.python.waiting import until
from tests.python.working import is_gone, record

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(target: str, store: Store) -> Iterator[Start]:
    """Starts `alkstore work q --exec …`; what still runs is killed in the end."""
    processes: list[subprocess.Popen[str]] = []

    def start(command: str, *options: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "alkstore", "work", "q", "--exec", command, *options],
            env=os.environ | {"ALKSTORE_URL": target},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        with process:  # not communicate(): a command left behind may keep the outputs open
            process.kill()


def stopped(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Exit status and outputs after a SIGTERM."""
    process.send_signal(signal.SIGTERM)
    output, error = process.communicate(timeout=60)
    return process.returncode, output, error


def test_each_job_is_given_to_the_command(store: Store, start: Start) -> None:
    queue = store.queue("q")
    job_ids = queue.enqueue_batch([{"to": n} for n in range(5)])
    process = start("cat; echo")
    until(lambda: is_gone(queue, *job_ids))
    status, output, error = stopped(process)
    assert (status, output.splitlines()) == (0, [f'{{"to": {n}}}' for n in range(5)])
    assert " at work on queue 'q'\n" in error


def test_the_messages_of_an_outbox(store: Store, start: Start) -> None:
    outbox = store.outbox("q")
    message_id = outbox.enqueue([7])
    job_id = store.queue("q").enqueue([8])
    process = start('cat; echo " $ALKSTORE_QUEUE"', "--outbox")
    until(lambda: is_gone(outbox, message_id))
    status, output, error = stopped(process)
    assert (status, output) == (0, "[7] __alkstore_outbox_q\n")
    assert " at work on outbox 'q'\n" in error
    assert record(store.queue("q"), job_id).state == "pending"


def test_a_failing_command_is_tried_again_and_tells_why(store: Store, start: Start) -> None:
    queue = store.queue("q", max_attempts=2, backoff_base_s=1)
    job_id = queue.enqueue(1)
    process = start("echo attempt $ALKSTORE_ATTEMPT >&2; exit 1", "--worker-id", "host-1")
    until(lambda: record(queue, job_id).state == "dead")
    job = record(queue, job_id)
    assert (job.attempts, job.last_error, job.worker_id) == (
        2,
        "exit status 1: attempt 2",
        "host-1",
    )
    status, output, error = stopped(process)
    assert (status, output) == (0, "")
    assert [re.sub(r"^\d{4}-\S+ \S+ ", "", line) for line in error.splitlines()] == [
        "worker host-1: at work on queue 'q'",
        "attempt 1",
        f"job {job_id} of 'q', attempt 1: exit status 1: attempt 1",
        "attempt 2",
        f"job {job_id} of 'q', attempt 2: exit status 1: attempt 2",
        "stopping; handlers that still run: 0",
    ]


def test_what_settles_its_job_itself_makes_the_log_doubt(store: Store, start: Start) -> None:
    queue = store.queue("q")
    job_id = queue.enqueue(1)
    process = start(
        f"{sys.executable} -c 'import alkstore, os;"
        ' store = alkstore.open(os.environ["ALKSTORE_URL"]);'
        ' job_id = int(os.environ["ALKSTORE_JOB_ID"]);'
        ' assert store.queue("q").ack_batch([job_id]) == 1;'
        " store.close()'"
    )
    until(lambda: is_gone(queue, job_id))
    status, output, error = stopped(process)
    assert (status, output) == (0, "")
    says = f"job {job_id} of 'q': its claim was lost, or it was cancelled, before the ack"
    assert [line for line in error.splitlines() if " attempt" in line] == []
    assert error.count(f" {says}\n") == 1


def test_a_stop_lets_the_command_finish(store: Store, start: Start, tmp_path: Path) -> None:
    queue = store.queue("q", visibility_timeout_s=3)
    job_id = queue.enqueue(1)
    waiting = queue.enqueue(2)
    began, go_on = tmp_path / "began", tmp_path / "go-on"
    process = start(f"touch {began}; while ! test -e {go_on}; do sleep 0.05; done")
    until(began.exists)
    process.send_signal(signal.SIGTERM)
    expiry = record(queue, job_id).claim_expires_at
    # A heartbeat, though the stop was given.
    until(lambda: record(queue, job_id).claim_expires_at > expiry)
    go_on.touch()
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert queue.get_job(job_id) is None
    job = record(queue, waiting)
    assert (job.state, job.attempts - job.released) == ("pending", 0)


@pytest.mark.parametrize("way", ["at the end of the drain", "at a second signal"])
def test_what_does_not_finish_is_killed_and_handed_back(
    way: str, store: Store, start: Start, tmp_path: Path
) -> None:
    queue = store.queue("q")
    job_id = queue.enqueue(1)
    pid = tmp_path / "pid"
    command = f"sleep 600 & echo $! > {tmp_path}/new; mv {tmp_path}/new {pid}; wait"
    process = start(command, "--drain-s", "0.1" if way == "at the end of the drain" else "600")
    until(pid.exists)
    process.send_signal(signal.SIGTERM)
    while way == "at a second signal" and process.poll() is None:
        process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == (0 if way == "at the end of the drain" else 128 + signal.SIGTERM)
    until(lambda: not Path("/proc", pid.read_text().strip()).exists())
    job = record(queue, job_id)
    assert (job.state, job.attempts, job.released, job.retry_error) == ("pending", 1, 1, None)


def test_ctrl_c_is_a_stop_too_and_does_not_reach_the_command(
    store: Store, start: Start, tmp_path: Path
) -> None:
    queue = store.queue("q")
    job_id = queue.enqueue(1)
    began, go_on = tmp_path / "began", tmp_path / "go-on"
    process = start(
        f"echo $$ > {tmp_path}/new; mv {tmp_path}/new {began};"
        f" while ! test -e {go_on}; do sleep 0.05; done"
    )
    until(began.exists)
    assert os.getsid(int(began.read_text())) != os.getsid(process.pid)
    process.send_signal(signal.SIGINT)
    go_on.touch()
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert queue.get_job(job_id) is None


def test_wrong_usage(capsys: pytest.CaptureFixture[str], store: Store, target: str) -> None:
    assert run(capsys, "work", "q", "--url", target)[0] == 2
    for command in ("", " \n"):
        status, output, error = run(capsys, "work", "q", "--exec", command, "--url", target)
        assert (status, output) == (2, "")
        assert error.endswith("alkstore work: error: argument --exec: the command is empty\n")
    for option, value, says in (
        ("--concurrency", "0", "concurrency must be at least 1"),
        ("--poll-s", "0", "poll_s must be more than 0 and at most 2000000 s, not 0.0"),
        ("--drain-s", "-1", "drain_s must be from 0 to 2000000 s, not -1.0"),
    ):
        error = failure(capsys, "work", "q", "--exec", "true", option, value, "--url", target)
        assert error == f"alkstore: invalid_option: {says}\n"
    error = failure(capsys, "work", "__alkstore_x", "--exec", "true", "--url", target)
    assert error.startswith("alkstore: invalid_name: ")
