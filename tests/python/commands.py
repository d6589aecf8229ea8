"""Commands run in the tests' process, and what there is to see for them."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import alkstore
from alkstore import cli
from alkstore._sql import SCHEMA_VERSION
from tests.python.clock import Clock

Command = Callable[..., tuple[int, str, str]]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of a command."""
    try:
        status = cli.main(arguments)
    except SystemExit as left:  # argparse's own way out
        status = int(left.code or 0)
    output = capsys.readouterr()
    return status, output.out, output.err


def failure(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line that a failing command says."""
    status, output, error = run(capsys, *arguments)
    assert (status, output) == (1, "")
    assert error.startswith("alkstore: ")
    assert error.endswith("\n")
    assert error.count("\n") == 1
    return error


def installed(where: Path | str) -> str:
    return f"installed alkstore {SCHEMA_VERSION} into {where}\n"


def already_installed(where: Path | str) -> str:
    return f"alkstore {SCHEMA_VERSION} is already installed in {where}\n"


def feed(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def objects(output: str) -> list[Any]:
    return [json.loads(line) for line in output.splitlines()]


def trouble(store: alkstore.Store, clock: Clock) -> None:
    """A queue with a job in every condition; the clock then stands at START + 120 s."""
    emails = store.queue("emails", visibility_timeout_s=60)
    for to in (1, 2, 3):
        emails.enqueue({"to": to})
    _lapses, fails, retries = emails.claim_batch("host-1:71", 3)
    fails.fail("no such address")
    retries.retry("no route to host", delay_s=7200)
    emails.enqueue({"to": 4}, expires_s=30)
    clock.advance(100)
    emails.enqueue({"to": 5}, priority=9)
    emails.claim_one("host-2:5")
    emails.enqueue({"to": 6}, priority=5)
    emails.enqueue({"to": 7})
    emails.enqueue({"to": 8}, delay_s=50)
    store.queue("reports").enqueue([], delay_s=100_000)
    clock.advance(20)
