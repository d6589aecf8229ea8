"""Installing into a PostgreSQL database, by psql and by the one-file installer, and out of it."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.errors import FeatureNotSupported, InsufficientPrivilege
from psycopg.errors import ObjectNotInPrerequisiteState as NotInPrerequisiteState

import alkstore
from alkstore._sql import SCHEMA_VERSION, installer
from tests.python.catalog import snapshot, without_schema
from tests.python.conftest import Databases

SOURCES = Path(__file__).parents[2] / "sql/postgres"
UNINSTALL = (SOURCES / "uninstall.sql").read_text()
ALREADY = f"alkstore {SCHEMA_VERSION} is installed already"

_numbers = itertools.count(1)

Install = Callable[[str], list[str]]


def by_psql(url: str) -> list[str]:
    """Install by psql; the notices."""
    psql = ["psql", "-Xq", "-d", url, "-f", SOURCES / "install.sql"]
    done = subprocess.run(psql, capture_output=True, text=True, env=os.environ | {"LC_ALL": "C"})
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    return re.findall("NOTICE:  (.*)", done.stderr)


def by_one_file(url: str, schema: str | None = None) -> list[str]:
    """Install by the one-file installer; the notices."""
    notices: list[str] = []
    with psycopg.connect(url, autocommit=True) as connection:
        connection.add_notice_handler(lambda n: notices.append(n.message_primary or ""))
        if schema is not None:
            connection.execute("SELECT set_config('alkstore.schema', %s, false)", (schema,))
        connection.execute(installer("postgres").encode())
    return notices


ways = pytest.mark.parametrize("install", [by_psql, by_one_file])


@pytest.fixture
def connection(empty_pg_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(empty_pg_url, autocommit=True) as connection:
        yield connection


@pytest.fixture(scope="module")
def reference(databases: Databases) -> list[str]:
    """What an installation into the schema alkstore looks like."""
    with psycopg.connect(databases.url(databases.template), autocommit=True) as connection:
        return snapshot(connection)


@pytest.fixture
def stranger(connection: psycopg.Connection) -> Iterator[str]:
    """A role that is nobody in particular."""
    name = f"alkstore_stranger_{os.getpid()}_{next(_numbers)}"
    role = sql.Identifier(name)
    connection.execute(sql.SQL("CREATE ROLE {}").format(role))
    yield name
    connection.execute("RESET ROLE")
    connection.execute(sql.SQL("REASSIGN OWNED BY {} TO CURRENT_USER").format(role))
    connection.execute(sql.SQL("DROP OWNED BY {}").format(role))
    connection.execute(sql.SQL("DROP ROLE {}").format(role))


def works(connection: psycopg.Connection, schema: str = "alkstore") -> None:
    """Every kind of call, through the schema's name."""
    run = sql.SQL("""
        SELECT {0}.enqueue('q', '1', max_attempts => 1);
        SELECT {0}.enqueue_batch('q', '[2, 3]');
        SELECT {0}.claim('q', 'w', 2);
        SELECT {0}.retry('q', 1, 1, 'e'), {0}.ack('q', 2, 1);
        SELECT {0}.schedule('s', '@every 1h', 'q', '4'), {0}.fire_schedules();
        SELECT {0}.acquire_lock('l', 'o', 60), {0}.outbox_enqueue('o', '5'), {0}.sweep_expired('q');
    """)
    connection.execute(run.format(sql.Identifier(schema)))
    stats = sql.SQL("SELECT queue, ready, dead FROM {}.queue_stats ORDER BY queue")
    assert connection.execute(stats.format(sql.Identifier(schema))).fetchall() == [
        ("__alkstore_outbox_o", 1, 0),
        ("q", 1, 1),
    ]


# -- the same everywhere --------------------------------------------------------------------------


def test_both_ways_make_the_same(empty_pg_url: str, reference: list[str]) -> None:
    """The reference was made by the one-file installer."""
    by_psql(empty_pg_url)
    with psycopg.connect(empty_pg_url, autocommit=True) as connection:
        assert snapshot(connection) == reference
        works(connection)


@pytest.mark.parametrize(
    "schema",
    [
        "Jobs-2",
        "ALKSTORE",
        "select",
        "a.b",
        " ",
        "ÜX-日本-😀",
        "q\"'%I$$;--",
        "'",
        "''",
        "$$",
        "$alkstore_body$",
        "$alkstore_installer$",
        "@alkstore@",
        "@extschema@",
        "\\",
        "%s",
        "x" * 63,
    ],
)
def test_any_schema_name_exactly(empty_pg_url: str, reference: list[str], schema: str) -> None:
    by_one_file(empty_pg_url, schema)
    with psycopg.connect(empty_pg_url, autocommit=True) as connection:
        assert snapshot(connection, schema) == reference
        works(connection, schema)
        schemas = connection.execute("SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_'")
        assert {name for (name,) in schemas} == {"public", "information_schema", schema}


