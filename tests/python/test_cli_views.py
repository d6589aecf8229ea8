"""The commands for the person who looks after queues: what they print, and their exit status."""

from __future__ import annotations

import json

import alkstore
from alkstore import RawJson
from tests.python.clock import Clock
from tests.python.commands import Command, objects, trouble

# -- stats ----------------------------------------------------------------------------------------


def test_stats(command: Command, store: alkstore.Store, clock: Clock) -> None:
    trouble(store, clock)
    assert command("stats") == (
        0,
        """\
QUEUE    READY  OLDEST  DELAYED  PROCESSING  LAPSED  EXPIRED  DEAD
emails       2     20s        2           1       1        1     1
reports      -       -        1           -       -        -     -

lapsed   a worker died or hung; the next claim takes it: alkstore jobs QUEUE
expired  past its expires_at, and nobody sweeps: alkstore sweep QUEUE
dead     will not run again, and says why: alkstore dead QUEUE
""",
        "",
    )


def test_stats_ask_for_a_worker_where_jobs_wait(
    command: Command, store: alkstore.Store, clock: Clock
) -> None:
    store.queue("a").enqueue(1)
    store.queue("b").enqueue(1)
    clock.advance(59)
    _, fresh, _ = command("stats")
    assert "is a worker running" not in fresh
    clock.advance(1)
    store.queue("b").claim_one("w")
    store.queue("b").enqueue(2)
    assert command("stats") == (
        0,
        """\
QUEUE  READY  OLDEST  DELAYED  PROCESSING  LAPSED  EXPIRED  DEAD
a          1      1m        -           -       -        -     -
b          1     now        -           1       -        -     -

ready    waits a minute or more, and none is processing: is a worker running?
""",
        "",
    )


def test_stats_for_machines(command: Command, store: alkstore.Store, clock: Clock) -> None:
    trouble(store, clock)
    status, output, error = command("stats", "--json")
    assert (status, error) == (0, "")
    counts = ("ready", "delayed", "processing", "lapsed", "expired", "dead")
    assert objects(output) == [
        {
            "at": "2001-09-09T01:48:40Z",
            "queues": [
                {
                    "queue": "emails",
                    **dict(zip(counts, (2, 2, 1, 1, 1, 1), strict=True)),
                    "oldest_ready_at": "2001-09-09T01:48:20Z",
                },
                {
                    "queue": "reports",
                    **dict(zip(counts, (0, 1, 0, 0, 0, 0), strict=True)),
                    "oldest_ready_at": None,
                },
            ],
        }
    ]


def test_stats_of_nothing(command: Command, clock: Clock) -> None:
    assert command("stats") == (0, "no jobs in any queue\n", "")
    assert command("stats", "--json") == (0, '{"at": "2001-09-09T01:46:40Z", "queues": []}\n', "")


def test_queues_in_the_order_of_their_bytes(command: Command, store: alkstore.Store) -> None:
    names = ["B", "_", "a", "a-b", "ab", "é", "中"]
    for name in reversed(names):
        store.queue(name).enqueue(1)
    _, output, _ = command("stats", "--json")
    assert [row["queue"] for row in objects(output)[0]["queues"]] == names


# -- jobs and dead --------------------------------------------------------------------------------


def test_jobs_in_the_order_of_claims(command: Command, store: alkstore.Store, clock: Clock) -> None:
    trouble(store, clock)
    assert command("jobs", "emails") == (
        0,
        """\
ID  STATE       WHEN        ATTEMPTS  PRIORITY  WORKER/ERROR      PAYLOAD
 6  ready       20s ago          0/3         5                    {"to": 6}
 1  lapsed      1m ago           1/3         0  host-1:71         {"to": 1}
 7  ready       20s ago          0/3         0                    {"to": 7}
 8  delayed     in 30s           0/3         0                    {"to": 8}
 5  processing  in 40s           1/3         9  host-2:5          {"to": 5}
 3  delayed     in 1h 58m        1/3         0  no route to host  {"to": 3}
 4  expired     1m 30s ago       0/3         0                    {"to": 4}
""",
        "",
    )
    store.queue("emails").sweep_expired()
    claimed = [job.id for job in store.queue("emails").claim_batch("w", 9)]
    clock.advance(61)  # those just claimed have lapsed as well, and are due after those below
    listed = [job["job_id"] for job in objects(command("jobs", "emails", "--json")[1])]
    assert claimed == [6, 1, 7]
    assert listed == [job.id for job in store.queue("emails").claim_batch("w", 9)] + [3]


