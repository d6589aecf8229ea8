"""Drives the model and any number of engines in lock step, and compares all that can be seen."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import astuple
from random import Random
from typing import Any

from tests.model.claims import Claims
from tests.model.faces import JOB_COLUMNS, STATS, reach
from tests.model.reference import Job
from tests.model.steps import MESSAGES, QUEUES

SETTLING = ("ack", "release", "fail", "heartbeat", "retry")
SCHEDULES = ("s1", "s2")
# One text or another for the same interval; and one of which more boundaries are missed than fire.
SPECS = ("@every 60s", "@every 1m", "@every 1m", "@every 100s", "@every 2s")

WEIGHTS = {
    "enqueue": 12, "enqueue_batch": 3, "claim": 8, "ack": 4, "ack_batch": 3, "release": 3,
    "fail": 2, "heartbeat": 4, "retry": 12, "cancel": 2, "sweep_expired": 3, "move_clock": 3,
    "go_to_a_limit": 16, "begin_or_savepoint": 2, "end": 4, "trespass": 1, "schedule": 2,
    "unschedule": 1, "fire_schedules": 2,
}  # fmt: skip


class LockStep(Claims):
    """One run from an empty database. Each step is drawn from the random numbers it is given.

    `may_pass_over`: with one engine, whose claims may leave out jobs that are ready, until the
    clock has moved on.
    """

    def step(self, rng: Random) -> None:
        [name] = rng.choices(list(WEIGHTS), list(WEIGHTS.values()))
        try:
            getattr(self, name)(rng)
            self.look(rng)
        except Exception as error:
            error.add_note("\n".join(["after", *self.story]))
            raise

    # -- enqueue

    def options(self, rng: Random, queue: str) -> dict[str, int | None]:
        run_at = rng.choice((None, None, None, None, -3, 0, 2))
        options = {
            "delay_s": rng.choice((None, None, None, None, None, 0, 1, 4)),
            "run_at": None if run_at is None else self.model.now + run_at,
            "priority": rng.choice((None, None, -1, 1, 2)),
            "expires_s": rng.choice((None, None, None, 1, 5, 8)),
            "max_attempts": rng.choice((None, 1, 2, 9, 9)),
        }
        stamps = {
            "visibility_timeout_s": rng.choice((None, None, 1, 5)),
            "backoff_base_s": rng.choice((None, 0, 1, 2, 2**31 - 1)),
            "dead_letter_retention_s": rng.choice((None, 0, 1, 5)),
        }
        return options if queue == MESSAGES else options | stamps

    def enqueue(self, rng: Random) -> None:
        self.add(
            rng,
            self.queue(rng),
            1,
            lambda face, queue, texts, o: [reach(face, queue, "enqueue", texts[0], o)],
        )

    def enqueue_batch(self, rng: Random) -> None:
        self.add(
            rng,
            rng.choice("aaaaaB"),
            rng.randint(0, 4),
            lambda face, queue, texts, o: face.enqueue_batch(queue, texts, o),
        )

    def add(self, rng: Random, queue: str, n: int, call: Callable[..., list[int]]) -> None:
        if self.is_full():
            return
        o = self.options(rng, queue)
        padding = " " * rng.choice((2, 2, 2500))  # long ones are stored elsewhere
        texts = [f'{{"n": {len(self.ids) + i},{padding}"x": 1.0}}' for i in range(n)]
        self.tell(f"enqueue {n} into {queue}, {o}")
        added = self.each(lambda face: call(face, queue, texts, o))
        for position, text in enumerate(texts):
            self.know(self.model.enqueue(queue, text, **o), [ids[position] for ids in added])

    # -- or end otherwise

    def cancel(self, rng: Random) -> None:
        queue, id = self.queue(rng), rng.randint(0, len(self.ids) + 1)
        self.tell(f"cancel {id} in {queue}")
        expected = self.model.cancel(queue, id)
        self.agree(expected, lambda face: reach(face, queue, "cancel", self.engine_id(face, id)))

    def sweep_expired(self, rng: Random, queue: str | None = None) -> None:
        queue = queue or self.queue(rng)
        self.tell(f"sweep {queue}")
        expected = self.model.sweep_expired(queue)
        self.agree(expected, lambda face: reach(face, queue, "sweep_expired"))

    def trespass(self, rng: Random) -> None:
        """The calls of a queue, on the messages of an outbox."""
        o = self.options(rng, "a")
        name, *arguments = rng.choice(
            (
                ("enqueue", "1", o), ("enqueue_batch", ["1", "2"], o), ("claim", "w1", 1),
                ("cancel", 1), ("sweep_expired",),
            )
        )  # fmt: skip
        self.tell(f"{name} of {MESSAGES}, which is refused")
        self.agree(
            "AK001",
            lambda face: face.refusal(lambda: getattr(face, name)(MESSAGES, *arguments)),
        )

    # -- schedules

    def schedule(self, rng: Random) -> None:
        options = (
            rng.choice((None, 1)),
            rng.choice((None, 1, 9)),
            rng.choice((None, 1, 100)),
        )  # priority, max_attempts, expires_s
        payload = rng.choice(("1", '{"n":  1.0}'))
        arguments = (rng.choice(SCHEDULES), rng.choice(SPECS), rng.choice("aB"), payload, *options)
        self.tell(f"schedule {arguments}")
        expected = self.model.schedule(*arguments)
        self.agree(expected, lambda face: face.schedule(*arguments))
        self.look_at_schedules()

    def unschedule(self, rng: Random) -> None:
        name = rng.choice(SCHEDULES)
        self.tell(f"unschedule {name}")
        expected = self.model.unschedule(name)
        self.agree(expected, lambda face: face.unschedule(name))
        self.look_at_schedules()

    def fire_schedules(self, rng: Random, name: str | None = None) -> None:
        if self.is_full():
            return
        name = name or rng.choice((None, None, *SCHEDULES))
        self.tell(f"fire {name or 'all'}")
        expected = self.model.fire_schedules(name)
        fired = [face.fire_schedules(name) for face in self.faces]
        for position, row in enumerate(expected):
            self.know(row[0], [rows[position][0] for rows in fired if position < len(rows)])
        for face, rows in zip(self.faces, fired, strict=True):
            got = self.in_model_ids(face, rows)
            assert got == expected, f"{type(face).__name__}: {got}, the model: {expected}"
        self.look_at_schedules()

    def look_at_schedules(self) -> None:
        schedules = sorted(self.model.schedules.values(), key=lambda schedule: schedule.name)
        self.agree([astuple(schedule) for schedule in schedules], lambda face: face.schedules())

    # -- the clock

    def move_clock(self, rng: Random) -> None:
        self.set_now(self.model.now + rng.choice((1, 1, 1, 5, 301, -1, -5)))

    def go_to_a_limit(self, rng: Random) -> None:
        """The last instant at which something holds, or the first at which it does not; and act."""
        limits: list[tuple[int, str, Any]] = []  # until when, the call that is for, its target

        def add(until: int | None, calls: tuple[str, ...], target: Any) -> None:
            limits.extend((until, call, target) for call in calls if until is not None)

        for job in self.model.live.values():
            add(job.claimable_from() - 1, ("claim",), job.queue)
            add(job.expires_at, ("claim", "sweep_expired"), job.queue)
            add(job.claim_expires_at, SETTLING, job.claim)
        for job in self.model.dead.values():
            add(job.pruned_after, ("sweep_expired",), job.queue)
        for schedule in self.model.schedules.values():
            add(schedule.next_run_at - 1, ("fire_schedules",), schedule.name)
        ahead = [limit for limit in limits if limit[0] >= self.model.now]
        if limits:
            last, call, target = rng.choice(ahead if ahead and rng.random() < 0.8 else limits)
            self.set_now(last + rng.randint(0, 1))
            getattr(self, call)(rng, target)

    def set_now(self, now: int) -> None:
        if self.may_pass_over:
            now = max(now, self.model.now)  # or a second would come twice
        self.model.now = now
        self.each(lambda face: face.set_now(now))

    # -- transactions

    def begin_or_savepoint(self, _: Random) -> None:
        if len(self.saved) == 3:
            return
        sql = f"SAVEPOINT s{len(self.saved)}" if self.saved else "BEGIN"
        self.tell(sql)
        self.each(lambda face: face.run(sql))
        self.saved.append((copy.deepcopy(self.model), list(self.claims), dict(self.ids)))

    def end(self, rng: Random) -> None:
        if not self.saved:
            return
        keep = rng.random() < 0.5
        before = self.saved.pop()
        self.tell(("keep " if keep else "undo ") + (f"s{len(self.saved)}" if self.saved else "all"))
        now, last_id = self.model.now, self.model.last_id
        if not keep:
            self.model, self.claims, self.ids = before
            self.model.last_id = last_id  # so that the ids of undone jobs stay nobody's
        if self.saved:
            name = f"s{len(self.saved)}"
            if not keep:
                self.each(lambda face: face.run(f"ROLLBACK TO SAVEPOINT {name}"))
            self.each(lambda face: face.run(f"RELEASE SAVEPOINT {name}"))
        else:
            self.each(lambda face: face.run("COMMIT" if keep else "ROLLBACK"))
        self.set_now(now)  # time goes on, whatever is undone

    # -- all that can be seen

    def look(self, rng: Random) -> None:
        jobs = sorted((*self.model.live.values(), *self.model.dead.values()), key=lambda j: j.id)
        rows = [self.row(job) for job in jobs]
        # One by its id too, which may be gone, or another queue's.
        id, queue = rng.randint(0, len(self.ids) + 1), self.queue(rng)
        one = [row for row in rows if row[:2] == (id, queue)]
        stats = {q: self.model.queue_stats(q) for q in QUEUES}
        counts = [(q, *(s[name] for name in STATS)) for q, s in stats.items() if any(s.values())]
        due = [self.model.next_due(q) for q in QUEUES]

        def looked(face: Any) -> Any:
            jobs, one, counts, due = reach(face, queue, "look", self.engine_id(face, id), QUEUES)
            # What lies in the past counts as now: an engine may tell either.
            due = [None if instant is None else max(instant, self.model.now) for instant in due]
            return self.in_model_ids(face, jobs), self.in_model_ids(face, one), sorted(counts), due

        self.agree((rows, one, sorted(counts), due), looked)

    @staticmethod
    def row(job: Job) -> tuple[Any, ...]:
        return tuple(getattr(job, column) for column in ("id", *JOB_COLUMNS[1:]))