@pytest.mark.parametrize("schema", ["j", "p", "claim", "queue", "moment", "alkstore_jobs"])
def test_a_schema_may_be_called_as_things_inside_are(empty_pg_url: str, schema: str) -> None:
    by_one_file(empty_pg_url, schema)
    with psycopg.connect(empty_pg_url, autocommit=True) as connection:
        works(connection, schema)


def test_two_schemas_in_one_database(empty_pg_url: str, reference: list[str]) -> None:
    by_psql(empty_pg_url)
    by_one_file(empty_pg_url, "Jobs-2")
    with psycopg.connect(empty_pg_url, autocommit=True) as connection:
        assert snapshot(connection) == reference
        assert snapshot(connection, "Jobs-2") == reference
        works(connection, "Jobs-2")
        assert connection.execute("SELECT count(*) FROM alkstore.jobs").fetchall() == [(0,)]


# -- again, and at once ---------------------------------------------------------------------------


@ways
def test_a_second_time_changes_nothing(empty_pg_url: str, install: Install) -> None:
    assert install(empty_pg_url) == []
    with psycopg.connect(empty_pg_url, autocommit=True) as connection:
        works(connection)
        everything = """
            SELECT (SELECT sum(xmin::text::bigint + oid::bigint) FROM pg_proc WHERE pronamespace = n.oid),
              (SELECT sum(xmin::text::bigint + oid::bigint) FROM pg_class WHERE relnamespace = n.oid),
              n.xmin::text, (SELECT json_agg(j) FROM alkstore.jobs j)
            FROM pg_namespace n WHERE nspname = 'alkstore'"""  # noqa: E501
        before = connection.execute(everything).fetchall()
        assert by_psql(empty_pg_url) == [ALREADY]
        assert by_one_file(empty_pg_url) == [ALREADY]
        assert connection.execute(everything).fetchall() == before


@pytest.mark.parametrize("ways", [[by_psql] * 20, [by_one_file] * 20, [by_psql, by_one_file] * 10])
def test_twenty_at_once(empty_pg_url: str, reference: list[str], ways: list[Install]) -> None:
    """One installs, the others find it installed."""
    with ThreadPoolExecutor(20) as pool:
        notices = list(pool.map(lambda install: install(empty_pg_url), ways))
    assert sorted(notices) == [[]] + [[ALREADY]] * 19
    with psycopg.connect(empty_pg_url, autocommit=True) as connection:
        assert snapshot(connection) == reference


def test_it_belongs_to_the_callers_transaction(empty_pg_url: str) -> None:
    with psycopg.connect(empty_pg_url) as connection:
        connection.execute("SET LOCAL search_path = pg_temp, public")
        connection.execute(installer("postgres").encode())
        assert connection.execute("SHOW search_path").fetchall() == [("pg_temp, public",)]
        connection.execute("SELECT alkstore.enqueue('q', '1')")
        connection.rollback()
        assert connection.execute("SELECT to_regnamespace('alkstore')").fetchall() == [(None,)]


# -- who may, and where ---------------------------------------------------------------------------


@ways
def test_an_ordinary_owner_of_the_database(
    connection: psycopg.Connection, stranger: str, install: Install
) -> None:
    role = sql.Identifier(stranger)
    connection.execute(sql.SQL("ALTER ROLE {} LOGIN PASSWORD 'secret'").format(role))
    database = sql.Identifier(connection.info.dbname)
    connection.execute(sql.SQL("ALTER DATABASE {} OWNER TO {}").format(database, role))
    address = f"{connection.info.host}:{connection.info.port}/{connection.info.dbname}"
    url = f"postgresql://{stranger}:secret@{address}"
    assert install(url) == []
    with psycopg.connect(url, autocommit=True) as owner:
        works(owner)
        owner.execute("SELECT alkstore.grant_operator(current_user)")
        owners = owner.execute("""
            SELECT DISTINCT proowner::regrole::text FROM pg_proc
            WHERE pronamespace = 'alkstore'::regnamespace""")
        assert owners.fetchall() == [(stranger,)]
        with alkstore.open(url) as store:
            assert store.queue("r").enqueue(1) == 5
        owner.execute("SET alkstore.uninstall = 'with jobs'")
        owner.execute(UNINSTALL.encode())
        assert owner.execute("SELECT to_regnamespace('alkstore')").fetchall() == [(None,)]


