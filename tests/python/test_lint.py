"""The linters of the SQL: each one finds what it is there to find."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lint import pgspot, postgres, sqlite, twins

# -- PostgreSQL -----------------------------------------------------------------------------------

GOOD = r"""
\set ON_ERROR_STOP on
SELECT pg_catalog.pg_advisory_xact_lock(1) AS locked \gset
\ir part.sql
CREATE TABLE alkstore._t (a bigint, b text);
CREATE VIEW alkstore.v AS WITH w AS (SELECT a FROM alkstore._t) SELECT count(*) FROM w;
COMMENT ON VIEW alkstore.v IS 'It counts.';
CREATE FUNCTION alkstore._now() RETURNS timestamptz LANGUAGE sql AS $$ SELECT now() $$;
CREATE FUNCTION alkstore.f(a bigint, OUT c bigint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off
AS $$
DECLARE
  r alkstore._t%ROWTYPE;
  t alkstore._t;
  moment timestamptz := alkstore._now();
BEGIN
  FOR r IN SELECT x.* FROM alkstore._t x WHERE x.a = f.a FOR UPDATE OF x LOOP
    c := r.a + 1;
  END LOOP;
END $$;
COMMENT ON FUNCTION alkstore.f(bigint) IS 'It loops.';
DO $$ BEGIN PERFORM alkstore.f(1); END $$;
"""

FUNCTION = """\
CREATE FUNCTION alkstore.f(a bigint) RETURNS bigint
LANGUAGE {language} SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$ {body} $$;
COMMENT ON FUNCTION alkstore.f(bigint) IS 'It counts.';
CREATE FUNCTION alkstore._g() RETURNS bigint LANGUAGE sql AS $$ SELECT 1 $$;
CREATE TABLE alkstore._t (a bigint);
"""


def plpgsql(body: str, declare: str = "") -> str:
    return FUNCTION.format(language="plpgsql", body=f"DECLARE {declare} BEGIN {body} END")


def sql(body: str) -> str:
    return FUNCTION.format(language="sql", body=body)


def test_a_good_file_has_no_complaint() -> None:
    assert postgres.check({"good.sql": GOOD}) == []


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("SELEC 1;", 'syntax error at or near "SELEC"'),
        (plpgsql("RETURN 1"), "PL/pgSQL: syntax error"),
        (plpgsql("RETURN 1 +;"), "PL/pgSQL: syntax error"),
        (sql("SELEC 1"), 'syntax error at or near "SELEC"'),
        (sql("SELECT 1").replace("SET search_path = pg_catalog, pg_temp", ""), "lacks SET search"),
        (sql("SELECT 1").replace("pg_catalog, pg_temp", "alkstore, pg_temp"), "lacks SET search"),
        (sql("SELECT 1").replace("pg_catalog, pg_temp", "pg_catalog"), "lacks SET search"),
        (sql("SELECT 1").replace("SECURITY DEFINER", ""), "f(int8) is not SECURITY DEFINER"),
        (
            sql("SELECT 1")
            .replace("f(a bigint)", "revoke_all(a text)")
            .replace("f(bigint)", "revoke_all(text)"),
            "revoke_all(text) is not SECURITY INVOKER",
        ),
        (sql("SELECT 1").replace("alkstore.f(bigint) IS", "alkstore.f(int) IS"), "has no comment"),
        ("CREATE VIEW alkstore.v AS SELECT 1;", "view v has no comment"),
        # names, wherever they can stand
        ("CREATE TABLE t (a int);", "t: a relation without its schema"),
        ("CREATE TABLE public.t (a int);", "public.t: a name in a foreign schema"),
        ("CREATE FUNCTION _f() RETURNS int LANGUAGE sql AS 'SELECT 1';", "_f: a name without"),
        ("CREATE INDEX i ON t (a);", "t: a relation"),
        ("CREATE TYPE c AS (a int);", "c: a relation"),
        ("CREATE VIEW alkstore._v AS SELECT a FROM t;", "t: a relation"),
        ("COMMENT ON VIEW v IS '';", "v: a name"),
        ("COMMENT ON COLUMN t.c IS '';", "t.c: a name"),
        ("COMMENT ON FUNCTION f(int) IS '';", "f: a name"),
        ("REVOKE ALL ON FUNCTION f(int) FROM PUBLIC;", "f: a name"),
        ("REVOKE ALL ON t FROM PUBLIC;", "t: a relation"),
        (
            "CREATE TRIGGER r BEFORE INSERT ON alkstore.t FOR EACH ROW EXECUTE FUNCTION f();",
            "f: a name",
        ),
        ("DO $$ BEGIN PERFORM 1 FROM t; END $$;", "t: a relation"),
        (sql("SELECT _g()"), "_g: a name"),
        (sql("SELECT NULL::_t"), "_t: a name"),
        (sql("SELECT a FROM pg_class"), "pg_class: a relation"),
        (plpgsql("RETURN _g();"), "_g: a name"),
        (plpgsql("IF _g() > 1 THEN RETURN 1; END IF;"), "_g: a name"),
        (plpgsql("x := _g();", "x bigint;"), "_g: a name"),
        (plpgsql("RETURN x;", "x bigint := _g();"), "_g: a name"),
        (plpgsql("UPDATE t SET a = 1;"), "t: a relation"),
        (plpgsql("DELETE FROM alkstore._t WHERE a IN (SELECT a FROM t);"), "t: a relation"),
        (plpgsql("FOR a IN SELECT 1 FROM t LOOP RETURN 1; END LOOP;"), "t: a relation"),
        (plpgsql("RETURN public.g();"), "names something in the schema public"),
        (plpgsql("RETURN other.g();"), "other.g: a name in a foreign schema"),
    ],
)
def test_postgres_complains(text: str, complaint: str) -> None:
    complaints = postgres.check({"bad.sql": text})
    assert len(complaints) == 1
    assert complaints[0].startswith("bad.sql")
    assert complaint in complaints[0]


def test_a_complaint_names_file_and_line() -> None:
    text = "-- one\n\n-- two\nCREATE TABLE t (a int);\n"
    assert postgres.check({"bad.sql": text}) == ["bad.sql:4: t: a relation without its schema"]


# -- pgspot ---------------------------------------------------------------------------------------


def test_pgspot_complains() -> None:
    text = "CREATE FUNCTION alkstore.f() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1';"
    (complaint,) = (line for line in pgspot.pgspot(text) if line.startswith("PS"))
    assert complaint.startswith("PS003: SECURITY DEFINER function without explicit search_path")
    assert pgspot.pgspot(text.replace(" AS", " SET search_path = pg_catalog, pg_temp AS")) == []


def test_a_script_that_pgspot_cannot_read_is_a_complaint() -> None:
    assert "syntax error" in pgspot.pgspot("SELEC 1;")[-1]


def test_private_functions_are_shown_with_their_callers_path() -> None:
    text = """\
CREATE FUNCTION alkstore._now() RETURNS timestamptz LANGUAGE sql
AS $$ SELECT pg_catalog.now() $$;
CREATE FUNCTION alkstore._f(a int) RETURNS int LANGUAGE sql
AS $$ SELECT a + 1 $$;
CREATE FUNCTION alkstore.f(a int) RETURNS int LANGUAGE sql
AS $$ SELECT a + 1 $$;
"""
    shown = pgspot.with_callers_path(text)
    assert [line for line in shown.splitlines() if line not in text.splitlines()] == [pgspot.PINNED]
    complaints = " ".join(pgspot.pgspot(shown))
    assert "_f" not in complaints
    assert "_now" not in complaints
    assert "PS005: Function without explicit search_path: alkstore.f" in complaints


# -- SQLite ---------------------------------------------------------------------------------------

SQLITE_GOOD = """\
CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT);
CREATE VIEW v (a) AS SELECT a FROM t;
CREATE TRIGGER v_insert INSTEAD OF INSERT ON v BEGIN INSERT INTO t (b) VALUES (NEW.a); END;
CREATE TRIGGER v_update INSTEAD OF UPDATE ON v BEGIN UPDATE t SET b = NEW.a WHERE a = OLD.a; END;
CREATE TRIGGER t_delete AFTER DELETE ON t BEGIN SELECT RAISE(ABORT, 'no'); END;
"""


def test_good_triggers_compile() -> None:
    assert sqlite.check(SQLITE_GOOD) == []


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("CREATE TABL t (a);", 'the installer: near "TABL": syntax error'),
        (
            "CREATE TRIGGER bad INSTEAD OF INSERT ON v BEGIN INSERT INTO missing VALUES (1); END;",
            "trigger bad: no such table: main.missing",
        ),
        (
            "CREATE TRIGGER bad AFTER UPDATE OF b ON t BEGIN SELECT missing FROM t; END;",
            "trigger bad: no such column: missing",
        ),
        (
            "CREATE TRIGGER bad AFTER DELETE ON t BEGIN SELECT NEW.a; END;",
            "trigger bad: no such column: NEW.a",
        ),
        (
            'CREATE TRIGGER bad AFTER INSERT ON t BEGIN SELECT "missing" FROM t; END;',
            "trigger bad: no such column:",
        ),
        ("CREATE VIEW bad AS SELECT missing FROM t;", "view bad: no such column: missing"),
    ],
)
def test_sqlite_complains(text: str, complaint: str) -> None:
    setup = (
        "CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT); CREATE VIEW v (a) AS SELECT a FROM t;\n"
    )
    complaints = sqlite.check(setup + text)
    assert len(complaints) == 1
    assert complaints[0].startswith(complaint)


# -- twins ----------------------------------------------------------------------------------------


@pytest.fixture
def trees(tmp_path: Path) -> Path:
    for name in ("postgres/queue/claim.sql", "sqlite/queue/claim.sql", "postgres/core/roles.sql"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    return tmp_path


def test_twins_and_listed_exceptions_pass(trees: Path) -> None:
    assert twins.check(trees, {"core/roles.sql": "a reason"}, {}) == []


def test_a_file_without_its_twin_is_told(trees: Path) -> None:
    (trees / "sqlite/queue/ack.sql").touch()
    assert twins.check(trees, {}, {}) == [
        "postgres/core/roles.sql has no twin",
        "sqlite/queue/ack.sql has no twin",
    ]


def test_a_stale_exception_is_told(trees: Path) -> None:
    allowed = {"core/roles.sql": "a reason", "queue/claim.sql": "no reason", "gone.sql": "none"}
    told = "is listed as having no twin, but is not there or has one"
    assert twins.check(trees, allowed, {}) == [
        f"postgres/gone.sql {told}",
        f"postgres/queue/claim.sql {told}",
    ]
