"""examples/outbox.py: what was committed arrives, nothing else, and repeats can be told."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

import alkstore
from examples.outbox import Receiver, Shop

SCRIPT = Path(__file__).parents[2] / "examples" / "outbox.py"


class Witness(Receiver):
    """A receiver that writes down what reaches it, before it looks whether it knows it."""

    def __init__(self) -> None:
        super().__init__()
        self.arrived: list[tuple[str, int]] = []

    def take(self, key: str, order: int) -> None:
        self.arrived.append((key, order))
        super().take(key, order)


@pytest.fixture
def witness() -> Witness:
    return Witness()


@pytest.fixture
def shop(target: str, witness: Witness) -> Iterator[Shop]:
    with closing(Shop(target, witness, alkstore.StopToken())) as shop:
        yield shop


def test_all_that_was_committed_arrives_and_nothing_else(
    shop: Shop, witness: Witness, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.run(kills=6)
    with shop.store.transaction() as tx:
        rows = tx.connection.execute(f"SELECT number FROM {shop.name}").fetchall()
    committed = [number for (number,) in rows]
    every = len(committed) + len(shop.rolled_back)
    assert shop.rolled_back == list(range(4, every + 1, 4))
    assert sorted(committed + shop.rolled_back) == list(range(1, every + 1))

    # By the ids alone the receiver knows each order once, though many came more often.
    order_by_key = {
        f'"{shop.name}-{message}"': n
        for message, n in zip(shop.messages, sorted(committed), strict=True)
    }
    assert set(witness.arrived) == set(order_by_key.items())
    assert witness.taken == order_by_key
    assert len(witness.arrived) > len(committed)

    assert [shop.outbox.get_job(message) for message in shop.messages] == [None] * len(committed)
    assert shop.report() == 0
    assert capsys.readouterr().out == "".join(
        [
            *(f"killed deliverer {n} of 6\n" for n in (1, 2, 3)),
            "the receiver was down\n",
            *(f"killed deliverer {n} of 6\n" for n in (4, 5, 6)),
            f"orders committed        {len(committed):,}\n",
            f"orders rolled back      {len(shop.rolled_back):,}\n",
            f"requests                {witness.requests:,}\n",
            f"orders taken            {len(committed):,}\n",
            "of those rolled back    0\n",
            f"repeats known by id     {len(witness.arrived) - len(committed):,}\n",
            "deliverers killed       6\n",
            "problems                0\n",
        ]
    )


# -- what the report would notice -----------------------------------------------------------------


class EnoughAfter(alkstore.StopToken):
    def __init__(self, times: int) -> None:
        super().__init__()
        self.left = times

    def wait(self, timeout_s: float | None = None) -> bool:
        self.left -= 1
        return self.left == 0


@pytest.fixture
def finished(shop: Shop) -> Shop:
    """Orders 1 to 7, of which 4 is rolled back, delivered by hand."""
    shop.write_orders(EnoughAfter(7))
    for message, order in zip(shop.messages, (1, 2, 3, 5, 6, 7), strict=True):
        shop.receiver.take(str(message), order)
        assert shop.outbox.cancel(message)
    assert shop.report() == 0
    return shop


def lose(shop: Shop) -> None:
    shop.receiver.taken = {k: n for k, n in shop.receiver.taken.items() if n != 5}


def invent(shop: Shop) -> None:
    shop.receiver.take("99", 4)


def double(shop: Shop) -> None:
    shop.receiver.take("99", 5)


def leave(shop: Shop) -> None:
    shop.messages.append(shop.outbox.enqueue({"order": 5}))


@pytest.mark.parametrize(
    ("tamper", "problem"),
    [
        (lose, r"order 5 was never taken"),
        (invent, r"order 4 was taken, but does not exist"),
        (double, r"order 5 was taken 2 times"),
        (leave, r"message \d+ is left, pending"),
    ],
)
def test_what_is_wrong_is_told(
    finished: Shop, tamper: Any, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tamper(finished)
    assert finished.report() == 1
    assert re.search(rf"^problems                1\n  {problem}\n\Z", capsys.readouterr().out, re.M)


# -- as a program ---------------------------------------------------------------------------------


@pytest.fixture
def program(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[subprocess.Popen[str]]:
    # Without alkstore in it: the example installs it.
    url = request.getfixturevalue("empty_pg_url") if engine == "postgres" else ""
    (tmp_path / "scratch").mkdir()
    with subprocess.Popen(
        [sys.executable, SCRIPT, "--kills", "2"],
        env=os.environ | {"TMPDIR": str(tmp_path / "scratch"), "ALKSTORE_URL": url},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        yield process
    assert list((tmp_path / "scratch").iterdir()) == []
    if url:
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT * FROM alkstore.jobs").fetchall() == []
            tables = "SELECT * FROM pg_tables WHERE tablename LIKE 'alkstore_orders%'"
            assert connection.execute(tables).fetchall() == []


def test_it_runs_by_itself_and_clears_away(program: subprocess.Popen[str]) -> None:
    output, error = program.communicate(timeout=300)
    assert (program.returncode, error) == (0, "")
    assert output.endswith("deliverers killed       2\nproblems                0\n")


def test_ctrl_c_ends_it_in_one_line_and_clears_away(program: subprocess.Popen[str]) -> None:
    assert program.stdout
    assert program.stdout.readline() == "killed deliverer 1 of 2\n"
    os.killpg(program.pid, signal.SIGINT)  # to all of them, as the terminal does
    _, error = program.communicate(timeout=60)
    assert (program.returncode, error) == (130, "outbox: interrupted\n")
