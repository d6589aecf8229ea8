"""Model, PostgreSQL and SQLite in lock step; and the proof that this finds faults."""

from __future__ import annotations

import math
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from alkstore._sql import installer
from tests.model import faults
from tests.model.faces import Postgres, Sqlite
from tests.model.lockstep import LockStep
from tests.model.package import Package

STEPS = int(os.environ.get("STEPS", "3000"))
STEPS_OF_A_RUN = 50


def run(faces: list[Any], steps: int, **more: Any) -> None:
    """By Hypothesis, so that what fails is made small. The same steps, unless asked for others."""

    class Machine(RuleBasedStateMachine):
        done = 0

        @initialize()
        def start(self) -> None:
            self.lock_step = LockStep(faces, **more)

        # One seed a step: much cheaper than a strategy for each argument.
        @rule(seed=st.integers(0, 2**24 - 1))
        def step(self, seed: int) -> None:
            self.lock_step.step(Random(seed))
            Machine.done += 1

        def teardown(self) -> None:
            self.lock_step.close()

    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=math.ceil(steps / STEPS_OF_A_RUN),
            stateful_step_count=STEPS_OF_A_RUN,
            derandomize="STEPS" not in os.environ,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
    print(f"{Machine.done} steps")
    assert Machine.done > steps // 4  # Hypothesis starts with short runs


def changed(sql: str, old: str, new: str, times: int = 1) -> str:
    assert sql.count(old) == times, "the text to be changed is no longer there"
    return sql.replace(old, new)


# What a claim costs depends on when the server vacuums; a costly one may leave the strict order.
COSTLY = ("> 25 + 3 * (", "> -1 - 0 * (", 2)
NEVER_COSTLY = ("> 25 + 3 * (", "> 2000000000 + 0 * (", 2)


def install(url: str, *changes: tuple[Any, ...]) -> None:
    """PostgreSQL's, with texts changed."""
    sql = installer("postgres")
    for old, new, *times in changes:
        sql = changed(
            sql, *(text.replace("alkstore.", "@alkstore@.") for text in (old, new)), *times
        )
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql.encode())


@pytest.fixture
def opened() -> Iterator[Callable[[Any], Any]]:
    faces = []

    def opened(face: Any) -> Any:
        faces.append(face)
        return face

    yield opened
    for face in faces:
        face.close()


def postgres(url: str) -> Postgres:
    face = Postgres(url)
    face.script(face.STOPPED_CLOCK)
    return face


def sqlite(path: str | Path, sql: str) -> Sqlite:
    face = Sqlite(str(path))
    face.script(sql)
    face.script(face.STOPPED_CLOCK)
    return face


def test_both_engines_do_what_the_model_does_by_raw_sql(empty_pg_url: str, opened: Any) -> None:
    install(empty_pg_url, NEVER_COSTLY)
    run([opened(postgres(empty_pg_url)), opened(sqlite(":memory:", installer("sqlite")))], STEPS)


def test_both_engines_do_what_the_model_does_through_the_package(
    empty_pg_url: str, sqlite_path: Path, opened: Any
) -> None:
    install(empty_pg_url, NEVER_COSTLY)
    raw = sqlite(sqlite_path, installer("sqlite"))
    raw.run("PRAGMA journal_mode = WAL")
    faces = [Package(postgres(empty_pg_url), empty_pg_url), Package(raw, str(sqlite_path))]
    run([opened(face) for face in faces], STEPS // 5)


def test_postgres_does_what_the_model_does_when_many_jobs_are_due(
    empty_pg_url: str, opened: Any
) -> None:
    install(empty_pg_url, NEVER_COSTLY, ("cardinality(due) > 100", "cardinality(due) > 0"))
    run([opened(postgres(empty_pg_url))], STEPS // 3)


def test_postgres_does_what_the_model_does_when_claims_are_costly(
    empty_pg_url: str, opened: Any
) -> None:
    """Then a claim notes where it ended, and the next one goes on from there within a second."""
    install(empty_pg_url, COSTLY)
    run([opened(postgres(empty_pg_url))], STEPS // 3, may_pass_over=True)


def test_both_engines_have_the_same_faults_to_be_found() -> None:
    assert list(faults.POSTGRES) == list(faults.SQLITE)


@pytest.mark.parametrize("fault", faults.POSTGRES)
def test_a_fault_in_postgres_is_found(fault: str, empty_pg_url: str, opened: Any) -> None:
    install(empty_pg_url, NEVER_COSTLY, faults.POSTGRES[fault])
    find(opened(postgres(empty_pg_url)))


@pytest.mark.parametrize("fault", faults.SQLITE)
def test_a_fault_in_sqlite_is_found(fault: str, opened: Any) -> None:
    find(opened(sqlite(":memory:", changed(installer("sqlite"), *faults.SQLITE[fault]))))


def find(face: Any) -> None:
    """Wrong answers, or errors that a user would see."""
    with pytest.raises((AssertionError, psycopg.Error, sqlite3.Error)):
        steps(face)


def steps(face: Any) -> None:
    for number in range(200):
        rng = Random(number)
        lock_step = LockStep([face])
        for _ in range(STEPS_OF_A_RUN):
            lock_step.step(rng)
        lock_step.close()
