"""Drives the model and any number of engines in lock step, and compares all that can be seen."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.model.faces import JOB_COLUMNS, STATS
from tests.model.reference import Job, Model

START = 1_000_000_000
QUEUES = ("a", "B")

# Where nearly everything is rare, nothing ever happens: mostly defaults, few queues, few jobs.
queues = st.sampled_from("aaaB")
pick = st.integers(0, 10_000)
errors = st.sampled_from([None, "", "boom", "Grüße"])
options = st.fixed_dictionaries(
    {
        "delay_s": st.sampled_from([None, None, None, 0, 1, 4]),
        "run_at": st.sampled_from([None, None, None, -3, 0, 2]),  # from now
        "priority": st.sampled_from([None, None, -1, 1, 2]),
        "expires_s": st.sampled_from([None, None, None, 1, 5, 8]),
        "max_attempts": st.sampled_from([None, None, 1, 2]),
        "visibility_timeout_s": st.sampled_from([None, 1, 2, 3, 5]),
        "backoff_base_s": st.sampled_from([None, 0, 1, 2, 2**31 - 1]),
        "dead_letter_retention_s": st.sampled_from([None, None, 0, 1, 5]),
    }
)
# What a step can be: how often, and its arguments.
STEPS: dict[str, tuple[int, dict[str, Any]]] = {
    "enqueue": (12, {"queue": queues, "o": options}),
    "enqueue_batch": (4, {"queue": queues, "o": options, "n": st.integers(0, 4)}),
    "claim": (
        24,
        {
            "queue": queues,
            "worker": st.sampled_from(["w1", "w2"]),
            "n": st.sampled_from([None, 1, 1, 2, 2, 3, 9, 2**63 - 1, 0, -1]),
        },
    ),
    "ack": (6, {"number": pick}),
    "ack_batch": (
        4,
        {"numbers": st.lists(pick, max_size=5), "fenced": st.booleans(), "queue": queues},
    ),
    "release": (6, {"number": pick}),
    "fail": (4, {"number": pick, "error": errors}),
    "heartbeat": (6, {"number": pick, "extend_s": st.sampled_from([None, 1, 2, 6])}),
    "retry": (10, {"number": pick, "error": errors, "delay_s": st.integers(0, 4)}),
    "retry_by_backoff": (6, {"number": pick, "error": errors}),
    "cancel": (2, {"queue": queues, "number": pick}),
    "sweep_expired": (4, {"queue": queues}),
    "move_clock": (6, {"seconds": st.sampled_from([1, 1, 2, 5, 301, -1, -5])}),
    "move_clock_to_a_limit": (12, {"number": pick, "past": st.integers(0, 1)}),
    "begin_or_savepoint": (3, {}),
    "end": (6, {"keep": st.booleans()}),
}
steps = st.sampled_from(
    [name for name, (weight, _) in STEPS.items() for _ in range(weight)]
).flatmap(lambda name: st.tuples(st.just(name), st.fixed_dictionaries(STEPS[name][1])))


class LockStep(RuleBasedStateMachine):
    faces: list[Any]  # set by a subclass

    @initialize()
    def start(self) -> None:
        self.model = Model(START)
        self.ids: dict[int, list[int]] = {}  # the model's id -> each engine's
        self.claims: list[tuple[str, int, int]] = []  # all that were ever handed out
        self.saved: list[tuple[Any, ...]] = []  # what was, at each open transaction and savepoint
        for face in self.faces:
            face.reset()
            face.set_now(START)

    def teardown(self) -> None:
        if getattr(self, "saved", None):
            self.each(lambda face: face.run("ROLLBACK"))

    def each(self, call: Any) -> list[Any]:
        return [call(face) for face in self.faces]

    def agree(self, expected: Any, call: Any) -> None:
        for face in self.faces:
            got = call(face)
            assert got == expected, f"{type(face).__name__}: {got}, the model: {expected}"

    def engine_id(self, face: Any, id: int) -> int:
        """The engine's own id; of a job that never was, one that it never gave out."""
        return self.ids[id][self.faces.index(face)] if id in self.ids else 2**40 + id

    @rule(step=steps)
    def step(self, step: tuple[str, dict[str, Any]]) -> None:
        name, arguments = step
        getattr(self, name)(**arguments)

    # -- enqueue

    def added(self, ids_by_engine: list[list[int]], queue: str, texts: list[str], o: Any) -> None:
        for position, text in enumerate(texts):
            id = self.model.enqueue(queue, text, **o)
            self.ids[id] = [ids[position] for ids in ids_by_engine]

    def at_now(self, o: dict[str, int | None]) -> dict[str, int | None]:
        run_at = o["run_at"]
        return o | {"run_at": None if run_at is None else self.model.now + run_at}

    def enqueue(self, queue: str, o: Any) -> None:
        if len(self.model.live) > 8:
            return
        o = self.at_now(o)
        text = f'{{"n": {len(self.ids)}}}'
        self.added(self.each(lambda face: [face.enqueue(queue, text, o)]), queue, [text], o)

    def enqueue_batch(self, queue: str, o: Any, n: int) -> None:
        if len(self.model.live) > 6:
            return
        o = self.at_now(o)
        texts = [f"[{i}, 1.0]" for i in range(n)]
        self.added(self.each(lambda face: face.enqueue_batch(queue, texts, o)), queue, texts, o)

    # -- claim

    def claim(self, queue: str, worker: str, n: int | None) -> None:
        taken = [copy.copy(job) for job in self.model.claim(queue, worker, n)]
        self.agree(
            [self.claimed(job) for job in taken],
            lambda face: [self.in_model_ids(face, row) for row in face.claim(queue, worker, n)],
        )
        self.claims += [(queue, job.id, job.attempts) for job in taken]

    @staticmethod
    def claimed(job: Job) -> tuple[Any, ...]:
        return (
            job.id, job.queue, job.payload, job.attempts, job.claim_expires_at, job.priority,
            job.max_attempts, job.worker_id, job.claimed_at, job.run_at, job.expires_at,
            job.created_at,
        )  # fmt: skip

    def in_model_ids(self, face: Any, row: tuple[Any, ...]) -> tuple[Any, ...]:
        position = self.faces.index(face)
        [id] = [id for id, ids in self.ids.items() if ids[position] == row[0]]
        return (id, *row[1:])

    # -- settle, by handles live, lapsed and stale; now and then by ones made up

    def handle(self, number: int) -> tuple[str, int, int]:
        live = [claim for claim in self.claims if claim[1] in self.model.live]
        held = [claim for claim in live if self.model.held(*claim)]
        pool = (held, held, live, self.claims)[number % 4]
        if pool and number % 10:
            return pool[number // 10 % len(pool)]
        return QUEUES[number % 2], number % (len(self.ids) + 2), number % 3

    def settle(self, call: str, number: int, *more: Any) -> None:
        queue, id, attempt = self.handle(number)
        expected = getattr(self.model, call)(queue, id, attempt, *more)
        self.agree(
            expected,
            lambda face: face.settle(call, queue, self.engine_id(face, id), attempt, *more),
        )

    def ack(self, number: int) -> None:
        self.settle("ack", number)

    def release(self, number: int) -> None:
        self.settle("release", number)

    def fail(self, number: int, error: str | None) -> None:
        self.settle("fail", number, error)

    def heartbeat(self, number: int, extend_s: int | None) -> None:
        self.settle("heartbeat", number, extend_s)

    def retry(self, number: int, error: str | None, delay_s: int) -> None:
        self.settle("retry", number, error, delay_s)

    def retry_by_backoff(self, number: int, error: str | None) -> None:
        queue, id, attempt = self.handle(number)
        job = self.model.held(queue, id, attempt)
        allowed = None if job is None else self.model.backoff(job)
        answers = self.each(
            lambda face: face.settle("retry", queue, self.engine_id(face, id), attempt, error, None)
        )
        drawn = self.model.now
        for face in self.faces if job and job.attempts_used < job.max_attempts else []:
            [row] = face.get_job(queue, self.engine_id(face, id))
            drawn = row[JOB_COLUMNS.index("run_at")]
            assert drawn - self.model.now in (allowed or ()), (drawn, allowed)
        expected = self.model.retry(queue, id, attempt, error, drawn - self.model.now)
        assert answers == [expected] * len(self.faces)
        if id in self.model.live and expected:
            self.each(lambda face: face.set_run_at(self.engine_id(face, id), drawn))

    def ack_batch(self, numbers: list[int], fenced: bool, queue: str) -> None:
        handles = [self.handle(number) for number in numbers]
        pairs = [(id, attempt if fenced else None) for _, id, attempt in handles]
        expected = self.model.ack_batch(queue, pairs)
        self.agree(
            expected,
            lambda face: face.ack_batch(
                queue, [self.engine_id(face, id) for id, _ in pairs], [a for _, a in pairs]
            ),
        )

    def cancel(self, queue: str, number: int) -> None:
        id = number % (len(self.ids) + 2)
        expected = self.model.cancel(queue, id)
        self.agree(expected, lambda face: face.cancel(queue, self.engine_id(face, id)))

    def sweep_expired(self, queue: str) -> None:
        expected = self.model.sweep_expired(queue)
        self.agree(expected, lambda face: face.sweep_expired(queue))

    # -- the clock, transactions

    def move_clock(self, seconds: int) -> None:
        self.set_now(self.model.now + seconds)

    def move_clock_to_a_limit(self, number: int, past: int) -> None:
        """To the last instant at which something holds, or the first at which it does not."""
        limits = {self.model.now} | {
            limit
            for job in (*self.model.live.values(), *self.model.dead.values())
            for limit in (job.run_at - 1, job.expires_at, job.claim_expires_at, job.pruned_after)
            if limit is not None
        }
        self.set_now(sorted(limits)[number % len(limits)] + past)

    def set_now(self, now: int) -> None:
        self.model.now = now
        self.each(lambda face: face.set_now(now))

    def begin_or_savepoint(self) -> None:
        if len(self.saved) == 3:
            return
        sql = f"SAVEPOINT s{len(self.saved)}" if self.saved else "BEGIN"
        self.each(lambda face: face.run(sql))
        self.saved.append((copy.deepcopy(self.model), list(self.claims), dict(self.ids)))

    def end(self, keep: bool) -> None:
        if not self.saved:
            return
        before = self.saved.pop()
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

    @invariant()
    def the_same_everywhere(self) -> None:
        if not hasattr(self, "model"):
            return
        jobs = sorted((*self.model.live.values(), *self.model.dead.values()), key=lambda j: j.id)
        columns = ["id", *JOB_COLUMNS[1:]]
        expected = [tuple(getattr(job, column) for column in columns) for job in jobs]
        self.agree(expected, lambda face: [self.in_model_ids(face, row) for row in face.jobs()])
        for queue in QUEUES:
            due = self.model.next_due(queue)
            self.agree(due, lambda face, q=queue: self.not_before_now(face.next_due(q)))
            stats = self.model.queue_stats(queue)
            counts = [tuple(stats[name] for name in STATS)] if any(stats.values()) else []
            self.agree(counts, lambda face, q=queue: face.queue_stats(q))

    def not_before_now(self, instant: int | None) -> int | None:
        return None if instant is None else max(instant, self.model.now)
