"""bench/wake_latency.py with few samples, on both engines."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "bench" / "wake_latency.py"


def test_every_case_is_measured(pg_url: str) -> None:
    options = ["--samples", "10", "--gap-ms", "5", "--idle-seconds", "0.1", "--url", pg_url]
    done = subprocess.run(
        [sys.executable, SCRIPT, *options], capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, done.stderr) == (0, "")
    latencies, medians, idle = done.stdout.split("\n\n")
    databases = ("SQLite full", "SQLite normal", "PostgreSQL")
    cases = [f"{d}, {c}" for d in databases for c in ("Queue.consume", "Worker")]
    paced = [f"{case:30}{pace:7}" for case in cases for pace in ("quiet", "busy")]
    for block in (latencies, medians):
        assert [line.partition("p50")[0] for line in block.splitlines()[1:]] == paced
    assert [line[:30].rstrip() for line in idle.splitlines()[1:]] == cases
