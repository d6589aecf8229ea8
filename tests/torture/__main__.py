"""Tortures an engine in rounds of half a minute, each followed by an audit.

    python -m tests.torture sqlite|postgres [--minutes 1] [--seed TEXT]
    python -m tests.torture again FOLDER

In a round, processes produce, work and sweep, while another kills, stops and locks them, restarts
the server and moves the clock. In every other round some work through the package, a Worker and
such, in queues of their own, and are told to end now and then; before the round is over, they must
have taken all that was ready. Then the queues are drained, and the audit goes through all that was
journaled. What is found is printed with the folder of the journals, which `again` audits once
more; it makes the exit status 1.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from tests.harness.server import Server
from tests.torture.audit import Report, audit
from tests.torture.chaos import Round
from tests.torture.database import set_up
from tests.torture.journal import read

ROUND_S = 30


def torture(engine: str, minutes: float, seed: str, folder: Path) -> int:
    """The number of findings."""
    totals = Report()
    with ExitStack() as stack:
        server = stack.enter_context(Server(durable=True)) if engine == "postgres" else None
        url = server.url if server else str(folder / "app.db")
        set_up(url, engine)
        stop_at = time.time() + 60 * minutes
        while (left := stop_at - time.time()) > 5:
            totals.figures["rounds"] += 1
            number = totals.figures["rounds"]
            journals = folder / f"{seed}-{number}"
            journals.mkdir()
            round = Round(engine, url, server, journals, package=number % 2 == 1)
            round.run(min(ROUND_S, left))
            (journals / "final.json").write_text(json.dumps(round.drain()))
            report = again(journals)
            report.figures += round.happened
            totals.figures += report.figures
            totals.findings += report.findings
            if report.findings:
                print("\n".join(f"FOUND in {journals}: {text}" for text in report.findings))
            else:
                shutil.rmtree(journals)
            print(f"{journals.name}: {told(report.figures)}", flush=True)
    print(f"{engine}: {told(totals.figures)}; findings: {len(totals.findings)}")
    return len(totals.findings)


def again(journals: Path) -> Report:
    return audit(read(journals), json.loads((journals / "final.json").read_text()))


def told(figures: Counter[str]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in figures.items())


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=["sqlite", "postgres", "again"])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--seed", default=f"{random.randrange(10**6)}")
    options = parser.parse_args()
    if options.what == "again":
        report = again(options.folder)
        print(*report.findings, told(report.figures), sep="\n")
        return 1 if report.findings else 0
    folder = Path(tempfile.mkdtemp(prefix="alkstore-torture-"))
    if torture(options.what, options.minutes, options.seed, folder):
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
