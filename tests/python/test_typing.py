"""A program that is right passes a strict type checker, one that is wrong does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import alkstore


def send(job: alkstore.JobHandle) -> None:
    print(job.payload, job.claim_expires_at.year)


def main(store: alkstore.Store) -> None:
    emails, mail = store.queue("emails"), store.outbox("mail")
    job_id: int = emails.enqueue({"to": 7})
    record: alkstore.JobRecord | None = emails.get_job(job_id)
    by_name, by_queue, by_outbox = {"emails": send}, {emails: send}, {mail: send}
    alkstore.Worker(store, by_name, concurrency=8, drain_s=None).run()
    alkstore.Worker(store, by_queue, stop=alkstore.StopToken.on_signals()).run()
    alkstore.Worker(store, by_outbox).run()
    alkstore.Worker(store, {"emails": send, mail: lambda job: print(job.id)}).run()
    for job in emails.consume("worker-1", batch=10, poll_s=1):
        done: bool = job.ack()
    mail.run(send, stop=alkstore.StopToken())
"""

WRONG = """
    alkstore.Worker(store, {"emails": 1}).run()
    mail.run(send, stop="now")
    emails.consume(batch="many")
"""


def checked(program: str, folder: Path) -> list[str]:
    path = folder / "program.py"
    path.write_text(program)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(folder), str(path)],
        text=True,
        capture_output=True,
        timeout=300,
        cwd=folder,
    )
    return done.stdout.splitlines()


def test_it_is_typed(tmp_path: Path) -> None:
    assert checked(PROGRAM, tmp_path) == ["Success: no issues found in 1 source file"]
    first = PROGRAM.count("\n") + 2
    lines = checked(PROGRAM + WRONG, tmp_path)
    told = [line for line in lines if ": error: " in line]
    assert [int(line.split(":")[1]) for line in told] == [first, first + 1, first + 2, first + 2]
