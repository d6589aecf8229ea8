"""The audit finds what is wrong in the journals of those who work through the package."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.python.torture_story import Story
from tests.torture.database import SENT


@pytest.fixture
def story(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Story:
    return Story(tmp_path, monkeypatch)


@pytest.mark.parametrize("queue", ["served", SENT])
def test_a_good_life_has_no_findings(story: Story, queue: str) -> None:
    id = story.enqueue(queue=queue)
    story.run(id, 1, "retry", "boom", 0)
    story.run(id, 2, "ack")
    report = story.report()
    assert report.findings == []
    assert report.figures["jobs"] == 1
    assert report.figures["runs of handlers"] == 2


def test_a_message_that_nobody_delivered(story: Story) -> None:
    story.enqueue(queue=SENT)
    assert story.findings() == ["job 1 (t1) is lost"]


def test_an_ack_before_the_end_of_the_run(story: Story) -> None:
    story.run(story.enqueue(queue="served"), 1)
    assert story.findings() == ["job 1 (t1) is lost"]


def test_an_ack_of_a_run_that_failed(story: Story) -> None:
    story.run(story.enqueue(queue="served"), 1, "retry", "boom", 0)
    assert story.findings() == ["job 1 (t1) is lost"]


def test_a_delivery_of_what_was_rolled_back(story: Story) -> None:
    story.journal("producer").begin()
    id = story.enqueue(queue=SENT)
    with story.journal("producer").end(keep=False):
        pass
    story.run(id, 1, "ack")
    assert story.findings() == ["job 1 (t1) was rolled back, and left a trace"]


def test_a_run_of_a_job_of_nobody(story: Story) -> None:
    id = story.enqueue(queue="served")
    story.run(id, 1, "ack")
    story.jobs[9] = story.jobs[id] | {"token": "t9"}
    story.run(9, 1, "ack")
    assert story.findings() == ["job 9, of nobody in this round, was run"]


def test_an_attempt_that_is_run_twice(story: Story) -> None:
    id = story.enqueue(queue="served")
    story.run(id, 1, "ack")
    story.run(id, 1, "ack", actor="serve2")
    assert story.findings() == ["attempt 1 of job 1 (t1) was handed out 2 times"]


def test_two_that_run_a_job_at_once(story: Story) -> None:
    id = story.enqueue(queue="served")
    story.run(id, 1)
    story.run(id, 2, "ack", actor="serve2")
    assert story.findings() == ["attempt 2 of job 1 (t1) began while 1 was held"]


def test_a_run_of_a_job_in_another_queue(story: Story) -> None:
    id = story.enqueue(queue="served")
    story.jobs[id]["queue"] = "busy"
    story.run(id, 1, "ack")
    [finding] = story.findings()
    assert finding.startswith("job 1 (t1) was claimed by serve1 as {")


def test_a_run_too_many(story: Story) -> None:
    id = story.enqueue(queue="served", max_attempts=1)
    story.run(id, 1)
    story.now += 20
    story.run(id, 2, "ack")
    assert story.findings() == ["job 1 (t1) ran 2 times, with max_attempts 1"]


@pytest.mark.parametrize("status", [0, 77])
def test_a_run_handed_back_at_a_stop_counts_for_nothing(story: Story, status: int) -> None:
    id = story.enqueue(queue="served", max_attempts=1)
    story.run(id, 1)
    story.call("chaos", "terminate", status, who="serve1")
    story.run(id, 2, "ack", actor="serve2")
    assert story.findings() == []


def test_a_run_that_had_ended_before_the_stop_counts(story: Story) -> None:
    id = story.enqueue(queue="served", max_attempts=1)
    story.run(id, 1, "retry", "boom", 0)
    story.call("chaos", "terminate", 0, who="serve1")
    story.run(id, 2, "ack", actor="serve2")
    assert story.findings() == ["job 1 (t1) ran 2 times, with max_attempts 1"]


def test_a_job_that_is_dead_of_a_stop(story: Story) -> None:
    id = story.enqueue(queue="served")
    story.run(id, 1)
    story.call("chaos", "terminate", 0, who="serve1")
    story.dead(id, "interrupted")
    assert story.findings() == ["job 1 (t1) is dead of 'interrupted' for no reason"]


def test_a_job_with_the_error_of_a_stop(story: Story) -> None:
    id = story.enqueue(queue="served")
    story.run(id, 1)
    story.call("chaos", "terminate", 0, who="serve1")
    story.run(id, 2, "fail", "boom", actor="serve2")
    story.dead(id, "boom", attempts=2, released=1, retry_error="interrupted")
    assert story.findings() == ["job 1 (t1) has the retry_error 'interrupted', which nobody gave"]


def test_a_process_that_ends_badly_at_sigterm(story: Story) -> None:
    story.call("chaos", "terminate", 1, who="serve1")
    story.call("chaos", "terminate", -15, who="send2")
    story.call("chaos", "terminate", None, who="command3")
    assert story.findings() == [
        "serve1 ended with 1 at SIGTERM",
        "send2 ended with -15 at SIGTERM",
        "command3 did not end within 60 s of SIGTERM",
    ]


def test_a_process_that_ends_by_itself(story: Story) -> None:
    story.call("chaos", "ended", 77, who="serve1", at_work=True)  # by a handler
    story.call("chaos", "ended", 1, who="command2", at_work=False)  # without a database
    story.call("chaos", "ended", 1, who="serve3", at_work=True)
    story.call("chaos", "ended", 2, who="command4", at_work=False)
    assert story.findings() == [
        "serve3 ended by itself, with 1",
        "command4 ended by itself, with 2",
    ]


def test_workers_that_do_not_work_any_more(story: Story) -> None:
    story.call("chaos", "wait_for_workers", {"served": 3})
    assert story.findings() == ["3 ready jobs of queue served were left by all workers"]


def test_a_job_that_is_booked_twice(story: Story) -> None:
    id = story.enqueue(queue="served")
    story.run(id, 1, "ack")
    story.booked = [["t1", 1], ["t1", 1]]
    assert story.findings() == ["job (t1) was booked 2 times"]


@pytest.mark.parametrize("booked", [True, False])
def test_a_job_that_is_there_though_it_was_booked(story: Story, booked: bool) -> None:
    id = story.enqueue(queue="served")
    story.run(id, 1, "retry", "boom", 0)
    story.call("serve1", "book", True, queue="served", claim=[id, 1], more=[])
    if booked:
        story.booked = [["t1", 1]]
    story.dead(id, "boom")
    found = "job 1 (t1) is there after ack of attempt 1 of job 1 (t1) by serve1"
    assert story.findings() == ([found] if booked else [])


def test_a_thread_that_died(story: Story) -> None:
    story.panics = ["serve1: Exception in thread heartbeats:"]
    assert story.findings() == ["serve1: Exception in thread heartbeats:"]
