"""Which storage parameters suit the job table? A busy queue with each of them, in turns.

    python bench/storage_parameters.py [--rounds 5] [--seconds 8] [--backlog 300000]

It starts a PostgreSQL of its own, whose autovacuum looks every second instead of every minute: a
run of seconds stands for one of minutes. A session enqueues, claims and acks a hundred jobs at a
time behind a standing backlog, which leaves dead rows as fast as a long day of single jobs would.
Twice a second it claims one without a mark, as each session does once a second: the pages that this
touches say what the dead rows cost; the size at the end says what they take. Jobs per second are a
ratio to the same round under PostgreSQL's defaults, since they depend on what else runs.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psycopg

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "python")]

from alkstore._sql import installer  # noqa: E402
from tests.harness.server import Server  # noqa: E402

JOB = "ALTER TABLE alkstore._job SET ({})"
SIZE = "SELECT pg_total_relation_size('alkstore._job')"
DEFAULTS = "PostgreSQL's defaults"
EAGER = "autovacuum_vacuum_scale_factor = {}, autovacuum_vacuum_threshold = {}"
CHOICES = {
    "as installed": "SELECT",
    DEFAULTS: "ALTER TABLE alkstore._job RESET (fillfactor, autovacuum_vacuum_scale_factor, "
    "autovacuum_vacuum_threshold, autovacuum_vacuum_cost_delay, vacuum_truncate)",
    "no vacuum": JOB.format("autovacuum_enabled = off"),
    "fillfactor 70": JOB.format("fillfactor = 70"),
    "vacuum at 5 %": JOB.format(EAGER.format(0.05, 50)),
    "vacuum at 1 %": JOB.format(EAGER.format(0.01, 50)),
    "vacuum at 10,000 rows": JOB.format(EAGER.format(0, 10_000)),
    "vacuum at 1,000 rows": JOB.format(EAGER.format(0, 1_000)),
    "vacuum at 1 %, unthrottled": JOB.format(
        EAGER.format(0.01, 50) + ", autovacuum_vacuum_cost_delay = 0"
    ),
    "vacuum at 1,000 rows, unthrottled": JOB.format(
        EAGER.format(0, 1_000) + ", autovacuum_vacuum_cost_delay = 0"
    ),
}

BACKLOG = """
    INSERT INTO alkstore._job (queue, payload, priority, max_attempts, visibility_timeout_s,
        backoff_base_s, created_at, run_at, ready, due_at)
    SELECT 'q', '1', 0, 3, 300, 5, now, now, true, now
    FROM (SELECT alkstore._now() AS now) clock, generate_series(1, {})"""

WORK = """
    DO $$
    DECLARE
      until timestamptz := clock_timestamp() + interval '500 ms';
      batch json := (SELECT json_agg(n) FROM generate_series(1, 100) n);
      jobs bigint := 0;
    BEGIN
      WHILE clock_timestamp() < until LOOP
        PERFORM alkstore.enqueue_batch('q', batch);
        COMMIT;
        PERFORM alkstore.ack_batch('q', array_agg(c.job_id), array_agg(c.attempt))
        FROM alkstore.claim('q', 'worker', 100) c;
        COMMIT;
        jobs := jobs + 100;
      END LOOP;
      PERFORM set_config('bench.jobs', jobs::text, false);
    END $$"""

CLAIM = """
    EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)
    SELECT alkstore.ack('q', job_id, attempt) FROM alkstore.claim('q', 'worker')"""


@dataclass
class Outcome:
    jobs: int
    usual: float  # pages of a claim
    worst: int
    megabytes: float


def run(server: Server, choice: str, seconds: int, backlog: int) -> Outcome:
    server.psql("DROP DATABASE IF EXISTS bench WITH (FORCE)")
    server.psql("CREATE DATABASE bench")
    url = server.database_url("bench")

    jobs, costs = 0, []
    with psycopg.connect(url, autocommit=True) as session:
        session.execute(installer("postgres").encode())
        session.execute(CHOICES[choice].encode())
        session.execute(BACKLOG.format(backlog).encode())
        session.execute("VACUUM ANALYZE alkstore._job")
        for _ in range(2 * seconds):
            session.execute(WORK.encode())
            [(done,)] = session.execute("SELECT current_setting('bench.jobs')::int").fetchall()
            jobs += done
            session.execute("SET alkstore._mark = ''")
            [(((plan,)),)] = session.execute(CLAIM.encode()).fetchall()
            costs.append(plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"])
        [(size,)] = session.execute(SIZE.encode()).fetchall()
    return Outcome(jobs, median(costs), max(costs), size / 2**20)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=8)
    parser.add_argument("--backlog", type=int, default=300_000)
    options = parser.parse_args()

    outcomes: dict[str, list[Outcome]] = defaultdict(list)
    with Server(settings={"autovacuum_naptime": "1s", "shared_buffers": "512MB"}) as server:
        os.environ.update(server.environment)
        for number in range(options.rounds):
            for choice in CHOICES:
                outcomes[choice].append(run(server, choice, options.seconds, options.backlog))
            print(f"round {number + 1} of {options.rounds} done", file=sys.stderr)
        print(f"PostgreSQL {server.major}; medians of {options.rounds} rounds")
    print(f"{'':36}{'pages of a claim':>18}{'at worst':>10}{'MB at end':>11}{'jobs, ratio':>13}")
    for choice, all_ in outcomes.items():
        ratio = median(o.jobs / d.jobs for o, d in zip(all_, outcomes[DEFAULTS], strict=True))
        usual, worst = median(o.usual for o in all_), median(o.worst for o in all_)
        size = median(o.megabytes for o in all_)
        print(f"{choice:36}{usual:18.0f}{worst:10.0f}{size:11.0f}{ratio:13.2f}")


if __name__ == "__main__":
    main()