def test_who_may_not_create_a_schema(connection: psycopg.Connection, stranger: str) -> None:
    connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(stranger)))
    with pytest.raises(InsufficientPrivilege, match="permission denied for database"):
        connection.execute(installer("postgres").encode())


def test_an_empty_schema_made_for_the_installer(
    connection: psycopg.Connection, stranger: str, reference: list[str]
) -> None:
    """By a DBA, for a role that may not create schemas. The comment on it stays."""
    role = sql.Identifier(stranger)
    connection.execute(sql.SQL("CREATE SCHEMA alkstore AUTHORIZATION {}").format(role))
    connection.execute("COMMENT ON SCHEMA alkstore IS 'the DBA''s'")
    connection.execute(sql.SQL("SET ROLE {}").format(role))
    connection.execute(installer("postgres").encode())
    works(connection)
    assert without_schema(snapshot(connection)) == without_schema(reference)
    comment = connection.execute("SELECT obj_description('alkstore'::regnamespace)").fetchall()
    assert comment == [("the DBA's",)]
    connection.execute("RESET ROLE")


@pytest.mark.parametrize(
    ("make", "fault"),
    [
        ("CREATE SCHEMA alkstore CREATE TABLE t (a int)", "is not empty"),
        ("CREATE SCHEMA alkstore; CREATE TYPE alkstore.t AS ENUM ()", "is not empty"),
        (
            "CREATE SCHEMA alkstore;"
            " CREATE FUNCTION alkstore.f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
            "is not empty",
        ),
        ("CREATE SCHEMA alkstore; CREATE OPERATOR alkstore.= (FUNCTION = int4eq, LEFTARG = int, RIGHTARG = int)", "is not empty"),  # noqa: E501
        ("CREATE SCHEMA alkstore; GRANT USAGE ON SCHEMA alkstore TO PUBLIC", "is open to others"),
        ("CREATE SCHEMA alkstore; GRANT CREATE ON SCHEMA alkstore TO {}", "is open to others"),
        ("CREATE SCHEMA alkstore AUTHORIZATION {}", "belongs to {}"),
    ],
)  # fmt: skip
@ways
def test_a_schema_that_is_not_the_installers_alone(
    empty_pg_url: str,
    connection: psycopg.Connection,
    stranger: str,
    install: Install,
    make: str,
    fault: str,
) -> None:
    connection.execute(make.format(stranger).encode())
    error = f"schema alkstore {fault.format(stranger)}"
    if install is by_one_file:
        with pytest.raises(NotInPrerequisiteState) as refusal:
            connection.execute(installer("postgres").encode())
        assert refusal.value.diag.message_primary == error
        assert "a schema of its own" in (refusal.value.diag.message_hint or "")
        assert len(refusal.value.diag.context or "") < 100
    else:
        with pytest.raises(AssertionError, match=re.escape(error)):
            install(empty_pg_url)
    assert connection.execute("SELECT to_regclass('alkstore._job')").fetchall() == [(None,)]


@pytest.mark.parametrize("schema", ["public", "pg_catalog", "information_schema"])
def test_a_schema_that_is_everybodys(connection: psycopg.Connection, schema: str) -> None:
    connection.execute("SELECT set_config('alkstore.schema', %s, false)", (schema,))
    with pytest.raises(NotInPrerequisiteState, match=f"schema {schema} "):
        connection.execute(installer("postgres").encode())


def test_a_schema_of_which_others_may_read(connection: psycopg.Connection, stranger: str) -> None:
    role = sql.Identifier(stranger)
    connection.execute("CREATE SCHEMA alkstore")
    connection.execute(sql.SQL("GRANT USAGE ON SCHEMA alkstore TO {}").format(role))
    connection.execute(installer("postgres").encode())
    works(connection)


@ways
def test_default_rights_give_public_nothing(
    empty_pg_url: str, connection: psycopg.Connection, install: Install
) -> None:
    for what in ("TABLES", "SEQUENCES", "FUNCTIONS", "TYPES", "SCHEMAS"):
        connection.execute(f"ALTER DEFAULT PRIVILEGES GRANT ALL ON {what} TO PUBLIC".encode())
    install(empty_pg_url)
    public = connection.execute("""
        SELECT o.name FROM (
          SELECT proname, proacl FROM pg_proc WHERE pronamespace = 'alkstore'::regnamespace
          UNION ALL SELECT relname, relacl FROM pg_class WHERE relnamespace = 'alkstore'::regnamespace
          UNION ALL SELECT nspname, nspacl FROM pg_namespace WHERE nspname = 'alkstore'
        ) o (name, acl), aclexplode(o.acl) a WHERE a.grantee = 0""")  # noqa: E501
    assert public.fetchall() == []


