"""bench/herd.py for a moment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "bench" / "herd.py"


@pytest.mark.parametrize("options", [[], ["--after-a-job"]])
def test_each_case_is_measured_and_nobody_claims(options: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, SCRIPT, "--rounds", "1", "--seconds", "0.1", *options],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "round 1 of 1 done\n")
    told = [line.split() for line in done.stdout.splitlines()[2:]]
    names = [line[:14].rstrip() for line in done.stdout.splitlines()[2:]]
    assert names == ["nobody", "16 threads", "16 processes"]
    assert [line[-1] for line in told] == ["0", "0", "0"]
