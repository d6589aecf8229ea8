"""Statements that call with arbitrary values, and what may come of them: all of it, on each engine.

Values are SQL expressions, so that types can be wrong too.
"""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import psycopg

from tests.model.faces import JOB_COLUMNS, Postgres, Row, Sqlite

NOW = 1_000_000_000

# -- values

GOOD: dict[str, tuple[str, ...]] = {
    "queue": ("'q'", "'q'", "'q'", "'other'", "'Grüße 日本 😀'"),
    "outbox": ("'o'", "NULL"),
    "name": ("'s'", "'l'", "'new'"),
    "owner": ("'w'", "'somebody'"),
    "worker_id": ("'w'", "'__alkstore_w'"),
    "spec": ("'@every 1s'", "'@every 90m'", "'@every 24855d'"),
    "payload": ("'{\"a\": 1}'", "'null'", "'[]'", "'\"\\u0000\"'"),
    "payloads": ("'[]'", "'[1, {\"a\": 2}]'"),
    "job_id": ("1", "2", "2", "2", "3", "4", "5", "6", "7", "8", "9"),
    "attempt": ("1", "1", "2"),
    "error": ("NULL", "''", "'boom'"),
    "n": ("1", "3", "0", "-1", "9223372036854775807"),
    "delay_s": ("0", "2147483647"),
    "run_at": ("{0}", "{-62135596800}", "{253402300799}"),
    "priority": ("-2147483648", "2147483647"),
    "backoff_base_s": ("0", "2147483647"),
    "dead_letter_retention_s": ("0", "2147483647"),
    "job_ids": ("ARRAY[2, 2, 9]", "ARRAY[]::bigint[]", "ARRAY[2, NULL]"),
    "attempts": ("ARRAY[1, 1, 1]", "NULL", "ARRAY[1, NULL]"),
    **dict.fromkeys(
        ("expires_s", "max_attempts", "visibility_timeout_s", "extend_s", "ttl_s"),
        ("1", "2147483647"),
    ),
}
NUMBERS = (
    "0", "-1", "1", "2147483647", "2147483648", "-2147483649", "4294967297", "9223372036854775807",
    "-9223372036854775808", "9223372036854775808", "1e400", "-1e308", "1.0", "1.5", "-0.0", "1e-9",
    "(1 + 0)",
)  # fmt: skip
TEXTS = (
    "''", "' '", "'1'", "'-1'", "' 1'", "'1.0'", "'1e3'", "'x'", "'NaN'", "'Infinity'", "'NULL'",
    "'true'", "'__alkstore_q'", "'__alkstore_outbox_o'", "'__ALKSTORE_q'", "'{q}'", "'{1,2}'",
    "'{\"a\":'", "'[1,]'", "'[1] x'", "'nul'", "'01'", "'\"\\ud800\"'", "'\"\\x\"'", "'1e999'",
    "'@every'", "'@every 0s'", "'@every 1 s'", "'@every  1s'", "'@every 01s'", "'@every -1s'",
    "'@every 2147483648s'", "'@every 99999999999999999999d'", "'@EVERY 1s'", "'@every 1s '",
    "'* * * * *'", "'q''; DROP TABLE x; --'", "'a\tb\nc'", "'%s %'", "'\u202e'", "'2001-01-01'",
)  # fmt: skip
POSTGRES = (
    "NULL", "NULL::integer", "NULL::text", "NULL::jsonb", "NULL::bytea", "true", "1::smallint",
    "1::numeric", "1.5::numeric", "'NaN'::numeric", "'NaN'::float8", "'Infinity'::float8",
    "1::money", "'1'::text", "'q'::varchar", "'q'::name", "'q'::\"char\"", "'{}'::json",
    "'{\"a\": 1}'::jsonb", "'[1]'::jsonb", "'\\x00ff'::bytea", "''::bytea", "ARRAY[1]",
    "ARRAY['q']", "ARRAY[NULL]::bigint[]",
    "'{{1,2},{3,4}}'::bigint[]", "'{}'::text[]", "'[0:1]={2,2}'::bigint[]", "ROW(1, 2)", "now()",
    "'infinity'::timestamptz", "'-infinity'::timestamptz", "'4000-01-01 BC'::timestamptz",
    "'294276-01-01'::timestamptz", "'epoch'::date", "interval '1 s'", "'1 s'", "point '(1,2)'",
    "E'a\\x01b'", "E'\\x00'", "U&'\\D800'", "chr(0)", "gen_random_uuid()", "B'101'",
    "'<a/>'::xml", "int4range(1, 2)", "inet '::1'", "repeat('x', 255)", "repeat('x', 256)",
    "repeat('é', 128)", "repeat('[', 999) || repeat(']', 999)", "repeat('[', 100000)",
    "(SELECT 'q' WHERE false)", "(SELECT 1)", "pg_typeof(1)", "'alkstore._job'::regclass",
)  # fmt: skip
SQLITE = (
    "NULL", "TRUE", "x''", "x'00'", "x'71'", "x'7b7d'", "x'ff'", "char(0)", "'q' || char(0)",
    "'{}' || char(0)", "char(0) || '1'", "CAST(x'EDA080' AS TEXT)", "CAST(x'22ff22' AS TEXT)",
    "CAST(x'22EDA08022' AS TEXT)", "CAST('q' AS BLOB)", "CAST('1' AS NUMERIC)", "CAST(1 AS TEXT)",
    "CAST(1 AS REAL)", "1 = 1", "-9223372036854775807 - 1", "zeroblob(9)", "json('{\"a\": 1}')",
    "json_array(1, 2)", "(SELECT 'q' WHERE 0)", "(SELECT 1)", "random() % 5", "datetime('now')",
    "printf('%.*c', 255, 'x')", "printf('%.*c', 256, 'x')", "char(233) || printf('%.*c', 254, 'x')",
    "printf('%.*c', 999, '[') || printf('%.*c', 999, ']')", "printf('%.*c', 100000, '[')",
    "char(65533)", "char(55296)", "char(1114112)", "'\u0085'", "9223372036854775807 + 1",
)  # fmt: skip
HUGE = {
    "postgres": ("repeat('x', 10000000)", "'\"' || repeat('x', 10000000) || '\"'"),
    "sqlite": (
        "printf('%.*c', 10000000, 'x')", "zeroblob(10000000)",
        "'\"' || printf('%.*c', 10000000, 'x') || '\"'",
    ),
}  # fmt: skip

