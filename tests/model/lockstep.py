"""Drives the model and any number of engines in lock step, and compares all that can be seen."""

from __future__ import annotations

import copy
from collections.abc import Callable
from random import Random
from typing import Any

from tests.model.faces import JOB_COLUMNS, OUTBOX, STATS, reach
from tests.model.reference import Job, Model
from tests.model.schedules import Steps

START = 1_000_000_000
MESSAGES = OUTBOX + "a"  # of an outbox, beside a queue of its name
QUEUES = ("a", "B", MESSAGES)
MAX_LIVE = 5  # where there are many jobs, little happens to each
SETTLING = ("ack", "release", "fail", "heartbeat", "retry")

Handle = tuple[str, int, int]  # queue, job id, attempt

WEIGHTS = {
    "enqueue": 12, "enqueue_batch": 3, "claim": 8, "ack": 4, "ack_batch": 3, "release": 3,
    "fail": 2, "heartbeat": 4, "retry": 12, "cancel": 2, "sweep_expired": 3, "move_clock": 3,
    "go_to_a_limit": 16, "begin_or_savepoint": 2, "end": 4, "trespass": 1, "schedule": 2,
    "unschedule": 1, "fire_schedules": 2,
}  # fmt: skip


class LockStep(Steps):
    """One run from an empty database. Each step is drawn from the random numbers it is given.

    `may_pass_over`: with one engine, whose claims may leave out jobs that are ready, until the
    clock has moved on.
    """

    def __init__(self, faces: list[Any], *, may_pass_over: bool = False) -> None:
        self.faces = faces
        self.may_pass_over = may_pass_over
        self.model = Model(START)
        self.ids: dict[int, list[int]] = {}  # the model's id -> each engine's
        self.known: list[dict[int, int]] = [{} for _ in faces]  # each engine's id -> the model's
        self.claims: list[Handle] = []  # all that were ever handed out
        self.saved: list[tuple[Any, ...]] = []  # what was, at each open transaction and savepoint
        self.story: list[str] = []
        for face in faces:
            face.reset()
            face.set_now(START)

    def close(self) -> None:
        if self.saved:
            self.each(lambda face: face.run("ROLLBACK"))

    def step(self, rng: Random) -> None:
        [name] = rng.choices(list(WEIGHTS), list(WEIGHTS.values()))
        try:
            getattr(self, name)(rng)
            self.look(rng)
        except Exception as error:
            error.add_note("\n".join(["after", *self.story]))
            raise

    def tell(self, text: str) -> None:
        self.story.append(f"{self.model.now - START:>6}: {text}")

    def each(self, call: Callable[[Any], Any]) -> list[Any]:
        return [call(face) for face in self.faces]

    def agree(self, expected: Any, call: Callable[[Any], Any]) -> None:
        for face in self.faces:
            got = call(face)
            assert got == expected, f"{type(face).__name__}: {got}, the model: {expected}"

    # -- ids, which each engine chooses for itself

    def engine_id(self, face: Any, id: int) -> int:
        """The engine's own id; of a job that never was, one that it never gave out."""
        return self.ids[id][self.faces.index(face)] if id in self.ids else 2**40 + id

    def know(self, id: int, engine_ids: list[int]) -> None:
        self.ids[id] = engine_ids
        for known, engine_id in zip(self.known, engine_ids, strict=False):
            known[engine_id] = id

    def in_model_ids(self, face: Any, rows: list[Any]) -> list[tuple[Any, ...]]:
        known = self.known[self.faces.index(face)]
        return [(known.get(row[0]), *row[1:]) for row in rows]

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

    def is_full(self) -> bool:
        return len(self.model.live) >= MAX_LIVE

    # -- claim

    def queue(self, rng: Random) -> str:
        return rng.choice(("a", "a", "a", "B", MESSAGES, MESSAGES))

    def claim(self, rng: Random, queue: str | None = None) -> None:
        queue = queue or self.queue(rng)
        worker = rng.choice(("w1", "w2"))
        n = rng.choice((None, 1, 1, 2, 2, 3, 9, 2**63 - 1, 0, -1))
        self.tell(f"claim {n} of {queue} by {worker}")
        answers = [
            self.in_model_ids(face, reach(face, queue, "claim", worker, n)) for face in self.faces
        ]
        chosen = [row[0] for row in answers[0]] if self.may_pass_over else None
        taken = self.model.claim(queue, worker, n, chosen)
        expected = [self.claimed(job) for job in taken]
        for face, answer in zip(self.faces, answers, strict=True):
            assert answer == expected, f"{type(face).__name__}: {answer}, the model: {expected}"
        self.claims += [(queue, job.id, job.attempts) for job in taken]

    @staticmethod
    def claimed(job: Job) -> tuple[Any, ...]:
        return (
            job.id, job.queue, job.payload, job.attempts, job.claim_expires_at, job.priority,
            job.max_attempts, job.worker_id, job.claimed_at, job.run_at, job.expires_at,
            job.created_at,
        )  # fmt: skip

    def held(self) -> list[Handle]:
        return [job.claim for job in self.model.live.values() if self.model.held(*job.claim)]

    # -- settle, by handles good, lapsed and stale; now and then by ones made up

    def handle(self, rng: Random) -> Handle:
        if not self.held() and rng.random() < 0.7:
            self.claim(rng)
        live = [claim for claim in self.claims if claim[1] in self.model.live]
        held = self.held()
        lost = [(q, id, a) for q, id, a in live if a < self.model.live[id].attempts]
        for pool in rng.choice(((held,), (held,), (lost, held), (lost, live), (self.claims,), ())):
            if pool and rng.random() < 0.5:
                return max(
                    pool, key=lambda claim: claim[2]
                )  # more is found where much has happened
            if pool:
                return rng.choice(pool)
        return self.queue(rng), rng.randint(0, len(self.ids) + 1), rng.randint(0, 2)

    def settle(self, call: str, handle: Handle, *more: Any) -> None:
        queue, id, attempt = handle
        self.tell(f"{call} attempt {attempt} of {id} in {queue} {more or ''}")
        expected = getattr(self.model, call)(queue, id, attempt, *more)
        self.agree(
            expected,
            lambda face: face.settle(call, queue, self.engine_id(face, id), attempt, *more),
        )

    def ack(self, rng: Random, handle: Handle | None = None) -> None:
        self.settle("ack", handle or self.handle(rng))

    def release(self, rng: Random, handle: Handle | None = None) -> None:
        self.settle("release", handle or self.handle(rng))

    def fail(self, rng: Random, handle: Handle | None = None) -> None:
        self.settle("fail", handle or self.handle(rng), rng.choice((None, "", "Grüße")))

    def heartbeat(self, rng: Random, handle: Handle | None = None) -> None:
        self.settle("heartbeat", handle or self.handle(rng), rng.choice((None, 1, 2, 6)))

    def retry(self, rng: Random, handle: Handle | None = None) -> None:
        handle, error = handle or self.handle(rng), rng.choice((None, None, "", "boom"))
        if rng.random() < 0.7:
            self.settle("retry", handle, error, rng.choice((0, 0, 0, 3)))
        else:
            self.retry_by_backoff(*handle, error)

    def retry_by_backoff(self, queue: str, id: int, attempt: int, error: str | None) -> None:
        self.tell(f"retry attempt {attempt} of {id} in {queue} by backoff, {error!r}")
        job = self.model.held(queue, id, attempt)
        allowed = self.model.backoff(job) if job else range(0)
        answers = self.each(
            lambda face: face.settle("retry", queue, self.engine_id(face, id), attempt, error, None)
        )
        drawn = self.model.now
        for face in self.faces if job and job.attempts_used < job.max_attempts else []:
            [row] = face.get_job(queue, self.engine_id(face, id))
            drawn = row[JOB_COLUMNS.index("run_at")]
            assert drawn - self.model.now in allowed, f"{type(face).__name__}: {drawn}, {allowed}"
        expected = self.model.retry(queue, id, attempt, error, drawn - self.model.now)
        assert answers == [expected] * len(self.faces)
        if expected and id in self.model.live:
            self.each(lambda face: face.set_run_at(self.engine_id(face, id), drawn))

    def ack_batch(self, rng: Random) -> None:
        queue = self.queue(rng)
        handles = [self.handle(rng) for _ in range(rng.randint(0, 4))]
        fenced = rng.random() < 0.5
        pairs = [(id, attempt if fenced else None) for _, id, attempt in handles]
        self.tell(f"ack_batch of {pairs} in {queue}")
        expected = self.model.ack_batch(queue, pairs)
        self.agree(
            expected,
            lambda face: face.ack_batch(
                queue, [self.engine_id(face, id) for id, _ in pairs], [a for _, a in pairs]
            ),
        )

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
