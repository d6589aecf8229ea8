"""examples/sweeper.py sweeps several queues and keeps dead letters for their time."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import alkstore
from alkstore import Store
from tests.python.waiting import until

SCRIPT = Path(__file__).parents[2] / "examples" / "sweeper.py"


def states(store: Store, jobs: dict[str, int]) -> dict[str, str | None]:
    """By the name of a job its state; None when it is gone."""
    found = {name: store.queue(name.split()[0]).get_job(id) for name, id in jobs.items()}
    return {name: job.state if job else None for name, job in found.items()}


def test_the_sweeper(store: Store, target: str) -> None:
    jobs = {}
    for queue in ("emails", "reports", "others"):
        brief = store.queue(queue, dead_letter_retention_s=1)
        kept = store.queue(queue)
        jobs[f"{queue} expires, deleted after a second"] = brief.enqueue(1, expires_s=1)
        jobs[f"{queue} expires, kept"] = kept.enqueue(2, expires_s=1)
        jobs[f"{queue} stays"] = kept.enqueue(3, expires_s=3600)
    process = subprocess.Popen(
        [sys.executable, SCRIPT, target, "emails", "reports", "--every", "1s"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    after_sweeps = {
        **{f"{queue} expires, deleted after a second": None for queue in ("emails", "reports")},
        **{f"{queue} expires, kept": "dead" for queue in ("emails", "reports")},
        **{f"{queue} stays": "pending" for queue in ("emails", "reports")},
        "others expires, deleted after a second": "pending",
        "others expires, kept": "pending",
        "others stays": "pending",
    }
    try:
        until(lambda: states(store, jobs) == after_sweeps)
    finally:
        process.send_signal(signal.SIGTERM)
        stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stderr) == (0, "")
    told = re.findall(r"(\w+): (\d+) expired, (\d+) deleted", stdout)
    for queue in ("emails", "reports"):
        assert sum(int(expired) for name, expired, _ in told if name == queue) == 2
        assert sum(int(deleted) for name, _, deleted in told if name == queue) == 1
    assert {name for name, _, _ in told} == {"emails", "reports"}
    with alkstore.open(target) as other:  # it has resigned
        assert other.lead_schedules("another", 1)
