"""What sql/sqlite keeps to: every view and every trigger compiles.

SQLite looks at the names in a trigger's body only when a statement fires it, so a misspelt column
would wait for the first caller. EXPLAIN compiles a statement with all its triggers and runs none.
"""

from __future__ import annotations

import re
from typing import Any

import apsw

EVENT = re.compile(r"\bTRIGGER\b.*?\b(INSERT|UPDATE|DELETE)\b", re.IGNORECASE | re.DOTALL)


def check(installer: str) -> list[str]:
    """The complaints about an installer's text."""
    connection: Any = apsw.Connection(":memory:")
    # By default SQLite takes "a misspelt column" in double quotes for a string.
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DDL, 0)
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
    try:
        connection.execute(installer)
    except apsw.Error as error:
        return [f"the installer: {error}"]
    complaints = []
    for kind, name, table, sql in connection.execute(
        "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE type IN ('view', 'trigger')"
    ).fetchall():
        try:
            connection.execute("EXPLAIN " + statement(connection, kind, name, table, sql))
        except apsw.Error as error:
            complaints.append(f"{kind} {name}: {error}")
    return complaints


def statement(connection: apsw.Connection, kind: str, name: str, table: str, sql: str) -> str:
    """A statement that reads a view, or that fires a trigger."""
    if kind == "view":
        return f'SELECT * FROM "{name}"'
    event = EVENT.search(sql)
    assert event is not None
    match event[1].upper():
        case "INSERT":
            return f'INSERT INTO "{table}" DEFAULT VALUES'
        case "DELETE":
            return f'DELETE FROM "{table}"'
    columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
    return f'UPDATE "{table}" SET ' + ", ".join(f'"{c}" = "{c}"' for c in columns)