# -- refusals -------------------------------------------------------------------------------------


def test_an_old_server(connection: psycopg.Connection, tmp_path: Path) -> None:
    """No server older than 14 is at hand, so the number that the check asks for is raised."""
    script = installer("postgres")
    assert script.count("140000") == 1
    with pytest.raises(FeatureNotSupported) as error:
        connection.execute(script.replace("140000", "990000").encode())
    shown = connection.execute("SHOW server_version").fetchall()[0][0]
    sentence = f"alkstore needs PostgreSQL 14 or later; this server is {shown}"
    assert error.value.diag.message_primary == sentence
    assert connection.execute("SELECT to_regnamespace('alkstore')").fetchall() == [(None,)]


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_database_that_is_not_in_utf_8(databases: Databases, encoding: str) -> None:
    options = f"ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C'"
    name = databases.create("template0", options)
    try:
        with psycopg.connect(databases.url(name), autocommit=True) as connection:
            with pytest.raises(FeatureNotSupported) as error:
                connection.execute(installer("postgres").encode())
            sentence = f"alkstore needs a database in UTF8; this one is in {encoding}"
            assert error.value.diag.message_primary == sentence
            found = connection.execute("SELECT to_regnamespace('alkstore')").fetchall()
            assert found == [(None,)]
    finally:
        databases.drop(name)


@ways
def test_another_version(
    empty_pg_url: str, connection: psycopg.Connection, install: Install
) -> None:
    by_psql(empty_pg_url)
    connection.execute("""
        CREATE OR REPLACE FUNCTION alkstore.version() RETURNS text
        LANGUAGE sql IMMUTABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
        AS $$ SELECT '9.9.9' $$""")
    before = snapshot(connection)
    sentence = (
        "alkstore 9.9.9 is installed in schema alkstore;"
        f" this installer brings {SCHEMA_VERSION}"
    )  # fmt: skip
    expected = NotInPrerequisiteState if install is by_one_file else AssertionError
    with pytest.raises(expected, match=re.escape(sentence)):
        install(empty_pg_url)
    assert snapshot(connection) == before


@ways
def test_what_is_found_is_not_run(
    empty_pg_url: str, connection: psycopg.Connection, stranger: str, install: Install
) -> None:
    """A trap for an installer with more rights: another's function where ours is looked for."""
    connection.execute(f"CREATE SCHEMA alkstore AUTHORIZATION {stranger}".encode())
    connection.execute(f"SET ROLE {stranger}".encode())
    connection.execute("""
        CREATE FUNCTION alkstore.version() RETURNS text LANGUAGE plpgsql
        AS $$ BEGIN RAISE 'the trap was sprung as %', current_user; END $$""")
    connection.execute("RESET ROLE")
    expected = NotInPrerequisiteState if install is by_one_file else AssertionError
    with pytest.raises(expected, match=f"schema alkstore belongs to {stranger}"):
        install(empty_pg_url)
    with pytest.raises(alkstore.Unavailable, match=f"schema alkstore belongs to {stranger}"):
        alkstore.install(empty_pg_url)
    with pytest.raises(alkstore.NotInstalled):
        alkstore.open(empty_pg_url)


def test_a_hostile_search_path_while_installing(
    connection: psycopg.Connection, reference: list[str]
) -> None:
    connection.execute("CREATE SCHEMA trap")
    for function, result in (
        ("format(text, text)", "text"),
        ("replace(text, text, text)", "text"),
        ("quote_ident(text)", "text"),
        ("md5(text)", "text"),
        ("to_regprocedure(text)", "regprocedure"),
        ("to_regnamespace(text)", "regnamespace"),
        ("octet_length(text)", "int"),
        ("num_nulls(text, timestamptz, timestamptz)", "int"),
        ("current_setting(text)", "text"),
        ("current_setting(text, boolean)", "text"),
        ("text_eq(text, text)", "boolean"),
        ("older(timestamptz, timestamptz)", "boolean"),
    ):
        connection.execute(
            f"CREATE FUNCTION trap.{function} RETURNS {result} LANGUAGE plpgsql"
            " AS $$ BEGIN RAISE 'the trap was sprung'; END $$".encode()
        )
    connection.execute(
        "CREATE OPERATOR trap.= (FUNCTION = trap.text_eq, LEFTARG = text, RIGHTARG = text)"
    )
    connection.execute(
        "CREATE OPERATOR trap.<"
        " (FUNCTION = trap.older, LEFTARG = timestamptz, RIGHTARG = timestamptz)"
    )
    connection.execute("SET search_path = trap, pg_catalog")
    with pytest.raises(psycopg.errors.RaiseException, match="the trap was sprung"):
        connection.execute("SELECT md5('a'::text)")
    connection.execute(installer("postgres").encode())
    assert connection.execute("SHOW search_path").fetchall() == [("trap, pg_catalog",)]
    connection.execute("RESET search_path")
    assert snapshot(connection) == reference