def test_jobs_for_machines(command: Command, store: alkstore.Store, clock: Clock) -> None:
    trouble(store, clock)
    status, output, error = command("jobs", "emails", "--json")
    assert (status, error) == (0, "")
    jobs = objects(output)
    assert [(job["job_id"], job["condition"]) for job in jobs] == [
        *((6, "ready"), (1, "lapsed"), (7, "ready"), (8, "delayed")),
        *((5, "processing"), (3, "delayed"), (4, "expired")),
    ]
    assert jobs[1] == {
        "job_id": 1,
        "queue": "emails",
        "state": "processing",
        "condition": "lapsed",
        "payload": '{"to": 1}',
        "priority": 0,
        "attempts": 1,
        "max_attempts": 3,
        "visibility_timeout_s": 60,
        "backoff_base_s": 5,
        "dead_letter_retention_s": None,
        "worker_id": "host-1:71",
        "created_at": "2001-09-09T01:46:40Z",
        "run_at": "2001-09-09T01:46:40Z",
        "expires_at": None,
        "claimed_at": "2001-09-09T01:46:40Z",
        "claim_expires_at": "2001-09-09T01:47:40Z",
        "retry_error": None,
        "last_error": None,
        "died_at": None,
        "released": 0,
    }


def test_dead_jobs_newest_first(command: Command, store: alkstore.Store, clock: Clock) -> None:
    emails = store.queue("emails")
    emails.enqueue_batch([{"to": 1}, {"to": 2}, {"to": 3}])
    first, second, third = emails.claim_batch("w", 3)
    second.fail("no such address")
    clock.advance(65)
    first.fail("mailbox full")
    third.fail()
    assert command("dead", "emails") == (
        0,
        """\
ID  DIED       ATTEMPTS  ERROR            PAYLOAD
 3  now             1/3  failed           {"to": 3}
 1  now             1/3  mailbox full     {"to": 1}
 2  1m 5s ago       1/3  no such address  {"to": 2}
""",
        "",
    )
    jobs = objects(command("dead", "emails", "--json")[1])
    assert [
        (job["job_id"], job["state"], job["condition"], job["died_at"], job["last_error"])
        for job in jobs
    ] == [
        (3, "dead", "dead", "2001-09-09T01:47:45Z", "failed"),
        (1, "dead", "dead", "2001-09-09T01:47:45Z", "mailbox full"),
        (2, "dead", "dead", "2001-09-09T01:46:40Z", "no such address"),
    ]


def test_released_claims_are_no_attempts(command: Command, store: alkstore.Store) -> None:
    queue = store.queue("q")
    queue.enqueue(1)
    for _ in range(2):
        job = queue.claim_one("w")
        assert job is not None
        job.release()
    assert " 0/3 " in command("jobs", "q")[1]


def test_no_jobs(command: Command, store: alkstore.Store) -> None:
    store.queue("q").enqueue(1)
    assert command("jobs", "p\x1b") == (0, "no live jobs in queue p\\x1b\n", "")
    assert command("dead", "q") == (0, "no dead jobs in queue q\n", "")
    assert command("jobs", "p", "--json") == (0, "", "")
    assert command("dead", "q", "--json") == (0, "", "")


def test_twenty_jobs_unless_more_are_asked_for(command: Command, store: alkstore.Store) -> None:
    queue = store.queue("q")
    queue.enqueue_batch(range(42))
    for job in queue.claim_batch("w", 21):
        job.fail("no")
    for name, first, last in (("jobs", 22, 42), ("dead", 21, 1)):
        step = 1 if first < last else -1
        ids = list(range(first, last + step, step))

        def listed(output: str) -> list[int]:
            return [job["job_id"] for job in objects(output)]

        status, output, error = command(name, "q", "--json")
        assert (status, listed(output)) == (0, ids[:20])
        assert error == "alkstore: there are more: --limit N, or --all\n"
        _, output, error = command(name, "q")
        assert output.splitlines()[21:] == ["", "there are more: --limit N, or --all"]
        assert error == ""
        for more in (("--limit", "21"), ("--limit", "22"), ("--all",)):
            status, output, error = command(name, "q", "--json", *more)
            assert (status, listed(output), error) == (0, ids, "")
            assert len(command(name, "q", *more)[1].splitlines()) == 22