# -- calls

OPTIONS = (
    "delay_s", "run_at", "priority", "expires_s", "max_attempts", "visibility_timeout_s",
    "backoff_base_s", "dead_letter_retention_s",
)  # fmt: skip
BOTH: dict[str, tuple[str, ...]] = {
    "enqueue": ("queue", "payload", *OPTIONS),
    "claim": ("queue", "worker_id", "n"),
    "ack": ("queue", "job_id", "attempt"),
    "release": ("queue", "job_id", "attempt"),
    "fail": ("queue", "job_id", "attempt", "error"),
    "retry": ("queue", "job_id", "attempt", "error", "delay_s"),
    "heartbeat": ("queue", "job_id", "attempt", "extend_s"),
    "cancel": ("queue", "job_id"),
    "sweep_expired": ("queue",),
    "schedule": ("name", "spec", "queue", "payload", "priority", "max_attempts", "expires_s"),
    "unschedule": ("name",),
    "fire_schedules": ("name",),
    "lead_schedules": ("owner", "ttl_s"),
    "resign_schedules": ("owner",),
    "acquire_lock": ("name", "owner", "ttl_s"),
    "renew_lock": ("name", "owner", "ttl_s"),
    "release_lock": ("name", "owner"),
}
OUTBOX_OPTIONS = OPTIONS[:5]
CALLS: dict[str, dict[str, tuple[str, ...]]] = {
    "postgres": BOTH
    | {
        "enqueue_batch": ("queue", "payloads", *OPTIONS),
        "ack_batch": ("queue", "job_ids", "attempts"),
        "get_job": ("queue", "job_id"),
        "next_due": ("queue",),
        "wake_channel": ("queue",),
        "outbox_enqueue": ("outbox", "payload", *OUTBOX_OPTIONS),
        "outbox_claim": ("outbox", "worker_id", "n"),
        "outbox_get_job": ("outbox", "job_id"),
        "outbox_cancel": ("outbox", "job_id"),
        "outbox_sweep_expired": ("outbox",),
    },
    "sqlite": BOTH
    | {
        "enqueue": ("queue", "payload", *OPTIONS, "outbox", "job_id"),
        "claim": ("queue", "worker_id", "n", "outbox"),
        "ack_batch": ("queue", "job_id", "attempt"),
        "cancel": ("queue", "job_id", "outbox"),
        "sweep_expired": ("queue", "outbox"),
    },
}
# Left out now and then: the others, mostly.
OPTIONAL = {*OPTIONS, "n", "extend_s", "attempts"}