# -- out of it ------------------------------------------------------------------------------------


@pytest.mark.parametrize("schema", ["alkstore", "q\"'%I$$;--"])
def test_uninstall(connection: psycopg.Connection, schema: str) -> None:
    connection.execute("SELECT set_config('alkstore.schema', %s, false)", (schema,))
    count = "SELECT count(*), sum(oid::bigint) FROM pg_depend, pg_namespace"
    before = connection.execute(count).fetchall()
    connection.execute(installer("postgres").encode())
    connection.execute("SET search_path = pg_temp")
    connection.execute(UNINSTALL.encode())
    assert connection.execute(count).fetchall() == before
    assert connection.execute("SHOW search_path").fetchall() == [("pg_temp",)]


@pytest.mark.parametrize(
    "call",
    [
        "alkstore.enqueue('q', '1')",
        "alkstore.schedule('s', '@every 1s', 'q', '1')",
        "alkstore.fail('q', alkstore.enqueue('q', '1'), alkstore.claim('q', 'w') IS NULL)",
    ],
)
def test_uninstall_keeps_jobs_unless_told(connection: psycopg.Connection, call: str) -> None:
    connection.execute(installer("postgres").encode())
    if "fail" in call:
        connection.execute("SELECT alkstore.enqueue('q', '1')")
        connection.execute("SELECT alkstore.claim('q', 'w')")
        connection.execute("SELECT alkstore.fail('q', 1, 1)")
    else:
        connection.execute(f"SELECT {call}".encode())
    before = snapshot(connection)
    for told in ("", "yes", "with job"):
        connection.execute("SELECT set_config('alkstore.uninstall', %s, false)", (told,))
        with pytest.raises(NotInPrerequisiteState, match="schema alkstore holds jobs"):
            connection.execute(UNINSTALL.encode())
        assert snapshot(connection) == before
    connection.execute("SET alkstore.uninstall = 'with jobs'")
    connection.execute(UNINSTALL.encode())
    assert connection.execute("SELECT to_regnamespace('alkstore')").fetchall() == [(None,)]


@pytest.mark.parametrize(
    "made",
    [
        "CREATE VIEW mine AS SELECT * FROM alkstore.jobs",
        "CREATE TABLE mine (a alkstore.claimed_job)",
        "CREATE VIEW mine AS SELECT alkstore.version()",
        "CREATE TABLE alkstore.mine (a int)",
    ],
)
def test_uninstall_takes_nothing_of_others(connection: psycopg.Connection, made: str) -> None:
    connection.execute(installer("postgres").encode())
    connection.execute(made.encode())
    before = snapshot(connection)
    with pytest.raises(psycopg.errors.DependentObjectsStillExist, match="depend"):
        connection.execute(UNINSTALL.encode())
    assert snapshot(connection) == before


def test_uninstall_where_there_is_nothing(connection: psycopg.Connection) -> None:
    connection.execute("CREATE SCHEMA alkstore")
    connection.execute("CREATE VIEW alkstore._job AS SELECT 1")
    with pytest.raises(psycopg.errors.UndefinedObject, match="is not installed in schema alkstore"):
        connection.execute(UNINSTALL.encode())


def test_who_does_not_own_it_cannot_uninstall(
    connection: psycopg.Connection, stranger: str
) -> None:
    connection.execute(installer("postgres").encode())
    connection.execute("SELECT alkstore.grant_operator(%s)", (stranger,))
    connection.execute(f"SET ROLE {stranger}".encode())
    with pytest.raises(InsufficientPrivilege):
        connection.execute(UNINSTALL.encode())


# -- the version's places -------------------------------------------------------------------------


def test_every_place_names_the_same_version() -> None:
    control = (SOURCES / "alkstore.control").read_text()
    assert re.findall("default_version = '(.*)'", control) == [SCHEMA_VERSION]
    assert f"SELECT '{SCHEMA_VERSION}'" in (SOURCES / "core/version.sql").read_text()
    install = (SOURCES / "install.sql").read_text()
    assert set(re.findall(r"\d+\.\d+\.\d+", install)) == {SCHEMA_VERSION}
