"""The processes at work: producers, workers, janitors. Each does random things until its time."""

from __future__ import annotations

import signal
import time
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import alkstore
from alkstore import Store
from tests.model.faces import reach
from tests.torture.actor import Actor
from tests.torture.database import HANDLED, JOBS_VIEW, QUEUES, SENT, errors

ENOUGH = 600  # live jobs, after which producers wait
MESSAGE_STAMPS = {
    "visibility_timeout_s": 300, "backoff_base_s": 5, "dead_letter_retention_s": None,
}  # fmt: skip


def payload(token: str) -> str:
    return f'{{"token": "{token}",  "n": 1.0}}'


class Producer(Actor):
    """Enqueues, mostly in transactions with a row of business of its own for each job."""

    store: Store | None = None

    def step(self) -> None:
        if self.store is None and SENT in self.queues:
            with errors():
                self.store = alkstore.open(self.url)
        queue = self.rng.choice(self.queues)
        if queue == "commanded" and self.rng.random() < 0.7:
            return  # a process for each takes its time
        if len(self.live()) > ENOUGH:
            time.sleep(0.2)
            return
        if self.rng.random() < 0.3:
            self.enqueue(queue, business=False)
            return
        with self.transaction():
            self.enqueue(queue, business=True)
            if self.rng.random() < 0.3:
                with self.savepoint():
                    self.enqueue(self.rng.choice(self.queues), business=True)
            self.pause(0.02)

    def enqueue(self, queue: str, *, business: bool) -> None:
        choice = self.rng.choice
        # Unlike those of all other rounds, whose dead jobs are there still.
        stem = f"{self.round} {self.journal.actor} {self.journal.calls}"
        tokens = [f"{stem} {n}" for n in range(choice((1, 1, 1, 2, 7)))]
        o = {
            "delay_s": choice((None, None, None, 0, 1, 5)),
            "run_at": choice((None, None, None, int(time.time()) - 100)),
            "priority": choice((None, None, -1, 1, 2)),
            "expires_s": choice((None, None, None, 3, 20)),
            "max_attempts": choice((None, 1, 2, 9)),
            "visibility_timeout_s": choice((1, 2, 4, 8)),
            "backoff_base_s": choice((0, 1, 2)),
            "dead_letter_retention_s": choice((None, None, 0, 10)),
        }
        given = dict(o)
        if queue == SENT:
            tokens = tokens[:1]
            for name, stamp in MESSAGE_STAMPS.items():
                o[name] = stamp
                del given[name]
        payloads = [payload(token) for token in tokens]
        arguments = {"queue": queue, "tokens": tokens, "options": o, "business": business}
        if queue == SENT:
            self.call("enqueue", lambda: [self.send(payloads[0], given)], **arguments)
        elif len(tokens) == 1:
            self.call("enqueue", lambda: [self.face.enqueue(queue, payloads[0], o)], **arguments)
        else:
            self.call("enqueue", lambda: self.face.enqueue_batch(queue, payloads, o), **arguments)
        if business:
            with errors():
                values = ", ".join(f"('{token}')" for token in tokens)
                self.face.run(f"INSERT INTO business VALUES {values}")

    def send(self, text: str, o: dict[str, Any]) -> int:
        """A message, through the package, in the transaction that there is, or none."""
        assert self.store is not None
        at = o["run_at"] and datetime.fromtimestamp(o["run_at"], UTC)
        outbox, options = self.store.outbox("sent"), o | {"run_at": at}
        return outbox.enqueue(alkstore.RawJson(text), **options, tx=self.face.connection)


class Worker(Actor):
    """Claims, settles, forgets, comes too late; some of it in transactions that may roll back."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.handles: list[tuple[str, int, int]] = []  # all that it ever had, good or not

    def step(self) -> None:
        if self.rng.random() < 0.15:
            with self.transaction():
                for _ in range(self.rng.randint(1, 3)):
                    self.act()
        else:
            self.act()

    def act(self) -> None:
        if self.rng.random() < 0.35:
            self.claim(self.rng.choice(QUEUES), self.rng.choice((None, 1, 1, 2, 5)))
        elif self.handles:
            self.settle()

    def claim(self, queue: str, n: int | None) -> int:
        # Two processes may use one name: it must not matter.
        worker = self.rng.choice((self.journal.actor, "worker"))
        rows = self.call(
            "claim",
            lambda: reach(self.face, queue, "claim", worker, n),
            queue=queue,
            worker=worker,
            n=n,
        )
        self.handles += [(queue, row[0], row[3]) for row in rows]
        return len(rows)

    def settle(self) -> None:
        # The newest is the likeliest to be good still; any one else is good for a refusal.
        position = -1 if self.rng.random() < 0.7 else self.rng.randrange(len(self.handles))
        handle = self.handles[position]
        queue = handle[0]
        error = self.rng.choice((None, f"{self.journal.actor}-{self.journal.calls}"))
        call, *more = self.rng.choice(
            (
                ("ack",), ("ack",), ("ack",), ("ack_batch",), ("release",), ("fail", error),
                ("retry", error, None), ("retry", error, 0), ("retry", error, 2),
                ("heartbeat", None), ("heartbeat", 3), ("forget",),
            )
        )  # fmt: skip
        if call == "ack_batch":
            batch = [h for h in self.handles if h[0] == queue][-4:]
            pairs = [(id, attempt) for _, id, attempt in batch]
            self.call(
                "ack_batch",
                lambda: self.face.ack_batch(queue, [p[0] for p in pairs], [p[1] for p in pairs]),
                queue=queue,
                claims=pairs,
            )
            self.handles = [h for h in self.handles if h not in batch]
        elif call != "forget":
            self.settle_one(call, *handle, *more)
        if call not in ("heartbeat", "ack_batch") and self.rng.random() < 0.8:
            self.handles.remove(handle)
        del self.handles[:-50]

    def settle_one(self, call: str, queue: str, id: int, attempt: int, *more: Any) -> None:
        self.call(
            call,
            lambda: self.face.settle(call, queue, id, attempt, *more),
            queue=queue,
            claim=(id, attempt),
            more=more,
        )


class Janitor(Actor):
    """Sweeps, cancels, and looks whether a job is anywhere twice."""

    def step(self) -> None:
        queue = self.rng.choice(self.queues)
        what = self.rng.random()
        if what < 0.4:
            self.sweep(queue)
        elif what < 0.5:
            self.cancel(queue)
        else:
            twice = "SELECT job_id FROM {} GROUP BY job_id HAVING count(*) > 1"
            self.call("look", lambda: self.face.run(twice.format(JOBS_VIEW[self.engine])))
        self.pause(0.3)

    def sweep(self, queue: str) -> tuple[int, int]:
        expired, pruned = self.call(
            "sweep_expired", lambda: reach(self.face, queue, "sweep_expired"), queue=queue
        )
        return expired, pruned

    def cancel(self, queue: str) -> None:
        if ids := self.live():
            id = self.rng.choice(ids)
            self.call("cancel", lambda: reach(self.face, queue, "cancel", id), queue=queue, id=id)


ROLES = {"producer": Producer, "worker": Worker, "janitor": Janitor}


def run(
    role: str, engine: str, url: str, folder: Path, name: str, until: float, package: bool
) -> None:
    """The whole life of a process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one that started us ends us
    queues = QUEUES if role == "worker" or not package else QUEUES + HANDLED
    actor = ROLES[role](engine, url, folder, name, queues)
    try:
        actor.work(until)
    except Exception:
        actor.journal.write(crash=traceback.format_exc())
