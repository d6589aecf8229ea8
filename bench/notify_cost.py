"""What does the NOTIFY of an enqueue cost? Jobs a second with alkstore.notify on, as part of off.

    python bench/notify_cost.py [--rounds 7] [--seconds 2]       # PG=18 for another version

It starts a PostgreSQL of its own, with fsync, and lets pgbench enqueue into one queue: one job a
transaction or a batch of a hundred, by 1, 8 and 32 clients, with synchronous_commit on and off;
and with sessions that listen, to that queue or to others of their own. Each case is run with wakes
on and off one right after the other, on an empty table, and gives one ratio a round; which of the
two comes first changes by round. The rates depend on the machine and on what else runs there.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from threading import Thread
from typing import NamedTuple

import psycopg
from psycopg.sql import SQL, Identifier

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "python")]

from alkstore._sql import installer  # noqa: E402
from tests.harness.server import Server  # noqa: E402

BATCH = 100
SCRIPTS = {
    1: "SELECT alkstore.enqueue('q', '{\"to\": 7}');",
    BATCH: f"SELECT count(*) FROM alkstore.enqueue_batch('q', '[{', '.join(['7'] * BATCH)}]');",
}
LISTENERS = {
    "nobody": [],
    "1 to the queue": ["q"],
    "32 to other queues": [f"other {number}" for number in range(32)],
}


class Case(NamedTuple):
    synchronous_commit: str
    listeners: str
    jobs: int  # in a transaction
    clients: int


CASES = [
    Case(synchronous_commit, listeners, jobs, clients)
    for synchronous_commit in ("on", "off")
    for listeners in LISTENERS
    for jobs in SCRIPTS
    if jobs == 1 or listeners == "nobody"
    for clients in (1, 8, 32)
]


class Rates(NamedTuple):
    on: float
    off: float


def drain(connection: psycopg.Connection) -> None:
    for notify in connection.notifies():
        if notify.channel == "end":
            return


@contextmanager
def listening(url: str, queues: list[str]) -> Iterator[None]:
    """Sessions that listen, one to each queue, and read what they are told."""
    connections = [psycopg.connect(url, autocommit=True) for _ in queues]
    for connection, queue in zip(connections, queues, strict=True):
        for channel in (queue, "end"):
            connection.execute(SQL("LISTEN {}").format(Identifier(channel)))
    threads = [Thread(target=drain, args=[connection]) for connection in connections]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        with psycopg.connect(url, autocommit=True) as other:
            other.execute('NOTIFY "end"')
        for thread, connection in zip(threads, connections, strict=True):
            thread.join()
            connection.close()


def rate(case: Case, notify: str, script: Path, seconds: int) -> float:
    """Jobs a second."""
    options = f"-c alkstore.notify={notify} -c synchronous_commit={case.synchronous_commit}"
    pgbench = ["pgbench", "--no-vacuum", "--protocol=prepared", f"--file={script}"]
    pgbench += [f"--client={case.clients}", f"--jobs={min(case.clients, 2)}", f"--time={seconds}"]
    env = os.environ | {"PGOPTIONS": options}
    output = subprocess.run(pgbench, env=env, check=True, capture_output=True, text=True).stdout
    if not (found := re.search(r"^tps = ([\d.]+)", output, re.MULTILINE)):
        raise RuntimeError(f"pgbench: {output}")
    return case.jobs * float(found[1])


def run(url: str, case: Case, order: list[str], script: Path, seconds: int) -> Rates:
    script.write_text(SCRIPTS[case.jobs], encoding="utf-8")
    rates = {}
    with (
        psycopg.connect(url, autocommit=True) as session,
        listening(url, LISTENERS[case.listeners]),
    ):
        for notify in order:
            session.execute("TRUNCATE alkstore._job")
            rates[notify] = rate(case, notify, script, seconds)
    return Rates(**rates)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=2)
    options = parser.parse_args()

    outcomes: dict[Case, list[Rates]] = defaultdict(list)
    with Server(durable=True) as server:
        os.environ.update(server.environment)
        server.psql(installer("postgres"))
        for number in range(options.rounds):
            order = ["on", "off"] if number % 2 == 0 else ["off", "on"]
            for case in CASES:
                script = server.folder / "script.sql"
                outcomes[case].append(run(server.url, case, order, script, options.seconds))
            print(f"round {number + 1} of {options.rounds} done", file=sys.stderr)
        print(f"PostgreSQL {server.major}; medians of {options.rounds} rounds")
    print(f"{'synchronous_commit':20}{'who listens':20}{'jobs':>5}{'clients':>9}", end="")
    print(f"{'jobs/s off':>12}{'jobs/s on':>12}{'on/off':>8}{'from':>6}{'to':>6}")
    for case, all_ in outcomes.items():
        on, off = median(rates.on for rates in all_), median(rates.off for rates in all_)
        ratios = [rates.on / rates.off for rates in all_]
        print(
            f"{case.synchronous_commit:20}{case.listeners:20}{case.jobs:5}{case.clients:9}", end=""
        )
        print(f"{off:12.0f}{on:12.0f}{median(ratios):8.2f}{min(ratios):6.2f}{max(ratios):6.2f}")


if __name__ == "__main__":
    main()
