"""The map of the contract finds what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lint import clauses

IDS = ["ack", "wake"]
POSTGRES = ["[ack] it goes", "[ack] on PostgreSQL", "[wake] it rings"]
SQLITE = ["[ack] it goes"]
ALONE = {"for a reason": {"[ack] on PostgreSQL"}}


def check(
    ids: list[str] = IDS, postgres: list[str] = POSTGRES, sqlite: list[str] = SQLITE
) -> set[str]:
    return set(clauses.check(ids, postgres, sqlite, ALONE, {}))


def test_two_suites_that_agree_are_fine() -> None:
    assert check() == set()


@pytest.mark.parametrize(
    ("suites", "complaint"),
    [
        ({"ids": [*IDS, "fail"]}, "[fail] is pinned by no test on PostgreSQL"),
        ({"ids": [*IDS, "fail"]}, "[fail] is pinned by no test on SQLite"),
        ({"sqlite": ["[ack] goes"]}, "[ack] goes: on SQLite alone"),
        ({"sqlite": ["[ack] goes"]}, "[ack] it goes: on PostgreSQL alone"),
        ({"sqlite": [*SQLITE, "[ax] x"]}, "[ax] x: the contract has no such clause"),
        (
            {"sqlite": [*SQLITE, "[ack] on PostgreSQL"]},
            "[ack] on PostgreSQL: is listed as on PostgreSQL alone, and is not",
        ),
    ],
)
def test_what_is_wrong_is_told(suites: dict[str, list[str]], complaint: str) -> None:
    assert complaint in check(**suites)


def test_titles_are_read_from_the_files(tmp_path: Path) -> None:
    for engine, text in (
        ("postgres", "SELECT ok(true, '[ack] it''s gone');"),
        ("sqlite", "-- [ack] it's gone\nSELECT 1;\n--> 1\n"),
    ):
        (tmp_path / "tests/sql" / engine).mkdir(parents=True)
        (tmp_path / "tests/sql" / engine / "ack.sql").write_text(text)
    assert clauses.postgres_titles(tmp_path) == ["[ack] it's gone"]
    assert clauses.sqlite_titles(tmp_path) == ["[ack] it's gone"]


def test_the_table_tells_where_a_title_is() -> None:
    assert list(clauses.table(IDS, POSTGRES, SQLITE)) == [
        "[ack]",
        "  both        it goes",
        "  PostgreSQL  on PostgreSQL",
        "[wake]",
        "  PostgreSQL  it rings",
    ]
