"""bench/leader_kills.py in its short form, on both engines at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "bench" / "leader_kills.py"


def test_killed_leaders_lose_and_double_no_boundary(sqlite_path: Path, pg_url: str) -> None:
    options = ["--seconds", "20", "--kill-every", "6", "--ttl", "3", "--late", "15"]
    command = [sys.executable, SCRIPT, *options]
    processes = [
        subprocess.Popen([*command, target], stdout=subprocess.PIPE, text=True)
        for target in (str(sqlite_path), pg_url)
    ]
    for process in processes:
        output, _ = process.communicate(timeout=300)
        assert process.returncode == 0, output
        assert "2 kills" in output
        assert "0 missing, 0 doubled" in output