class Engine:
    """Makes statements, runs them, and looks at what they did. Each is undone again."""

    name: str
    values: tuple[str, ...]
    optional: frozenset[tuple[str, str]]
    native: re.Pattern[str]  # errors of the engine itself that may come of wrong values

    def __init__(self, face: Any) -> None:
        self.face = face
        self.outcomes: Counter[str] = Counter()
        self.before = self.state()

    def call(self, rng: Random) -> tuple[str, list[str]]:
        """A call, and which of its arguments to give."""
        call = rng.choice(list(CALLS[self.name]))
        given = []
        for argument in CALLS[self.name][call]:
            optional = argument in OPTIONAL or (call, argument) in self.optional
            if rng.random() < (0.25 if optional else 0.99):
                given.append(argument)
        return call, given

    def arguments(self, rng: Random, names: list[str]) -> list[str]:
        """Their values: one of them wrong, mostly, or any."""
        bad = rng.sample(names, min(1, len(names)))
        if rng.random() < 0.4:
            bad = [name for name in names if rng.random() < 0.3]
        return [self.value(rng, name, good=name not in bad) for name in names]

    def value(self, rng: Random, argument: str, *, good: bool) -> str:
        if good:
            text = rng.choice(GOOD[argument])
            return self.instant(text[1:-1]) if text.startswith("{") else text
        if rng.random() < 0.003:
            return rng.choice(HUGE[self.name])
        # Of the right type, mostly, and wrong only by its value.
        near = NUMBERS if re.search("_s$|^n$|^priority|^job|attempt", argument) else TEXTS
        return rng.choice(rng.choice((near, near, NUMBERS, TEXTS, self.values)))

    def instant(self, seconds: str) -> str:
        raise NotImplementedError

    def try_one(self, rng: Random) -> str:
        """Run a statement, and say what is wrong with what came of it."""
        statement = self.statement(rng)
        answer, error, after, jobs = self.run(statement)
        wrong = list(unsound(jobs))
        code = error and re.match(r"AK00[1-4]", error)
        if error and not code and not self.native.match(error):
            wrong.append(f"the error {error}")
        if not answer and after != self.before:
            wrong += [f"the change {row:.300}" for row in sorted(after ^ self.before)]
        outcome = code[0] if code else "native" if error else "accepted" if answer else "no effect"
        self.outcomes[outcome] += 1
        return "\n  ".join([f"{statement:.2000}", *wrong]) if wrong else ""

    def statement(self, rng: Random) -> str:
        raise NotImplementedError

    def run(self, statement: str) -> tuple[bool, str | None, set[str], list[Row]]:
        """Whether it did anything, or its error; all rows and the jobs after it. Then undo it."""
        raise NotImplementedError

    def state(self) -> set[str]:
        """All rows of all tables, with the types of their values."""
        raise NotImplementedError


class PostgresEngine(Engine):
    name = "postgres"
    values = POSTGRES
    optional = frozenset({("fire_schedules", "name")})
    native = re.compile(
        r"42883|"  # no function takes such a type
        r"42804|42846|42P18|42725|"  # types that do not go together, or tell too little
        r"22003|22P02|22007|22008|22021|22P05|22023|"  # no value of the type
        r"54000|42601"  # no text
    )

    def instant(self, seconds: str) -> str:
        return f"to_timestamp({seconds})"

    def statement(self, rng: Random) -> str:
        call, names = self.call(rng)
        values = self.arguments(rng, names)
        named = ", ".join(f"{n} => {value}" for n, value in zip(names, values, strict=True))
        return f"SELECT * FROM alkstore.{call}({named})"

    def run(self, statement: str) -> tuple[bool, str | None, set[str], list[Row]]:
        connection = self.face.connection
        connection.execute("BEGIN")
        try:
            rows = connection.execute(statement.encode()).fetchall()
            answer = any(any(row) for row in rows) and not re.search(READS, statement)
            after, jobs = self.state(), self.face.jobs()
        except psycopg.Error as error:
            connection.execute("ROLLBACK")
            return False, f"{error.sqlstate} {error}", self.state(), []
        connection.execute("ROLLBACK")
        return answer, None, after, jobs

    def state(self) -> set[str]:
        tables = ("_job", "_dead_job", "_schedule", "_lock")
        rows = (f"SELECT '{table}' || t::text FROM alkstore.{table} t" for table in tables)
        return {text for (text,) in self.face.run(" UNION ALL ".join(rows))}


READS = r"^SELECT \* FROM alkstore\.(get_job|next_due|wake_channel|outbox_get_job)\("


