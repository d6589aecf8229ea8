"""docs/worker.md: its Python does what it shows, and what it names is what there is."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

import alkstore
from tests.python.test_readme import BLOCK, run_python

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "worker.md").read_text()


def blocks(kind: str) -> list[str]:
    return [text for found, text in BLOCK.findall(PAGE) if found == kind]


def test_every_block_is_of_a_kind_that_is_looked_at() -> None:
    assert {kind for kind, _ in BLOCK.findall(PAGE)} == {"python", "ini", "yaml"}
    assert PAGE.count("```") == 2 * len(BLOCK.findall(PAGE))


def test_python_prints_what_its_comments_say(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # The signals are pytest's; each example stops itself.
    monkeypatch.setattr(alkstore.StopToken, "on_signals", alkstore.StopToken)
    for block in blocks("python"):
        run_python(block, target)


def test_the_settings_are_those_of_the_class() -> None:
    table = PAGE.partition("## Settings")[2].partition("For work")[0]
    named = dict(re.findall(r"^\| `(\w+)` \| ([^|]*) \|", table, re.MULTILINE))
    parameters = inspect.signature(alkstore.Worker).parameters
    assert list(named) == [name for name, p in parameters.items() if p.kind == p.KEYWORD_ONLY]
    for name, default in named.items():
        if parameters[name].default is not None:
            assert float(parameters[name].default) == float({"True": 1}.get(default, default))


def test_who_stops_the_worker_is_more_patient_than_its_drain() -> None:
    drain_s = inspect.signature(alkstore.Worker).parameters["drain_s"].default
    for block in blocks("ini") + blocks("yaml"):
        (seconds,) = re.findall(r"(?:StopSec=|GracePeriodSeconds: )(\d+)", block)
        assert int(seconds) >= drain_s + 10


def test_every_line_that_it_logs_is_told() -> None:
    modules = ("_work.py", "_outcomes.py", "_claimer.py", "_heartbeats.py", "_wakes.py")
    formats = {
        node.args[0].value
        for module in modules
        for node in ast.walk(ast.parse((ROOT / "python" / "alkstore" / module).read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("warning", "complain", "_complain")
        and isinstance(node.args[0], ast.Constant)
    }
    trouble = PAGE.partition("## Trouble")[2].partition("\n## ")[0]
    told = [line for line in re.findall(r"`([^`]*)`", trouble) if ": " in line or "job 7" in line]
    assert len(formats) == len(told)
    for text in formats:
        pattern = re.sub(r"%(\\\.\d)?[dsrf]", ".+", re.escape(text))
        assert any(re.fullmatch(pattern, line) for line in told), text
