"""Every public call of the PostgreSQL side once, in plain SQL, with its answer checked."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.sql import SQL, Composed, Identifier

# By which an owner makes roles; not for those who use the queue.
_GRANTS = {"grant_producer", "grant_worker", "grant_scheduler", "grant_operator", "revoke_all"}


class Calls:
    """Makes calls on a connection in autocommit, and remembers which."""

    def __init__(self, connection: psycopg.Connection, schema: str = "alkstore") -> None:
        self.connection = connection
        self.schema = schema
        self.made: set[str] = set()

    def __call__(self, name: str, *arguments: object, **options: object) -> Any:
        """The answer: a value, a list of rows of several, or None for no row."""
        self.made.add(name)
        named = [SQL("{} => %s").format(Identifier(option)) for option in options]
        values = SQL(", ").join([*(SQL("%s") for _ in arguments), *named])
        call: Composed = SQL("SELECT * FROM {}({})").format(Identifier(self.schema, name), values)
        rows = self.connection.execute(call, [*arguments, *options.values()]).fetchall()
        return rows[0][0] if len(rows) == 1 and len(rows[0]) == 1 else rows

    def claim(self, queue: str) -> tuple[int, int]:
        ((job_id, found_queue, payload, attempt, *_),) = self("claim", queue, "worker")
        assert (found_queue, payload) == (queue, {"b": 1})
        return job_id, attempt

    def public(self) -> set[str]:
        names = """
            SELECT proname FROM pg_catalog.pg_proc
            WHERE pronamespace = pg_catalog.quote_ident(%s)::regnamespace AND proname !~ '^_'"""
        return {name for (name,) in self.connection.execute(names, [self.schema])} - _GRANTS


def make_every_call(connection: psycopg.Connection, schema: str = "alkstore") -> None:
    call = Calls(connection, schema)
    queue = "every call"
    payload = '{"b": 1}'

    assert call("version") == "0.1.0"
    first = call("enqueue", queue, payload)
    assert call.claim(queue) == (first, 1)
    assert call("claim", queue, "worker") == []
    assert call("heartbeat", queue, first, 1, extend_s=60) is True
    assert call("retry", queue, first, 1, "error", delay_s=0) is True
    assert call.claim(queue) == (first, 2)
    assert call("release", queue, first, 2) is True
    assert call.claim(queue) == (first, 3)
    assert call("ack", queue, first, 2) is False
    assert call("ack", queue, first, 3) is True
    assert call("get_job", queue, first) == []

    batch = [row[0] for row in call("enqueue_batch", queue, f"[{payload}, {payload}]")]
    assert [call.claim(queue)[0] for _ in batch] == batch
    assert call("ack_batch", queue, batch, [1, 1]) == 2
    doomed = call("enqueue", queue, payload, dead_letter_retention_s=0)
    assert call.claim(queue) == (doomed, 1)
    assert call("fail", queue, doomed, 1, "error") is True
    assert call("get_job", queue, doomed)[0][2] == "dead"
    late = call("enqueue", queue, payload, delay_s=60)
    assert call("next_due", queue) is not None
    assert call("cancel", queue, late) is True
    assert call("sweep_expired", queue)[0][0] == 0
    assert call("wake_channel", queue) == queue

    assert call("acquire_lock", "every lock", "owner", 60) is True
    assert call("renew_lock", "every lock", "owner", 60) is True
    assert call("release_lock", "every lock", "owner") is True
    assert call("lead_schedules", "owner", 60) is True
    assert call("resign_schedules", "owner") is True
    assert call("schedule", "every hour", "@every 1h", queue, payload) is not None
    assert call("fire_schedules", "every hour") == []
    assert call("unschedule", "every hour") is True

    message = call("outbox_enqueue", "every box", payload)
    ((job_id, box, *_),) = call("outbox_claim", "every box", "worker")
    assert (job_id, box) == (message, "__alkstore_outbox_every box")
    assert call("outbox_get_job", "every box", message)[0][2] == "processing"
    assert call("ack", box, message, 1) is True
    assert call("outbox_cancel", "every box", message) is False
    assert call("outbox_sweep_expired", "every box") == [(0, 0)]

    assert call.made == call.public()