class SqliteEngine(Engine):
    name = "sqlite"
    values = SQLITE
    optional = frozenset(
        {("fire_schedules", "name"), ("enqueue", "job_id")}
        | {(call, "outbox") for call in ("enqueue", "claim", "cancel", "sweep_expired")}
    )
    native = re.compile("datatype mismatch")  # a job_id that is no number

    def instant(self, seconds: str) -> str:
        return seconds

    def statement(self, rng: Random) -> str:
        call, names = self.call(rng)
        conflict = rng.choice(("", "", "", " OR IGNORE", " OR REPLACE", " OR FAIL", " OR ABORT"))
        insert = f"INSERT{conflict} INTO alkstore_{call}"
        if not names:
            return f"{insert} DEFAULT VALUES RETURNING *"
        rows = [self.arguments(rng, names) for _ in range(rng.choice((1, 1, 1, 2)))]
        values = ", ".join(f"({', '.join(row)})" for row in rows)
        return f"{insert}({', '.join(names)}) VALUES {values} RETURNING *"

    def run(self, statement: str) -> tuple[bool, str | None, set[str], list[Row]]:
        connection = self.face.connection
        connection.execute("SAVEPOINT one")
        try:
            answer, error = bool(connection.execute(statement).fetchall()), None
        except sqlite3.Error as caught:
            answer, error = False, str(caught)
        after, jobs = self.state(), self.face.jobs()
        connection.execute("ROLLBACK TO one")
        connection.execute("RELEASE one")
        if re.search(r"alkstore_(claim|sweep_expired|fire_schedules)\b", statement) and not error:
            answer = after != self.before  # a row back says nothing
        return answer, error, after, jobs

    def state(self) -> set[str]:
        tables = ("job", "dead_job", "payload", "schedule", "lock")
        return {
            table + repr(row)
            for table in tables
            for row in self.face.run(f"SELECT * FROM __alkstore_{table}")
        }


def unsound(jobs: list[Row]) -> Iterator[str]:
    """What no job may be, whatever was asked for."""
    for row in jobs:
        job = dict(zip(JOB_COLUMNS, row, strict=True))
        for name, least in LEAST.items():
            value = job[name]
            if value is not None and not (type(value) is int and least <= value < 2**31):
                yield f"job {job['job_id']} has {name} {value!r:.100}"
        for name in ("queue", "payload", "worker_id", "retry_error", "last_error"):
            if not isinstance(job[name], str | None):
                yield f"job {job['job_id']} has {name} {job[name]!r:.100}"
        if not 1 <= len(job["queue"].encode("utf-8", "surrogateescape")) <= 255:
            yield f"job {job['job_id']} is in queue {job['queue']!r:.300}"


LEAST = {
    "priority": -(2**31), "max_attempts": 1, "visibility_timeout_s": 1, "backoff_base_s": 0,
    "dead_letter_retention_s": 0,
}  # fmt: skip


def prepare(face: Postgres | Sqlite) -> None:
    """Jobs 1 to 9: pending, held, lapsed, two dead, expired, delayed, of another queue, of o."""
    face.set_now(NOW)
    options: dict[str, int | None] = {"visibility_timeout_s": 1000, "max_attempts": 1}
    for more in ({}, {}, {"visibility_timeout_s": 1}, {}, {"dead_letter_retention_s": 0}):
        face.enqueue("q", "1", {**options, **more})
    face.claim("q", "w", 5)
    face.settle("release", "q", 1, 1)
    face.settle("fail", "q", 4, 1, "boom")
    face.settle("fail", "q", 5, 1, "boom")
    face.enqueue("q", "6", {"expires_s": 1})
    face.enqueue("q", "7", {"delay_s": 2_000_000})
    face.enqueue("other", "8", options)
    if isinstance(face, Postgres):
        face.run("SELECT alkstore.outbox_enqueue('o', '9')")
        face.run("SELECT alkstore.schedule('s', '@every 5s', 'q', '8')")
        face.run("SELECT alkstore.acquire_lock('l', 'w', 1000)")
    else:
        face.run("INSERT INTO alkstore_enqueue(outbox, payload) VALUES ('o', '9')")
        columns, values = "name, spec, queue, payload", "'s', '@every 5s', 'q', '8'"
        face.run(f"INSERT INTO alkstore_schedule({columns}) VALUES ({values})")
        face.run("INSERT INTO alkstore_acquire_lock(name, owner, ttl_s) VALUES ('l', 'w', 1000)")
    face.set_now(NOW + 10)
