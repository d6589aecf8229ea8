"""The contract in plain Python: a dict of live jobs, a dict of dead ones, and a clock.

Read it as the contract's second text. Names and instants are those of the SQL; instants are
unix seconds. A refused operation is False, and has changed nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tests.model.schedules import Schedules


@dataclass
class Job:
    id: int
    queue: str
    payload: str
    priority: int
    max_attempts: int
    visibility_timeout_s: int
    backoff_base_s: int
    dead_letter_retention_s: int | None
    created_at: int
    run_at: int
    expires_at: int | None
    attempts: int = 0
    released: int = 0
    worker_id: str | None = None
    claimed_at: int | None = None
    claim_expires_at: int | None = None
    retry_error: str | None = None
    last_error: str | None = None
    died_at: int | None = None

    @property
    def state(self) -> str:
        if self.died_at is not None:
            return "dead"
        return "pending" if self.claim_expires_at is None else "processing"

    @property
    def claim(self) -> tuple[str, int, int]:
        """What names the last claim on it for ever."""
        return self.queue, self.id, self.attempts

    @property
    def attempts_used(self) -> int:
        return self.attempts - self.released

    def expired(self, now: int) -> bool:
        return self.expires_at is not None and self.expires_at < now

    def lapsed(self, now: int) -> bool:
        return self.claim_expires_at is not None and self.claim_expires_at < now

    def exhausted(self, now: int) -> bool:
        return self.lapsed(now) and self.attempts_used >= self.max_attempts

    def claimable_from(self) -> int:
        return self.run_at if self.claim_expires_at is None else self.claim_expires_at + 1

    @property
    def pruned_after(self) -> int | None:
        if self.died_at is None or self.dead_letter_retention_s is None:
            return None
        return self.died_at + self.dead_letter_retention_s

    def unclaim(self) -> None:
        self.worker_id = self.claimed_at = self.claim_expires_at = None


class Model(Schedules):
    def __init__(self, now: int) -> None:
        super().__init__(now)
        self.live: dict[int, Job] = {}
        self.dead: dict[int, Job] = {}
        self.last_id = 0

    # -- a job comes to be

    def enqueue(
        self,
        queue: str,
        payload: str,
        *,
        delay_s: int | None = None,
        run_at: int | None = None,
        priority: int | None = None,
        expires_s: int | None = None,
        max_attempts: int | None = None,
        visibility_timeout_s: int | None = None,
        backoff_base_s: int | None = None,
        dead_letter_retention_s: int | None = None,
    ) -> int:
        due = self.now if run_at is None else run_at
        if delay_s is not None:
            due = self.now + delay_s
        self.last_id += 1
        self.live[self.last_id] = Job(
            id=self.last_id,
            queue=queue,
            payload=payload,
            priority=0 if priority is None else priority,
            max_attempts=3 if max_attempts is None else max_attempts,
            visibility_timeout_s=300 if visibility_timeout_s is None else visibility_timeout_s,
            backoff_base_s=5 if backoff_base_s is None else backoff_base_s,
            dead_letter_retention_s=dead_letter_retention_s,
            created_at=self.now,
            run_at=due,
            expires_at=None if expires_s is None else self.now + expires_s,
        )
        return self.last_id

    # -- is handed out

    def claim(
        self, queue: str, worker_id: str, n: int | None, ids: list[int] | None = None
    ) -> list[Job]:
        """`ids`: take these of the ready ones, where an engine may pass over others."""
        n = 1 if n is None else n
        if n <= 0:
            return []
        for job in self.queued(queue):
            if job.exhausted(self.now):
                self.bury(job, "max attempts exceeded")
        ready = [job for job in self.queued(queue) if self.ready(job)]
        if ids is not None:
            assert bool(ids) == bool(ready), "a claim came back empty, or with jobs out of nowhere"
            ready = [job for job in ready if job.id in ids]
        taken = sorted(ready, key=lambda job: (-job.priority, job.run_at, job.id))[:n]
        for job in taken:
            job.worker_id = worker_id
            job.claimed_at = self.now
            job.attempts += 1
            job.claim_expires_at = self.now + job.visibility_timeout_s
        return taken

    def ready(self, job: Job) -> bool:
        return job.claimable_from() <= self.now and not job.expired(self.now)

    # -- and settled

    def held(self, queue: str, id: int, attempt: int | None) -> Job | None:
        """The job, if this very claim on it is good now."""
        job = self.live.get(id)
        if job is None or job.queue != queue or job.claim_expires_at is None:
            return None
        return job if job.attempts == attempt and not job.lapsed(self.now) else None

    def ack(self, queue: str, id: int, attempt: int | None) -> bool:
        job = self.held(queue, id, attempt)
        if job is not None:
            del self.live[job.id]
        return job is not None

    def ack_batch(self, queue: str, pairs: Iterable[tuple[int, int | None]]) -> int:
        """An attempt of None is not checked."""
        accepted = 0
        for id, attempt in pairs:
            if attempt is None and id in self.live:
                attempt = self.live[id].attempts
            accepted += self.ack(queue, id, attempt)
        return accepted

    def backoff(self, job: Job) -> range:
        cap = min(3600, job.backoff_base_s * 2 ** (job.attempts_used - 1))
        return range((cap + 1) // 2, cap + 1)

    def retry(
        self, queue: str, id: int, attempt: int | None, error: str | None, delay_s: int
    ) -> bool:
        """`delay_s` is given always; that a drawn one lies in backoff() is the caller's check."""
        job = self.held(queue, id, attempt)
        if job is None:
            return False
        if error is not None:
            job.retry_error = error
        if job.attempts_used >= job.max_attempts:
            self.bury(job, "max attempts exceeded" if error is None else error)
        else:
            job.unclaim()
            job.run_at = self.now + delay_s
        return True

    def release(self, queue: str, id: int, attempt: int | None) -> bool:
        job = self.held(queue, id, attempt)
        if job is not None:
            job.unclaim()
            job.released += 1
        return job is not None

    def fail(self, queue: str, id: int, attempt: int | None, error: str | None) -> bool:
        job = self.held(queue, id, attempt)
        if job is not None:
            self.bury(job, "failed" if error is None else error)
        return job is not None

    def heartbeat(self, queue: str, id: int, attempt: int | None, extend_s: int | None) -> bool:
        job = self.held(queue, id, attempt)
        if job is not None:
            seconds = job.visibility_timeout_s if extend_s is None else extend_s
            job.claim_expires_at = self.now + seconds
        return job is not None

    def cancel(self, queue: str, id: int) -> bool:
        job = self.live.get(id)
        if job is None or job.queue != queue:
            return False
        del self.live[id]
        return True

    # -- or ends otherwise

    def bury(self, job: Job, last_error: str) -> None:
        del self.live[job.id]
        job.last_error = last_error
        job.died_at = self.now
        self.dead[job.id] = job

    def sweep_expired(self, queue: str) -> tuple[int, int]:
        expired = [job for job in self.queued(queue) if job.expired(self.now)]
        for job in expired:
            self.bury(job, "expired")
        old = [job for job in self.dead.values() if job.queue == queue and self.prunable(job)]
        for job in old:
            del self.dead[job.id]
        return len(expired), len(old)

    def prunable(self, job: Job) -> bool:
        return job.pruned_after is not None and job.pruned_after < self.now

    # -- reading

    def queued(self, queue: str) -> list[Job]:
        return [job for job in self.live.values() if job.queue == queue]

    def next_due(self, queue: str) -> int | None:
        """What lies in the past counts as now: an engine may tell either."""
        instants = []
        for job in self.queued(queue):
            instant = max(self.now, job.claimable_from())
            if not job.expired(instant):
                instants.append(instant)
        return min(instants, default=None)

    def queue_stats(self, queue: str) -> dict[str, int]:
        stats = dict.fromkeys(("ready", "delayed", "processing", "lapsed", "expired", "dead"), 0)
        for job in self.queued(queue):
            if job.expired(self.now):
                stats["expired"] += 1
            elif job.state == "pending":
                stats["ready" if job.run_at <= self.now else "delayed"] += 1
            else:
                stats["lapsed" if job.lapsed(self.now) else "processing"] += 1
        stats["dead"] = sum(job.queue == queue for job in self.dead.values())
        return stats
