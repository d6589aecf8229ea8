"""The linters of the SQL: python -m tests.lint"""

from __future__ import annotations

import sys
from pathlib import Path

from alkstore._sql import compose
from tests.lint import clauses, pgspot, postgres, sqlite, twins

SQL = Path(__file__).resolve().parents[2] / "sql"


def main() -> int:
    files = {
        str(file.relative_to(SQL.parent)): file.read_text(encoding="utf-8")
        for file in sorted((SQL / "postgres").rglob("*.sql"))
    }
    complaints = [
        *postgres.check(files),
        *pgspot.check(SQL),
        *(f"sql/sqlite: {text}" for text in sqlite.check(compose("sqlite", SQL))),
        *(f"sql/{text}" for text in twins.check(SQL)),
        *(f"tests/sql: {text}" for text in clauses.complaints()),
    ]
    print("\n".join(complaints) or "SQL: all checks passed")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
