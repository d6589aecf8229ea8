"""The commands for the person who looks after queues: what they print, and their exit status."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

import alkstore
from alkstore import RawJson
from tests.python.clock import Clock, after
from tests.python.test_cli import failure, run

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, target: str
) -> Command:
    """Runs a command on the test's database: exit status, output, errors."""
    monkeypatch.setenv("ALKSTORE_URL", target)
    monkeypatch.setenv("COLUMNS", "80")
    return lambda *arguments: run(capsys, *arguments)


@pytest.fixture
def clock(target: str, store: alkstore.Store) -> Clock:
    return Clock(target)


def feed(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def objects(output: str) -> list[Any]:
    return [json.loads(line) for line in output.splitlines()]


def trouble(store: alkstore.Store, clock: Clock) -> None:
    """A queue with a job in every condition; the clock then stands at START + 120 s."""
    emails = store.queue("emails", visibility_timeout_s=60)
    for to in (1, 2, 3):
        emails.enqueue({"to": to})
    _lapses, fails, retries = emails.claim_batch("host-1:71", 3)
    fails.fail("no such address")
    retries.retry("no route to host", delay_s=7200)
    emails.enqueue({"to": 4}, expires_s=30)
    clock.advance(100)
    emails.enqueue({"to": 5}, priority=9)
    emails.claim_one("host-2:5")
    emails.enqueue({"to": 6}, priority=5)
    emails.enqueue({"to": 7})
    emails.enqueue({"to": 8}, delay_s=50)
    store.queue("reports").enqueue([], delay_s=100_000)
    clock.advance(20)


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

ready    waits for a minute or more, and none is processing: is a worker running?
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


# -- get ------------------------------------------------------------------------------------------


def test_get(command: Command, store: alkstore.Store, clock: Clock) -> None:
    trouble(store, clock)
    assert command("get", "emails", "1") == (
        0,
        """\
job_id                1
queue                 emails
state                 processing, lapsed
priority              0
attempts              1 of 3
visibility_timeout_s  60
backoff_base_s        5
worker_id             host-1:71
created_at            2001-09-09 01:46:40 UTC, 2m ago
run_at                2001-09-09 01:46:40 UTC, 2m ago
claimed_at            2001-09-09 01:46:40 UTC, 2m ago
claim_expires_at      2001-09-09 01:47:40 UTC, 1m ago

payload
{"to": 1}
""",
        "",
    )
    assert command("get", "emails", "2")[1].splitlines()[2] == "state                 dead"
    assert command("get", "emails", "5")[1].splitlines()[2] == "state                 processing"
    assert (
        command("get", "emails", "8")[1].splitlines()[2] == "state                 pending, delayed"
    )


def test_get_tells_errors_whole(command: Command, store: alkstore.Store, clock: Clock) -> None:
    queue = store.queue("q", max_attempts=2, dead_letter_retention_s=60)
    queue.enqueue(RawJson('{\n  "a": 1\n}'), expires_s=90)
    for error in ("first", "Traceback\n  line\x1b 2"):
        job = queue.claim_one("w")
        assert job is not None
        job.release()
        job = queue.claim_one("w")
        assert job is not None
        job.retry(error, delay_s=0)
    clock.advance(3600)
    assert command("get", "q", "1") == (
        0,
        """\
job_id                   1
queue                    q
state                    dead
priority                 0
attempts                 2 of 2, and 2 released
visibility_timeout_s     300
backoff_base_s           5
dead_letter_retention_s  60
worker_id                w
created_at               2001-09-09 01:46:40 UTC, 1h ago
run_at                   2001-09-09 01:46:40 UTC, 1h ago
expires_at               2001-09-09 01:48:10 UTC, 58m 30s ago
claimed_at               2001-09-09 01:46:40 UTC, 1h ago
claim_expires_at         2001-09-09 01:51:40 UTC, 55m ago
died_at                  2001-09-09 01:46:40 UTC, 1h ago

retry_error
Traceback
  line\\x1b 2

last_error
Traceback
  line\\x1b 2

payload
{
  "a": 1
}
""",
        "",
    )


@pytest.mark.parametrize(
    "payload",
    [
        ' {"b":1,"a":1.50,"a":1e400}\n',
        '"\\u0000 \\ud800 \u2028\x7f é 中 \U0001f600"',
        "null",
        '"' + "x" * 100_000 + '"',
    ],
)
def test_get_gives_the_payload_byte_for_byte(
    command: Command, store: alkstore.Store, payload: str
) -> None:
    store.queue("q").enqueue(RawJson(payload))
    status, output, error = command("get", "q", "1", "--json")
    assert (status, error, output.count("\n")) == (0, "", 1)
    assert json.loads(output)["payload"] == payload


def test_no_such_job(command: Command, store: alkstore.Store) -> None:
    store.queue("q").enqueue(1)
    for arguments in (("q", "2"), ("p", "1"), ("q", "-1")):
        says = f"alkstore: no job {arguments[1]} in queue {arguments[0]}\n"
        assert command("get", *arguments) == (3, "", says)
        assert command("get", "--json", *arguments) == (3, "", says)
    says = "alkstore: invalid_option: job_id does not fit 64 bits\n"
    assert command("get", "q", str(2**63)) == (1, "", says)


# -- enqueue, cancel, sweep -----------------------------------------------------------------------


def test_enqueue(command: Command, store: alkstore.Store, clock: Clock) -> None:
    queue = store.queue("q")
    assert command("enqueue", "q", ' {"a":  1}') == (0, "1\n", "")
    assert command("enqueue", "q", "-5", "--json") == (0, '{"queue": "q", "job_id": 2}\n', "")
    options = ("--delay-s", "60", "--priority", "-3", "--expires-s", "90", "--max-attempts", "7")
    assert command("enqueue", "q", "null", *options) == (0, "3\n", "")
    first, second, third = (queue.get_job(number) for number in (1, 2, 3))
    assert first is not None
    assert second is not None
    assert third is not None
    assert (first.payload_text, first.priority, first.max_attempts) == (' {"a":  1}', 0, 3)
    assert (first.run_at, first.expires_at) == (after(0), None)
    assert second.payload_text == "-5"
    assert (third.payload_text, third.priority, third.max_attempts) == ("null", -3, 7)
    assert (third.run_at, third.expires_at) == (after(60), after(90))


def test_enqueue_what_stdin_says(
    command: Command, store: alkstore.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed(monkeypatch, ' {"é":\n 1}\n'.encode())
    assert command("enqueue", "q", "-") == (0, "1\n", "")
    job = store.queue("q").get_job(1)
    assert job is not None
    assert job.payload_text == ' {"é":\n 1}'  # but for the newline that ends a text file


def test_enqueue_many(
    command: Command, store: alkstore.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = store.queue("q")
    feed(monkeypatch, b'1\n\n {"a" : "\xe2\x80\xa8"}\r\n[]')
    assert command("enqueue", "q", "-", "--lines", "--priority", "4") == (0, "1\n2\n3\n", "")
    jobs = [queue.get_job(number) for number in (1, 2, 3)]
    assert [job and job.payload_text for job in jobs] == ["1", ' {"a" : "\u2028"}\r', "[]"]
    assert [job and job.priority for job in jobs] == [4, 4, 4]
    for lines in (b"1\n\nno json\n2", b'1\n2\n"\xff"\n', b"1\n\n1, 2"):
        feed(monkeypatch, lines)
        status, output, error = command("enqueue", "q", "-", "--lines")
        assert (status, output) == (1, "")
        assert error.startswith("alkstore: line 3: invalid_payload: ")
    feed(monkeypatch, b"1\n2\n")
    status, _, error = command("enqueue", "q", "-", "--lines", "--max-attempts", "0")
    assert (status, error[:39]) == (1, "alkstore: invalid_option: max_attempts ")
    feed(monkeypatch, b"\n")
    assert command("enqueue", "q", "-", "--lines") == (0, "", "")
    assert len(queue.claim_batch("w", 9)) == 3


def test_dead_jobs_can_be_enqueued_again(
    command: Command, store: alkstore.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = store.queue("q")
    queue.enqueue_batch([{"to": 1}, {"to": 2}])
    for job in queue.claim_batch("w", 2):
        job.fail()
    dead = objects(command("dead", "q", "--json")[1])
    feed(monkeypatch, "".join(f"{job['payload']}\n" for job in reversed(dead)).encode())
    assert command("enqueue", "q", "-", "--lines") == (0, "3\n4\n", "")
    assert [job.payload for job in queue.claim_batch("w", 9)] == [{"to": 1}, {"to": 2}]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("q", "no json"), "invalid_payload: "),
        (("q", "1", "--max-attempts", "0"), "invalid_option: max_attempts"),
        (("__alkstore_q", "1"), "invalid_name: queue must not start with the reserved"),
        (("q", '"\udcff"'), "invalid_payload: "),
        (("\udcff", "1"), "invalid_name: queue must be text"),
    ],
)
def test_enqueue_refused(
    capsys: pytest.CaptureFixture[str], command: Command, arguments: tuple[str, ...], says: str
) -> None:
    command("install")
    assert failure(capsys, "enqueue", *arguments).startswith(f"alkstore: {says}")


def test_enqueue_what_is_no_text(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    command("install")
    feed(monkeypatch, b'"\xff"')
    says = "alkstore: line 1: invalid_payload: not UTF-8 text\n"
    assert command("enqueue", "q", "-") == (1, "", says)


def test_cancel(command: Command, store: alkstore.Store) -> None:
    queue = store.queue("q")
    queue.enqueue_batch([1, 2, 3])
    first = queue.claim_one("w")
    assert first is not None
    first.fail()
    assert command("cancel", "q", "2") == (0, "cancelled job 2 of queue q\n", "")
    assert command("cancel", "q", "3", "--json") == (0, '{"queue": "q", "job_id": 3}\n', "")
    for number in (1, 2, 4):
        says = f"alkstore: no live job {number} in queue q\n"
        assert command("cancel", "q", str(number)) == (3, "", says)
        assert command("cancel", "q", str(number), "--json") == (3, "", says)
    assert queue.get_job(1) is not None
    assert queue.get_job(2) is None


def test_sweep(command: Command, store: alkstore.Store, clock: Clock) -> None:
    queue = store.queue("q", dead_letter_retention_s=10)
    queue.enqueue_batch([1, 2], expires_s=5)
    clock.advance(6)
    assert command("sweep", "q") == (
        0,
        "expired jobs buried: 2; dead jobs past their retention deleted: 0\n",
        "",
    )
    clock.advance(11)
    says = '{"queue": "q", "expired": 0, "pruned": 2}\n'
    assert command("sweep", "q", "--json") == (0, says, "")
