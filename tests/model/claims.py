"""The steps that make claims and settle them."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.model.faces import JOB_COLUMNS, reach
from tests.model.reference import Job
from tests.model.steps import Handle, Steps


class Claims(Steps):
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
