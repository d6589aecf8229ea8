"""The commands with --outbox: one outbox, and neither another nor a queue of the same name."""

from __future__ import annotations

import shlex

import pytest

import alkstore
from tests.python.clock import Clock
from tests.python.commands import Command, feed, objects
from tests.python.working import record

MAIL = "__alkstore_outbox_mail"


@pytest.fixture
def mail(store: alkstore.Store) -> alkstore.Outbox:
    """Beside a queue of its name, whose job has the id 1."""
    store.queue("mail").enqueue({"in": "the queue"})
    return store.outbox("mail")


def test_enqueue(command: Command, mail: alkstore.Outbox) -> None:
    assert command("enqueue", "mail", '{"to":  7}', "--outbox") == (0, "2\n", "")
    options = ("--priority", "-3", "--max-attempts", "7", "--json")
    says = f'{{"queue": "{MAIL}", "job_id": 3}}\n'
    assert command("enqueue", "mail", "--outbox", "null", *options) == (0, says, "")
    assert record(mail, 2).payload_text == '{"to":  7}'
    job = record(mail, 3)
    assert (job.payload_text, job.priority, job.max_attempts) == ("null", -3, 7)


def test_enqueue_lines_all_or_none(
    command: Command, mail: alkstore.Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    enqueue = ("enqueue", "mail", "-", "--lines", "--outbox")
    feed(monkeypatch, b"1\n2\n\nno json\n")
    status, output, error = command(*enqueue)
    assert (status, output) == (1, "")
    assert error.startswith("alkstore: line 4: invalid_payload: ")
    assert command("jobs", "mail", "--outbox") == (0, "no live jobs in outbox mail\n", "")
    feed(monkeypatch, b"1\n\n 2\n")
    status, output, _ = command(*enqueue)
    assert (status, len(output.splitlines())) == (0, 2)
    assert [record(mail, int(line)).payload_text for line in output.splitlines()] == ["1", " 2"]


def test_look(command: Command, mail: alkstore.Outbox, clock: Clock) -> None:
    mail.enqueue([1])
    mail.enqueue([2], expires_s=1)
    assert command("jobs", "mail", "--outbox") == (
        0,
        """\
ID  STATE  WHEN  ATTEMPTS  PRIORITY  WORKER/ERROR  PAYLOAD
 2  ready  now        0/3         0                [1]
 3  ready  now        0/3         0                [2]
""",
        "",
    )
    jobs = objects(command("jobs", "mail", "--outbox", "--json")[1])
    assert [(job["job_id"], job["queue"]) for job in jobs] == [(2, MAIL), (3, MAIL)]
    page = command("get", "mail", "2", "--outbox")[1]
    assert page.splitlines()[1].split() == ["queue", MAIL]
    assert page.endswith("\n\npayload\n[1]\n")
    assert command("dead", "mail", "--outbox") == (0, "no dead jobs in outbox mail\n", "")
    clock.advance(2)
    mail.sweep_expired()
    dead = objects(command("dead", "mail", "--outbox", "--json")[1])
    assert [(job["job_id"], job["last_error"]) for job in dead] == [(3, "expired")]
    says = "alkstore: no job 1 in outbox mail\n"
    assert command("get", "mail", "1", "--outbox") == (3, "", says)


def test_cancel(command: Command, mail: alkstore.Outbox) -> None:
    mail.enqueue(1)
    mail.enqueue(2)
    says = "cancelled job 2 of outbox mail\n"
    assert command("cancel", "mail", "2", "--outbox") == (0, says, "")
    says = f'{{"queue": "{MAIL}", "job_id": 3}}\n'
    assert command("cancel", "mail", "3", "--outbox", "--json") == (0, says, "")
    for number in (1, 2):
        says = f"alkstore: no live job {number} in outbox mail\n"
        assert command("cancel", "mail", f"{number}", "--outbox") == (3, "", says)


def test_sweep(
    command: Command, mail: alkstore.Outbox, store: alkstore.Store, clock: Clock
) -> None:
    for jobs in (mail, store.queue("mail"), store.outbox("mails")):
        jobs.enqueue(1, expires_s=1)
    clock.advance(2)
    says = "expired jobs buried: 1; dead jobs past their retention deleted: 0\n"
    assert command("sweep", "mail", "--outbox") == (0, says, "")
    says = f'{{"queue": "{MAIL}", "expired": 0, "pruned": 0}}\n'
    assert command("sweep", "mail", "--outbox", "--json") == (0, says, "")
    assert record(mail, 2).state == "dead"


def test_stats_name_an_outbox_as_the_commands_do(
    command: Command, store: alkstore.Store, clock: Clock
) -> None:
    long = "a" * 60
    for name in ("mail", long):
        store.outbox(name).enqueue(1, expires_s=1)
    clock.advance(2)
    _, output, _ = command("stats")
    lines = output.splitlines()
    assert [line[:71].rstrip() for line in lines[:3]] == [
        *("QUEUE", f"{long} --outbox", "mail --outbox"),
    ]
    assert lines[3:] == [
        "",
        "expired  past its expires_at, and nobody sweeps: alkstore sweep QUEUE",
    ]
    for line in lines[1:3]:
        advice = lines[-1].rpartition(": alkstore ")[2].replace("QUEUE", line[:71].rstrip())
        says = "expired jobs buried: 1; dead jobs past their retention deleted: 0\n"
        assert command(*shlex.split(advice)) == (0, says, "")
    queues = objects(command("stats", "--json")[1])[0]["queues"]
    assert [row["queue"] for row in queues] == [f"__alkstore_outbox_{long}", MAIL]


@pytest.mark.parametrize(
    "arguments",
    [
        *(("jobs",), ("dead",), ("get", "1"), ("enqueue", "1"), ("cancel", "1"), ("sweep",)),
        ("work", "--exec", "true"),
    ],
    ids=" ".join,
)
def test_the_reserved_name_is_no_other_way(
    command: Command, mail: alkstore.Outbox, arguments: tuple[str, ...]
) -> None:
    name, *more = arguments
    says = "alkstore: invalid_name: of an outbox give its own name: mail --outbox\n"
    assert command(name, MAIL, *more) == (1, "", says)


def test_a_name_that_cannot_be(command: Command, mail: alkstore.Outbox) -> None:
    for name, *more in (("jobs",), ("enqueue", "1")):
        error = command(name, "\udcff", *more, "--outbox")[2]
        assert error.startswith("alkstore: invalid_name: outbox must be text without NUL")
    error = command("sweep", "__alkstore_x", "--outbox")[2]
    assert error.startswith("alkstore: invalid_name: outbox must not start with the reserved ")