def test_a_long_list_is_a_table_for_each_thousand(command: Command, store: alkstore.Store) -> None:
    store.queue("q").enqueue_batch(range(2001))
    lines = command("jobs", "q", "--all")[1].splitlines()
    assert [number for number, line in enumerate(lines) if line.startswith(("ID", "  ID"))] == [
        *(0, 1002, 2004)
    ]
    assert [lines[1001], lines[2003]] == ["", ""]
    assert len(lines) == 2006


def test_long_texts_are_cut_in_tables_alone(command: Command, store: alkstore.Store) -> None:
    queue = store.queue("q")
    payload = json.dumps("x" * 5000)
    queue.enqueue(RawJson(payload))
    queue.enqueue(RawJson(payload))
    for _ in range(2):
        job = queue.claim_one("w" * 200)
        assert job is not None
        job.fail("e" * 70_000) if job.id == 1 else None
    for name in ("jobs", "dead"):
        lines = command(name, "q")[1].splitlines()
        assert [len(line) for line in lines[1:]] == [80]
        assert lines[1].count("…") == 2
        assert objects(command(name, "q", "--json")[1])[0]["payload"] == payload
    assert objects(command("dead", "q", "--json")[1])[0]["last_error"] == "e" * 65_536


def test_nothing_printed_moves_the_cursor(command: Command, store: alkstore.Store) -> None:
    name, shown = "a\x1b[2J\nb\u202e\x9b中", "a\\x1b[2J\\nb\\u202e\\x9b中"
    queue = store.queue(name)
    queue.enqueue(RawJson('\n["中", "\u2028\x7f"]\t'))
    job = queue.claim_one("w")
    assert job is not None
    job.retry("\rgone\x07", delay_s=0)
    assert command("stats")[1].splitlines()[1].startswith(f"{shown}  ")
    assert (
        command("jobs", name)[1]
        .splitlines()[1]
        .endswith('  \\rgone\\x07    \\n["中", "\\u2028\\x7f"]\\t')
    )
    page = command("get", name, "1")[1].splitlines()
    assert page[1].endswith(f"  {shown}")
    assert page[-6:] == [
        *("retry_error", "\\rgone\\x07", ""),
        *("payload", "", '["中", "\\u2028\\x7f"]\\t'),
    ]
    assert command("get", name, "2") == (3, "", f"alkstore: no job 2 in queue {shown}\n")
    assert command("dead", name)[1] == f"no dead jobs in queue {shown}\n"


def test_tables_show_the_letters_that_json_escapes(command: Command, store: alkstore.Store) -> None:
    queue = store.queue("q")
    # Left alone: a quote, a control, half of a pair, and what only looks like an escape.
    texts = ["中文, Ä, 😀", '\x1b"', "\ud83d", "\\u00c4"]
    for text in texts:
        queue.enqueue([text])
    for job in queue.claim_batch("w", 4):
        assert job.fail("x")
        queue.enqueue(job.payload)
    shown = [r'["中文, Ä, 😀"]', r'["\u001b\""]', r'["\ud83d"]', r'["\\u00c4"]']
    for name, expected in (("jobs", shown), ("dead", shown[::-1])):
        lines = command(name, "q")[1].splitlines()[1:]
        assert [line[line.index("[") :] for line in lines] == expected
        jobs = objects(command(name, "q", "--json")[1])
        assert jobs[-1 if name == "dead" else 0]["payload"] == json.dumps(["中文, Ä, 😀"])
    assert command("get", "q", "5")[1].endswith(f"\n{json.dumps([texts[0]])}\n")


def test_columns_line_up_under_wide_characters(command: Command, store: alkstore.Store) -> None:
    for name in ("中文", "e\u0301", "x" * 70, "中" * 35):
        store.queue(name).enqueue(1, delay_s=60)
    # A terminal takes two cells for 中, and none for an accent of its own. No name is cut.
    assert command("stats")[1].splitlines() == [
        f"QUEUE{' ' * 65}  READY  OLDEST  DELAYED  PROCESSING  LAPSED  EXPIRED  DEAD",
        *(
            f"{name}      -       -        1           -       -        -     -"
            for name in ("e\u0301" + " " * 69, "x" * 70, "中" * 35, "中文" + " " * 66)
        ),
    ]
