"""Model, PostgreSQL and SQLite in lock step; and the proof that this finds faults."""

from __future__ import annotations

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
from tests.model.faces import Package, Postgres, Sqlite
from tests.model.lockstep import LockStep

STEPS = int(os.environ.get("STEPS", "3000"))
STEPS_OF_A_RUN = 50


def run(faces: list[Any], steps: int) -> None:
    """By Hypothesis, so that what fails is made small. The same steps, unless asked for others."""

    class Machine(RuleBasedStateMachine):
        done = 0

        @initialize()
        def start(self) -> None:
            self.lock_step = LockStep(faces)

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
            max_examples=max(1, steps // STEPS_OF_A_RUN),
            stateful_step_count=STEPS_OF_A_RUN,
            derandomize="STEPS" not in os.environ,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
    print(f"{Machine.done} steps")
    assert Machine.done >= steps // 2


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


def test_both_engines_do_what_the_model_does_by_raw_sql(pg_url: str, opened: Any) -> None:
    run([opened(postgres(pg_url)), opened(sqlite(":memory:", installer("sqlite")))], STEPS)


def test_both_engines_do_what_the_model_does_through_the_package(
    pg_url: str, sqlite_path: Path, opened: Any
) -> None:
    raw = sqlite(sqlite_path, installer("sqlite"))
    raw.run("PRAGMA journal_mode = WAL")
    faces = [Package(postgres(pg_url), pg_url), Package(raw, str(sqlite_path))]
    run([opened(face) for face in faces], STEPS // 5)


def test_both_engines_have_the_same_faults_to_be_found() -> None:
    assert list(faults.POSTGRES) == list(faults.SQLITE)


@pytest.mark.parametrize("fault", faults.POSTGRES)
def test_a_fault_in_postgres_is_found(fault: str, empty_pg_url: str, opened: Any) -> None:
    with psycopg.connect(empty_pg_url, autocommit=True) as connection:
        right, wrong = (text.replace("alkstore.", "@alkstore@.") for text in faults.POSTGRES[fault])
        connection.execute(with_fault(installer("postgres"), right, wrong).encode())
    find(opened(postgres(empty_pg_url)))


@pytest.mark.parametrize("fault", faults.SQLITE)
def test_a_fault_in_sqlite_is_found(fault: str, opened: Any) -> None:
    find(opened(sqlite(":memory:", with_fault(installer("sqlite"), *faults.SQLITE[fault]))))


def with_fault(sql: str, right: str, wrong: str) -> str:
    assert sql.count(right) == 1, "the fault no longer fits the SQL"
    return sql.replace(right, wrong)


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
