"""Who sweeps? One schedule and one worker.

    python examples/sweeper.py app.db emails reports
    python examples/sweeper.py postgresql:///app emails reports --every 5m

Nothing in a database sweeps by itself. Here a schedule puts a job into the queue `maintenance`
every so often, with the names of the queues to be swept, and a worker takes it and sweeps: jobs
past their `expires_at` become dead letters, and dead letters are deleted once they have been kept
for the `dead_letter_retention_s` that their job was enqueued with.

Run as many of these as you like: one fires, the others wait for it to stop or crash, all sweep. It
ends at SIGTERM or ctrl-C.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ThreadPoolExecutor

import alkstore
from alkstore import JobHandle, LeadershipLost, StopToken, Store, Worker

MAINTENANCE = "maintenance"


def fire(store: Store, stop: StopToken) -> None:
    """Fire the schedule until the stop, or wait for the runner that does."""
    while not stop.is_set():
        try:
            store.run_schedules(stop)
        except LeadershipLost as error:
            print(error, flush=True)


def sweep(store: Store, stop: StopToken) -> None:
    """Do the jobs that the schedule enqueues."""

    def sweep_queues(job: JobHandle) -> None:
        for queue in job.payload:
            expired, pruned = store.queue(queue).sweep_expired()
            if expired or pruned:
                print(f"{queue}: {expired} expired, {pruned} deleted", flush=True)

    Worker(store, {MAINTENANCE: sweep_queues}, stop=stop).run()


def main() -> None:
    parser = argparse.ArgumentParser(description="Sweep queues at an interval.")
    parser.add_argument("target", help="a file path or postgresql://URL")
    parser.add_argument("queues", nargs="+", help="the queues to sweep")
    parser.add_argument("--every", default="5m", help="the interval: 30s, 5m, 1h (default: 5m)")
    options = parser.parse_args()

    stop = StopToken.on_signals()
    with alkstore.open(options.target) as store, ThreadPoolExecutor(1) as pool:
        # The maintenance queue is a queue like any other, and swept like any other.
        queues = [*options.queues, MAINTENANCE]
        store.schedule("sweep", f"@every {options.every}", MAINTENANCE, queues)
        firing = pool.submit(fire, store, stop)
        try:
            sweep(store, stop)
        finally:
            stop.set()
            firing.result()


if __name__ == "__main__":
    main()
