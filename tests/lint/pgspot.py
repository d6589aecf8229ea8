"""pgspot, which looks for what a hostile search_path could make of the PostgreSQL sources.

It knows nothing of who calls whom. So the private functions are shown to it with the search_path
under which they run, that of the public function that calls them: nobody else may call them, see
tests/sql/postgres/core/privileges.sql. Pinning it on them as well would cost time in every call.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from alkstore._sql import compose, compose_extension
from tests.lint.postgres import without_meta_commands

PINNED = "SET search_path = pg_catalog, pg_temp"
# Operators call the clock, through the views, so it is shown as it is.
CALLED_BY_USERS = "alkstore._now()"


def check(sql: Path) -> list[str]:
    """The complaints about a folder with the PostgreSQL sources."""
    texts = {
        "sql/postgres": with_callers_path(installation(sql / "postgres")),
        "the one-file installer": compose("postgres", sql),
        "the extension": compose_extension(sql),
        "sql/postgres/uninstall.sql": (sql / "postgres/uninstall.sql").read_text(encoding="utf-8"),
    }
    return [f"{name}: {line}" for name, text in texts.items() for line in pgspot(text)]


def installation(folder: Path) -> str:
    """install.sql with the parts in place of the commands that include them."""

    def part(command: re.Match[str]) -> str:
        return (folder / command[1]).read_text(encoding="utf-8")

    text = (folder / "install.sql").read_text(encoding="utf-8")
    return without_meta_commands(re.sub(r"^\\ir (\S+)$", part, text, flags=re.MULTILINE))


def with_callers_path(text: str) -> str:
    def pin(function: re.Match[str]) -> str:
        pinned = PINNED in function[0] or CALLED_BY_USERS in function[0]
        return function[0] if pinned else f"{function[0]}{PINNED}\n"

    return re.sub(r"^CREATE FUNCTION alkstore\._.*?(?=^AS \$\$)", pin, text, flags=re.M | re.S)


def pgspot(text: str) -> list[str]:
    """The complaints about one script."""
    with tempfile.NamedTemporaryFile("w", suffix=".sql", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        command = [sys.executable, "-m", "pgspot", "--proc-without-search-path", CALLED_BY_USERS]
        done = subprocess.run([*command, file.name], capture_output=True, text=True)
    if done.returncode == 0:
        return []
    output = (done.stdout + done.stderr).splitlines()
    return [line for line in output if line.strip()]
