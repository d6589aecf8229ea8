"""Journals and what is left in the end, written by hand, to see what the audit says of them."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from tests.model.faces import CLAIM_COLUMNS, JOB_COLUMNS
from tests.torture.actors import payload
from tests.torture.audit import Report, audit
from tests.torture.journal import Journal, Undone, read

NOW = 1_000_000_000
OPTIONS = {
    "delay_s": None, "run_at": None, "priority": None, "expires_s": None, "max_attempts": 2,
    "visibility_timeout_s": 10, "backoff_base_s": 0, "dead_letter_retention_s": None,
}  # fmt: skip


class Story:
    """Journals written by hand. Time moves a second with each call, unless told otherwise."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.now = float(NOW)
        self.journals: dict[str, Journal] = {}
        self.ids = itertools.count(1)
        self.jobs: dict[int, dict[str, Any]] = {}
        self.final: list[dict[str, Any]] = []
        self.business: list[str] = []
        self.booked: list[list[Any]] = []
        self.panics: list[str] = []
        monkeypatch.setattr("tests.torture.journal.time.time", lambda: self.now)

    def journal(self, actor: str) -> Journal:
        return self.journals.setdefault(actor, Journal(self.folder, actor))

    def call(self, actor: str, name: str, result: Any, **arguments: Any) -> None:
        """A result of ... is none: the process was killed. Undone: the call was refused."""
        try:
            with self.journal(actor).call(name, **arguments) as outcome:
                self.now += 0.25
                if result is ...:
                    raise KeyboardInterrupt
                if isinstance(result, Undone):
                    raise result
                outcome["result"] = result
        except (KeyboardInterrupt, Undone):
            pass
        self.now += 0.75

    def enqueue(
        self, result: Any = True, *, business: bool = False, queue: str = "q", **options: Any
    ) -> int:
        id = next(self.ids)
        token = f"t{id}"
        options = OPTIONS | options
        job = {"token": token, "options": options, "created_at": int(self.now), "queue": queue}
        self.jobs[id] = job
        self.call(
            "producer", "enqueue", [id] if result is True else result,
            queue=queue, tokens=[token], options=options, business=business,
        )  # fmt: skip
        return id

    def claimed(self, id: int, attempt: int = 1, **changes: Any) -> list[Any]:
        job, options = self.jobs[id], self.jobs[id]["options"]
        row = {
            "job_id": id, "queue": job["queue"], "payload": payload(job["token"]),
            "attempt": attempt,
            "claim_expires_at": int(self.now) + options["visibility_timeout_s"],
            "priority": options["priority"] or 0, "max_attempts": options["max_attempts"],
            "worker_id": "w", "claimed_at": int(self.now), "run_at": job["created_at"],
            "expires_at": None, "created_at": job["created_at"],
        }  # fmt: skip
        return [(row | changes)[column] for column in CLAIM_COLUMNS]

    def claim(self, *rows: list[Any], actor: str = "worker", n: int = 1) -> None:
        self.call(actor, "claim", list(rows), queue="q", worker="w", n=n)

    def run(self, id: int, attempt: int, *result: Any, actor: str = "serve1") -> None:
        """Of a handler; the result as told by handlers.py, without one it has no end."""
        row = dict(zip(CLAIM_COLUMNS, self.claimed(id, attempt), strict=True))
        self.call(actor, "run", list(result) or ..., worker="w", row=row)

    def settle(self, call: str, id: int, attempt: int, result: Any = True, *more: Any) -> None:
        self.call("worker", call, result, queue="q", claim=[id, attempt], more=list(more))

    def dead(self, id: int, last_error: str, **changes: Any) -> None:
        options = self.jobs[id]["options"]
        row = dict.fromkeys(JOB_COLUMNS) | {
            "job_id": id, "state": "dead", "payload": payload(self.jobs[id]["token"]),
            "priority": 0, "attempts": 1, "released": 0, "max_attempts": options["max_attempts"],
            "visibility_timeout_s": 10, "backoff_base_s": 0, "last_error": last_error,
        }  # fmt: skip
        self.final.append(row | changes)

    def report(self) -> Report:
        jobs = [[row[column] for column in JOB_COLUMNS] for row in self.final]
        final = {"jobs": jobs, "business": self.business, "booked": self.booked}
        return audit(read(self.folder), final | {"panics": self.panics})

    def findings(self) -> list[str]:
        return self.report().findings
