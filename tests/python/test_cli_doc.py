"""docs/cli.md: its commands print what it shows, and it leaves out no command and no option."""

from __future__ import annotations

import argparse
import os
import re
import sys
from pathlib import Path

import pytest

import alkstore
from alkstore import cli
from tests.python.clock import Clock
from tests.python.commands import trouble
from tests.python.test_cli_targets import GRANTS, parsers
from tests.python.test_readme import BLOCK, ROOT, lines, run, sessions

PAGE = (ROOT / "docs" / "cli.md").read_text()


def section(title: str) -> str:
    """The text under a heading, up to the next one of any level."""
    match = re.search(rf"^#+ {title}\n(.*?)(?=^#|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert match, title
    return match[1]


def test_the_commands_print_what_is_shown(
    target: str, store: alkstore.Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ALKSTORE_URL", target)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    trouble(store, Clock(target))
    blocks = BLOCK.findall(PAGE)
    assert PAGE.count("```") == 2 * len(blocks)
    assert {kind for kind, _ in blocks} == {"console"}
    for _, block in blocks:
        for session in sessions(block):
            assert lines(run(session.command)) == lines("\n".join(session.prints)), session


def test_every_command_and_option_is_documented() -> None:
    common = section("Every command") + section("For machines")
    for name, parser in parsers().items():
        told = section(name) + common
        for action in parser._actions:
            if not isinstance(action, argparse._HelpAction):
                for option in action.option_strings:
                    assert re.search(rf"`{option}\b", told), f"{name} {option}"


def test_the_grant_of_each_command_is_documented() -> None:
    rows = re.findall(r"^\| (.*) \| `grant_(\w+)`", section("Every command"), re.MULTILINE)
    told = {name: grant for names, grant in rows for name in re.findall(r"`([\w-]+)`", names)}
    assert told == GRANTS
    for command, grant in GRANTS.items():
        help_ = " ".join(parsers()[command].format_help().split())
        assert help_.count("alkstore.grant_") == help_.count(f"alkstore.grant_{grant}.") == 1


def test_every_exit_status_is_documented() -> None:
    statuses = re.findall(r"^\| (\d+) \|", section("Exit status"), re.MULTILINE)
    assert statuses == ["0", "1", "2", "3", "130"]
    assert statuses == re.findall(r"^  (\d+) ", cli.parser().format_help(), re.MULTILINE)
