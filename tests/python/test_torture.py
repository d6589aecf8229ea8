"""The audit finds what is wrong in a journal: each finding once, in a history made for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.python.torture_story import NOW, Story
from tests.torture.journal import Undone, read


@pytest.fixture
def story(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Story:
    return Story(tmp_path, monkeypatch)


def test_a_good_life_has_no_findings(story: Story) -> None:
    id = story.enqueue()
    story.claim(story.claimed(id))
    story.settle("heartbeat", id, 1, True, None)
    story.settle("retry", id, 1, True, "boom", 0)
    story.claim(story.claimed(id, 2, run_at=int(story.now) - 1))
    story.settle("ack", id, 2)
    report = story.report()
    assert report.findings == []
    assert report.figures["jobs"] == 1
    assert report.figures["claims"] == 2
    assert report.figures["settlings that had to be accepted"] == 3


def test_a_lost_job(story: Story) -> None:
    story.enqueue()
    assert story.findings() == ["job 1 (t1) is lost"]


def test_a_job_whose_ack_was_never_answered_is_not_lost(story: Story) -> None:
    id = story.enqueue()
    story.claim(story.claimed(id))
    story.settle("ack", id, 1, ...)
    assert story.findings() == []


def test_a_job_whose_ack_was_rolled_back_is_lost(story: Story) -> None:
    id = story.enqueue()
    story.claim(story.claimed(id))
    story.journal("worker").begin()
    story.settle("ack", id, 1)
    with story.journal("worker").end(keep=False):
        pass
    assert story.findings() == ["job 1 (t1) is lost"]


def test_a_job_in_two_places(story: Story) -> None:
    id = story.enqueue()
    story.claim(story.claimed(id))
    story.settle("fail", id, 1, True, "boom")
    story.dead(id, "boom")
    story.dead(id, "boom")
    assert story.findings() == ["job 1 (t1) is in two places at the end"]


def test_a_job_seen_in_two_places(story: Story) -> None:
    story.call("janitor", "look", [[7]])
    assert story.findings() == ["janitor saw jobs [[7]] in two places"]


def test_an_id_of_two_jobs(story: Story) -> None:
    story.enqueue([5])
    story.enqueue([5])
    assert "job 5 (t2) has the id of job 5 (t1)" in story.findings()


def test_a_job_of_nobody(story: Story) -> None:
    id = story.enqueue(Undone("55P03 lock timeout"))
    story.jobs[9] = story.jobs[id] | {"token": "t9"}
    story.claim(story.claimed(9))
    assert story.findings() == ["job 9, of nobody in this round, was claimed"]


def test_a_job_that_is_left(story: Story) -> None:
    story.dead(story.enqueue(), "", state="pending", attempts=0)
    assert story.findings() == ["job 1 (t1) is pending after all were drained"]


def test_an_attempt_handed_out_twice(story: Story) -> None:
    id = story.enqueue()
    story.claim(story.claimed(id))
    story.claim(story.claimed(id))
    story.settle("ack", id, 1)
    assert "attempt 1 of job 1 (t1) was handed out 2 times" in story.findings()


def test_an_attempt_handed_out_again_after_a_rollback_is_fine(story: Story) -> None:
    id = story.enqueue()
    story.journal("worker").begin()
    story.claim(story.claimed(id))
    with story.journal("worker").end(keep=False):
        pass
    story.claim(story.claimed(id))
    story.settle("ack", id, 1)
    assert story.findings() == []


def test_an_attempt_that_nobody_got(story: Story) -> None:
    id = story.enqueue()
    story.claim(story.claimed(id, 2))
    story.settle("ack", id, 2)
    assert story.findings() == ["attempts [1] of job 1 (t1) were handed out to nobody"]


def test_an_attempt_that_somebody_who_was_killed_may_have_got(story: Story) -> None:
    id = story.enqueue()
    story.call("other", "claim", ..., queue="q", worker="w", n=1)
    story.now += 20
    story.claim(story.claimed(id, 2))
    story.settle("ack", id, 2)
    assert story.findings() == []


def test_a_run_too_many(story: Story) -> None:
    id = story.enqueue(max_attempts=1)
    story.claim(story.claimed(id))
    story.now += 20
    story.claim(story.claimed(id, 2))
    story.settle("ack", id, 2)
    assert story.findings() == ["job 1 (t1) ran 2 times, with max_attempts 1"]


def test_a_run_after_a_release_is_not_too_many(story: Story) -> None:
    id = story.enqueue(max_attempts=1)
    story.claim(story.claimed(id))
    story.settle("release", id, 1)
    story.claim(story.claimed(id, 2))
    story.settle("ack", id, 2)
    assert story.findings() == []


def test_two_that_hold_a_job(story: Story) -> None:
    id = story.enqueue()
    story.claim(story.claimed(id))
    story.claim(story.claimed(id, 2))
    story.settle("ack", id, 2)
    assert story.findings() == ["attempt 2 of job 1 (t1) began while 1 was held"]


def test_an_ack_after_its_deadline(story: Story) -> None:
    id = story.enqueue()
    story.claim(story.claimed(id))
    story.now += 20
    story.settle("ack", id, 1)
    assert story.findings() == [
        "ack of attempt 1 of job 1 (t1) by worker was accepted after its deadline"
    ]


def test_an_ack_after_its_deadline_by_a_clock_that_was_moved(story: Story) -> None:
    id = story.enqueue()
    story.claim(story.claimed(id))
    story.call("chaos", "move_clock", True, seconds=20)
    story.settle("ack", id, 1)
    assert story.findings() == [
        "ack of attempt 1 of job 1 (t1) by worker was accepted after its deadline"
    ]


def test_an_ack_within_a_deadline_that_a_heartbeat_may_have_put_off(story: Story) -> None:
    id = story.enqueue()
    story.claim(story.claimed(id))
    story.settle("heartbeat", id, 1, ..., 60)
    story.now += 20
    story.settle("ack", id, 1)
    assert story.findings() == []


def test_an_ack_of_a_claim_that_was_taken_over(story: Story) -> None:
    id = story.enqueue()
    story.claim(story.claimed(id))
    story.now += 9
    story.settle("heartbeat", id, 1, ..., 60)
    story.now += 9
    story.claim(story.claimed(id, 2))
    story.settle("ack", id, 1)
    assert "ack of attempt 1 of job 1 (t1) by worker was accepted after attempt 2 had begun" in (
        story.findings()
    )


def test_a_second_end(story: Story) -> None:
    id = story.enqueue()
    story.claim(story.claimed(id))
    story.settle("ack", id, 1)
    story.settle("release", id, 1)
    assert story.findings() == [
        "release of attempt 1 of job 1 (t1) by worker was accepted after ack by worker"
    ]


def test_a_claim_after_the_end(story: Story) -> None:
    id = story.enqueue()
    story.claim(story.claimed(id))
    story.settle("ack", id, 1)
    story.now += 20
    story.claim(story.claimed(id, 2))
    assert story.findings() == [
        "job 1 (t1) was claimed by worker after ack of attempt 1 of job 1 (t1) by worker"
    ]


def test_a_job_that_is_there_after_its_end(story: Story) -> None:
    id = story.enqueue()
    story.claim(story.claimed(id))
    story.settle("ack", id, 1)
    story.dead(id, "expired", expires_at=1, died_at=2)
    assert story.findings() == [
        "job 1 (t1) is there after ack of attempt 1 of job 1 (t1) by worker"
    ]


def test_an_ack_refused_for_nothing(story: Story) -> None:
    id = story.enqueue()
    story.claim(story.claimed(id))
    story.settle("ack", id, 1, False)
    story.dead(id, "expired", expires_at=1, died_at=2)
    assert story.findings() == ["ack of attempt 1 of job 1 (t1) by worker was refused"]


@pytest.mark.parametrize(
    "change",
    [
        {"claimed_at": NOW - 5},
        {"claimed_at": NOW + 5},
        {"claim_expires_at": NOW + 99},
        {"run_at": NOW + 2},
        {"expires_at": NOW - 1},
        {"queue": "other"},
        {"worker_id": "other"},
        {"max_attempts": 7},
    ],
)
def test_a_claim_with_a_wrong_row(story: Story, change: dict[str, Any]) -> None:
    id = story.enqueue()
    story.claim(story.claimed(id, **change))
    story.settle("ack", id, 1)
    assert any("was claimed by worker as {" in finding for finding in story.findings())


def test_a_payload_that_changed(story: Story) -> None:
    id = story.enqueue()
    story.claim(story.claimed(id, payload='{"token": "t1"}'))
    story.settle("ack", id, 1)
    assert story.findings() == ['job 1 (t1) has the payload {"token": "t1"}']


@pytest.mark.parametrize("business", [True, False])
def test_a_trace_of_what_was_rolled_back(story: Story, business: bool) -> None:
    story.journal("producer").begin()
    id = story.enqueue(business=True)
    with story.journal("producer").end(keep=False):
        pass
    if business:
        story.business.append("t1")
    else:
        story.claim(story.claimed(id))
    assert story.findings() == [
        f"job {None if business else 1} (t1) was rolled back, and left a trace"
    ]


def test_a_trace_of_what_was_rolled_back_to_a_savepoint(story: Story) -> None:
    journal = story.journal("producer")
    journal.begin()
    kept = story.enqueue(business=True)
    undone = story.enqueue(business=True)
    journal.roll_back_to(1)
    with journal.end(keep=True):
        story.business.append("t1")
    for id in (kept, undone):
        story.claim(story.claimed(id))
        story.settle("ack", id, 1)
    assert story.findings() == ["job 2 (t2) was rolled back, and left a trace"]


def test_a_job_without_its_business_row(story: Story) -> None:
    id = story.enqueue(business=True)
    story.claim(story.claimed(id))
    story.settle("ack", id, 1)
    assert story.findings() == ["job 1 (t1) was committed without its business row"]


@pytest.mark.parametrize("committed", [True, False])
def test_a_commit_without_an_answer_is_told_by_the_business_row(
    story: Story, committed: bool
) -> None:
    journal = story.journal("producer")
    journal.begin()
    story.enqueue(business=True)
    with pytest.raises(KeyboardInterrupt), journal.end(keep=True):
        raise KeyboardInterrupt
    story.business = ["t1"] if committed else []
    assert story.findings() == (["job 1 (t1) is lost"] if committed else [])


def test_a_job_of_a_commit_without_an_answer_is_not_lost_when_it_was_cancelled(
    story: Story,
) -> None:
    journal = story.journal("producer")
    journal.begin()
    id = story.enqueue(business=True)
    with pytest.raises(KeyboardInterrupt), journal.end(keep=True):
        raise KeyboardInterrupt
    story.business = ["t1"]
    story.call("janitor", "cancel", True, queue="q", id=id)
    assert story.findings() == []


def test_more_jobs_gone_than_were_pruned(story: Story) -> None:
    for _ in range(2):
        id = story.enqueue(dead_letter_retention_s=0)
        story.claim(story.claimed(id))
        story.settle("fail", id, 1, True, None)
    story.call("janitor", "sweep_expired", [0, 1], queue="q")
    assert story.findings() == ["2 jobs of queue q are gone, and 1 were pruned"]


@pytest.mark.parametrize(
    ("row", "finding"),
    [
        ({"last_error": "expired", "expires_at": 5, "died_at": 5}, "is dead of 'expired'"),
        ({"last_error": "max attempts exceeded"}, "is dead of 'max attempts exceeded'"),
        ({"last_error": "failed"}, "is dead of 'failed'"),
        ({"last_error": "what nobody said"}, "is dead of 'what nobody said'"),
        ({"retry_error": "what nobody said"}, "has the retry_error 'what nobody said'"),
        ({"priority": 3}, "has priority 3, and was given None"),
        ({"attempts": 4, "released": 1}, "has used 3 attempts of 2"),
    ],
)
def test_a_dead_job_with_a_wrong_row(story: Story, row: dict[str, Any], finding: str) -> None:
    id = story.enqueue()
    story.claim(story.claimed(id))
    story.settle("fail", id, 1, True, "boom")
    story.dead(id, **{"last_error": "boom"} | row)
    assert any(finding in text for text in story.findings())


def test_a_claim_out_of_order(story: Story) -> None:
    first, second = story.enqueue(), story.enqueue()
    story.claim(story.claimed(second), story.claimed(first), n=2)
    story.settle("ack", first, 1)
    story.settle("ack", second, 1)
    [finding] = story.findings()
    assert finding.startswith("a claim by worker has its jobs out of order")


@pytest.mark.parametrize("empty", [True, False])
def test_a_claim_that_passes_over_what_was_first(story: Story, empty: bool) -> None:
    first, second = story.enqueue(), story.enqueue()
    if empty:
        story.claim()
    else:
        story.claim(story.claimed(second))
        story.settle("ack", second, 1)
    story.claim(story.claimed(first))
    story.settle("ack", first, 1)
    if empty:
        story.claim(story.claimed(second))
        story.settle("ack", second, 1)
    findings = story.findings()
    assert findings
    assert all("passed over job" in finding for finding in findings)


@pytest.mark.parametrize("alone", [True, False])
def test_a_claim_may_go_on_from_one_of_its_second_that_was_not_alone(
    story: Story, alone: bool
) -> None:
    first, second, third = (story.enqueue() for _ in range(3))
    began = story.now
    if not alone:
        story.journal("other").write(
            call=1, name="claim", arguments={"queue": "q", "worker": "w", "n": 1}, transaction=None
        )
    story.claim(story.claimed(second))
    story.now = began + 0.3
    if not alone:
        story.journal("other").write(done=1, result=[])
    story.now = began + 0.4
    story.claim(story.claimed(third))
    story.settle("ack", second, 1)
    story.settle("ack", third, 1)
    story.claim(story.claimed(first))
    story.settle("ack", first, 1)
    findings = story.findings()
    assert len(findings) == (2 if alone else 0)
    assert all("passed over job" in finding for finding in findings)


def test_a_claim_may_pass_over_what_another_claim_may_have_held(story: Story) -> None:
    first, second = story.enqueue(), story.enqueue()
    story.call("other", "claim", ..., queue="q", worker="w", n=1)
    story.claim(story.claimed(second))
    story.claim(story.claimed(first))
    story.settle("ack", first, 1)
    story.settle("ack", second, 1)
    assert story.findings() == []


def test_a_call_that_fails(story: Story) -> None:
    story.call("worker", "claim", Undone("XX000 tuple concurrently updated"), queue="q", n=1)
    story.journal("worker").write(crash="Traceback")
    assert story.findings() == [
        "claim of worker failed: XX000 tuple concurrently updated",
        "crash of worker failed: Traceback",
    ]


@pytest.mark.parametrize("transaction", [True, False])
def test_a_deadlock_needs_a_transaction_of_many_calls(story: Story, transaction: bool) -> None:
    if transaction:
        story.journal("other").begin()
    story.call("other", "ack", False, queue="q", claim=[7, 1], more=[])
    error = Undone("40P01 deadlock detected")
    story.call("worker", "ack_batch", error, queue="q", claims=[[7, 1]])
    found = "ack_batch of worker failed: 40P01 deadlock detected"
    assert story.findings() == ([] if transaction else [found])


def test_a_line_that_was_not_written_to_its_end_was_not_written(tmp_path: Path) -> None:
    call = {"call": 1, "name": "ack", "arguments": {}, "transaction": None, "t": 1.0}
    done = {"done": 1, "result": True, "t": 2.0}
    file = tmp_path / "worker.jsonl"
    file.write_text(json.dumps(call) + "\n" + json.dumps(done)[:9])
    [read_call] = read(tmp_path)
    assert (read_call.result, read_call.happened) == (None, None)
    file.write_text(json.dumps(call)[:9])
    assert read(tmp_path) == []
