"""The committed dumps of the schema are what the sources make."""

from __future__ import annotations

import difflib
import os

import pytest

from tests.harness import schema_dump
from tests.harness.server import URL_VARIABLE


@pytest.mark.parametrize("engine", ["postgres", "sqlite"])
def test_the_dump_is_up_to_date(engine: str) -> None:
    url = os.environ[URL_VARIABLE]
    made = schema_dump.postgres(url) if engine == "postgres" else schema_dump.sqlite()
    file = schema_dump.FOLDER / f"{engine}.sql"
    kept = file.read_text(encoding="utf-8") if file.exists() else ""
    if made != kept:
        name = f"docs/schema/{engine}.sql"
        lines = (kept.splitlines(), made.splitlines())
        difference = "\n".join(difflib.unified_diff(*lines, name, "the sources", lineterm=""))
        pytest.fail(f"{difference}\n\nTo renew {name}: make schema-dump", pytrace=False)


def test_a_dump_is_alike_whatever_wrote_it() -> None:
    old = """\
-- Dumped from database version 14.9
SET lock_timeout = 0;
CREATE SCHEMA alkstore;
SET default_table_access_method = heap;


-- Name: v
CREATE VIEW alkstore.v AS
 SELECT l.name
   FROM alkstore._lock l
  WHERE (l.expires_at >= ( SELECT alkstore._now() AS _now));
"""
    new = (
        old.replace("SET lock", "SET transaction_timeout = 0;\nSET lock")
        .replace("l.name", "name")
        .replace("l.expires_at", "expires_at")
        + "\\unrestrict abc\n"
    )
    assert schema_dump.alike(old) == schema_dump.alike(new)
    assert "SET" not in schema_dump.alike(old)
    assert "SELECT alkstore._now() AS _now" in schema_dump.alike(old)
