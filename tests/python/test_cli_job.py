"""The commands for one job, or new ones: what they print, what they do, and their exit status."""

from __future__ import annotations

import json

import pytest

import alkstore
from alkstore import RawJson
from tests.python.clock import Clock, after
from tests.python.commands import Command, failure, feed, objects, trouble

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
