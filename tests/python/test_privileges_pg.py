"""What real roles can do when they log in, and what a hostile one can't make of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

import alkstore
from tests.python.roles import KINDS, Roles

SQL = Path(__file__).parents[2] / "sql/postgres"
OWNER_ONLY = {f"grant_{kind}" for kind in KINDS} | {"revoke_all"}
VIEWS = {
    "scheduler": {"locks", "schedules"},
    "operator": {"dead_jobs", "jobs", "locks", "queue_stats", "schedules"},
}


def functions(owner: psycopg.Connection) -> dict[str, str]:
    """Every function of the schema, and a call of it with NULL for every argument."""
    rows = owner.execute("""
        SELECT p.proname, format('SELECT * FROM alkstore.%I(%s)', p.proname, (
            SELECT string_agg('NULL::' || CASE t::text WHEN 'anycompatible' THEN 'text' ELSE t::text END, ', ' ORDER BY o)
            FROM unnest(p.proargtypes::regtype[]) WITH ORDINALITY a (t, o)))
        FROM pg_proc p WHERE p.pronamespace = 'alkstore'::regnamespace""")  # noqa: E501
    return dict(rows.fetchall())


def refused(connection: psycopg.Connection, statement: str) -> bool:
    """Whether a statement is refused for want of a right; our own refusals don't count."""
    try:
        connection.execute(statement.encode())
    except psycopg.errors.InsufficientPrivilege:
        return True
    except psycopg.Error as error:
        if not (error.sqlstate or "").startswith("AK"):
            raise
    return False


def test_each_role_can_call_its_own_functions_and_no_other(roles: Roles) -> None:
    """The lists themselves are pinned in tests/sql/postgres/core/privileges.sql."""
    calls = functions(roles.owner)
    public = {name for name in calls if not name.startswith("_")}
    can = {}
    for kind in (*KINDS, "stranger"):
        with psycopg.connect(roles.create(kind), autocommit=True) as connection:
            can[kind] = {name for name, call in calls.items() if not refused(connection, call)}
    assert can["producer"] == {"enqueue", "enqueue_batch", "outbox_enqueue", "version"}
    assert can["worker"] >= {"claim", "ack", "sweep_expired", "acquire_lock", "version"}
    assert can["worker"] & can["producer"] == {"version"}
    assert can["scheduler"] & (can["worker"] | can["producer"]) == {"version"}
    assert can["operator"] == (public - OWNER_ONLY) | {"_now"}
    others = can["producer"] | can["worker"] | can["scheduler"]
    assert can["operator"] - others == {"cancel", "outbox_cancel"}
    assert can["stranger"] == set()


def test_no_role_touches_a_table(roles: Roles) -> None:
    relations = roles.owner.execute(
        "SELECT relname, relkind FROM pg_class"
        " WHERE relnamespace = 'alkstore'::regnamespace AND relkind IN ('r', 'v', 'S')"
    ).fetchall()
    assert {kind for _, kind in relations} == {"r", "v", "S"}
    for role in KINDS:
        with psycopg.connect(roles.create(role), autocommit=True) as connection:
            for name, kind in relations:
                readable = name in VIEWS.get(role, ())
                assert refused(connection, f"SELECT * FROM alkstore.{name}") is not readable
                assert kind != "r" or refused(connection, f"DELETE FROM alkstore.{name}")


def test_producer_and_worker_and_scheduler_do_their_work(roles: Roles) -> None:
    """USAGE on the schema and EXECUTE on the calls is all that they need."""
    with alkstore.open(roles.create("producer")) as store:
        assert store.queue("q").enqueue_batch([1, 2, 3]) == [1, 2, 3]
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            store.queue("q").claim_one("w")
    with alkstore.open(roles.create("worker")) as store:
        queue = store.queue("q")
        first, second, third = queue.claim_batch("w", 3)
        assert first.ack()
        assert second.retry("e", delay_s=0)
        assert third.heartbeat()
        assert third.fail("e")
        assert queue.get_job(3) is not None
        assert queue.sweep_expired() == (0, 0)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            queue.enqueue(4)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            queue.cancel(2)
    with psycopg.connect(roles.create("scheduler"), autocommit=True) as connection:
        connection.execute("SELECT alkstore.schedule('s', '@every 1s', 'q', '5')")
        roles.owner.execute("UPDATE alkstore._schedule SET next_run_at = alkstore._now()")
        fired = connection.execute("SELECT queue, job_id FROM alkstore.fire_schedules()").fetchall()
        assert fired == [("q", 4)]
    with alkstore.open(roles.create("operator")) as store:
        assert store.queue("q").cancel(2)
        assert store.queue("q").cancel(4)


def test_revoke_all_ends_it(roles: Roles) -> None:
    calls = functions(roles.owner)
    url = roles.create("operator")
    with psycopg.connect(url, autocommit=True) as connection:
        assert not refused(connection, calls["version"])
        roles.owner.execute("SELECT alkstore.revoke_all(%s)", (connection.info.user,))
        assert all(refused(connection, call) for call in calls.values())
        assert refused(connection, "SELECT * FROM alkstore.jobs")


# -- hostile callers ------------------------------------------------------------------------------

# All that a role may call, doing real work. (An operator, so that one role sees everything.)
WORK = """
    SELECT alkstore.enqueue('q', '{"a": 1}', delay_s => 0, priority => 5, expires_s => 100);
    SELECT alkstore.enqueue_batch('q', '[1, 2, 3, 4, 5, 6]', run_at => '2001-01-01');
    SELECT alkstore.enqueue(repeat('n', 70), '1'), alkstore.wake_channel(repeat('n', 70));
    SELECT alkstore.next_due('q');
    SELECT * FROM alkstore.claim('q', 'w', 5);
    SELECT alkstore.heartbeat('q', 1, 1, 60), alkstore.release('q', 2, 1), alkstore.retry('q', 3, 1, 'e'),
        alkstore.fail('q', 4, 1, 'e'), alkstore.ack('q', 5, 1), alkstore.ack_batch('q', '{1}', '{1}'),
        alkstore.cancel('q', 6);
    SELECT * FROM alkstore.get_job('q', 3);
    SELECT * FROM alkstore.sweep_expired('q');
    SELECT alkstore.acquire_lock('l', 'o', 60), alkstore.renew_lock('l', 'o', 60), alkstore.release_lock('l', 'o');
    SELECT alkstore.lead_schedules('o', 60), alkstore.resign_schedules('o');
    SELECT alkstore.schedule('s', '@every 60s', 'q', '1');
    SELECT * FROM alkstore.fire_schedules();
    SELECT alkstore.unschedule('s');
    SELECT alkstore.outbox_enqueue('o', '1'), alkstore.outbox_enqueue('o', '2');
    SELECT * FROM alkstore.outbox_claim('o', 'w');
    SELECT * FROM alkstore.outbox_get_job('o', 10);
    SELECT alkstore.outbox_cancel('o', 10), alkstore.outbox_sweep_expired('o');
    SELECT * FROM alkstore.jobs; SELECT * FROM alkstore.dead_jobs; SELECT * FROM alkstore.queue_stats;
    SELECT * FROM alkstore.schedules; SELECT * FROM alkstore.locks;
    SELECT alkstore.version()
"""  # noqa: E501

# A trap in place of every function and operator of PostgreSQL that the sources could mean by an
# unqualified name, with the very same arguments, and tables and types of the usual names.
TRAPS = """
    CREATE FUNCTION trap.sprung() RETURNS text LANGUAGE plpgsql
    AS $t$ BEGIN RAISE 'the trap was sprung as %', current_user; END $t$;
    DO $do$
    DECLARE
      f record;
    BEGIN
      FOR f IN
        SELECT p.oid, format('trap.%I(%s)', p.proname, pg_get_function_identity_arguments(p.oid)) AS signature,
          pg_get_function_result(p.oid) AS result
        FROM pg_catalog.pg_proc p
        WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind = 'f' AND NOT p.proretset
          AND NOT ('internal'::regtype = p.prorettype OR 'internal'::regtype = ANY (p.proargtypes) OR 'cstring'::regtype = ANY (p.proargtypes))
          AND (EXISTS (SELECT FROM regexp_split_to_table(:sources, '[^a-z0-9_]+') word WHERE word = p.proname)
            OR EXISTS (SELECT FROM pg_operator o WHERE o.oprcode = p.oid
              AND o.oprname = ANY ('{=,<>,<,<=,>,>=,+,-,*,/,||,<<,->>,~}')
              AND (o.oprleft = ANY (:types) OR o.oprleft = 0) AND o.oprright = ANY (:types)))
      LOOP
        BEGIN
          EXECUTE format('CREATE FUNCTION %s RETURNS %s LANGUAGE plpgsql AS %L',
            f.signature, f.result, 'BEGIN RAISE ''the trap was sprung as %'', current_user; END');
        EXCEPTION WHEN OTHERS THEN
          NULL;  -- a pseudo-type that PL/pgSQL does not take
        END;
      END LOOP;
      FOR f IN
        SELECT o.oprname, o.oprleft, o.oprright, p.proname FROM pg_operator o JOIN pg_proc p ON p.oid = o.oprcode
        WHERE o.oprname = ANY ('{=,<>,<,<=,>,>=,+,-,*,/,||,<<,->>,~}')
          AND (o.oprleft = ANY (:types) OR o.oprleft = 0) AND o.oprright = ANY (:types)
          AND EXISTS (SELECT FROM pg_proc t WHERE t.pronamespace = 'trap'::regnamespace AND t.proname = p.proname
            AND t.proargtypes = p.proargtypes)
      LOOP
        EXECUTE format('CREATE OPERATOR trap.%s (FUNCTION = trap.%I, %s RIGHTARG = %s)', f.oprname, f.proname,
          CASE WHEN f.oprleft <> 0 THEN format('LEFTARG = %s,', f.oprleft::regtype) END, f.oprright::regtype);
      END LOOP;
    END $do$;
    CREATE TABLE trap.job (a text DEFAULT trap.sprung());
    CREATE TABLE trap._job (a text);
    CREATE TABLE trap.pg_class (oid oid);
    CREATE DOMAIN trap.json AS text CHECK (trap.sprung() IS NULL);
    CREATE DOMAIN trap.timestamptz AS text CHECK (trap.sprung() IS NULL);
    CREATE TEMPORARY TABLE job (a text);
    CREATE TEMPORARY TABLE _job (a text);
    CREATE TEMPORARY TABLE pg_class (oid oid);
    CREATE DOMAIN pg_temp.json AS text CHECK (trap.sprung() IS NULL);
    CREATE DOMAIN pg_temp.timestamptz AS text CHECK (trap.sprung() IS NULL);
    CREATE DOMAIN pg_temp.text AS pg_catalog.text CHECK (trap.sprung() IS NULL);
"""  # noqa: E501
TYPES = (
    "{bool,int4,int8,text,json,timestamptz,interval,float8,numeric,text[],"
    "anycompatiblearray,anycompatible}"
)


@pytest.fixture
def hostile(roles: Roles) -> Iterator[psycopg.Connection]:
    """An operator's connection whose search_path finds traps before everything else."""
    url = roles.create("operator")
    with psycopg.connect(url, autocommit=True) as connection:
        create = sql.SQL("CREATE SCHEMA trap AUTHORIZATION {}")
        roles.owner.execute(create.format(sql.Identifier(connection.info.user)))
        sources = " ".join(file.read_text() for file in SQL.rglob("*.sql"))
        script = TRAPS.replace(":sources", sql.Literal(sources).as_string())
        script = script.replace(":types", f"'{TYPES}'::regtype[]")
        connection.execute(script.encode())
        connection.execute("SET search_path = trap, pg_temp, pg_catalog")
        yield connection


def test_the_traps_work(hostile: psycopg.Connection) -> None:
    for statement in (
        "SELECT now()",
        "SELECT clock_timestamp()",
        "SELECT octet_length('a')",
        "SELECT date_trunc('second', pg_catalog.now())",
        "SELECT 'a'::pg_catalog.text = 'b'::pg_catalog.text",
        "SELECT pg_catalog.now() < pg_catalog.now()",
        "SELECT 1::bigint - 2::bigint",
        "SELECT - 1::bigint",
        "SELECT '1'::\"json\"",
        "INSERT INTO trap.job DEFAULT VALUES",
    ):
        with pytest.raises(psycopg.errors.RaiseException, match="the trap was sprung"):
            hostile.execute(statement.encode())


def test_a_hostile_search_path_changes_nothing(hostile: psycopg.Connection) -> None:
    """With the caller's own tables, functions, operators and types in front of ours."""
    for statement in WORK.split(";"):
        hostile.execute(statement.encode())
    assert hostile.execute("SELECT pg_catalog.count(*) FROM trap._job").fetchall() == [(0,)]


@pytest.mark.parametrize("target", ["text", "json", "jsonb", "varchar"])
@pytest.mark.parametrize("how", ["", "AS ASSIGNMENT", "AS IMPLICIT"])
def test_a_cast_of_the_callers_own_never_runs_as_the_owner(
    roles: Roles, target: str, how: str
) -> None:
    """A payload may have any type, and a cast from a caller's type is the caller's code."""
    with psycopg.connect(roles.create("operator"), autocommit=True) as connection:
        for statement in (
            "CREATE TYPE pg_temp.t AS (a int)",
            f"CREATE FUNCTION pg_temp.f(pg_temp.t) RETURNS {target} LANGUAGE plpgsql"
            " AS $$ BEGIN RAISE 'the trap was sprung as %', current_user; END $$",
            f"CREATE CAST (pg_temp.t AS {target}) WITH FUNCTION pg_temp.f(pg_temp.t) {how}",
        ):
            connection.execute(statement.encode())
        for call in (
            "enqueue('q', ROW(1)::pg_temp.t)",
            "enqueue_batch('q', ROW(1)::pg_temp.t)",
            "enqueue_batch('q', ARRAY[ROW(1)::pg_temp.t])",
            "outbox_enqueue('o', ROW(1)::pg_temp.t)",
            "schedule('s', '@every 1s', 'q', ROW(1)::pg_temp.t)",
        ):
            with pytest.raises(psycopg.Error) as error:
                connection.execute(f"SELECT alkstore.{call}".encode())
            assert error.value.sqlstate == "AK002"


def test_nothing_of_another_schema_can_be_read(roles: Roles) -> None:
    """Names are values: given a table's name, or SQL, a call looks for a queue of that name."""
    roles.owner.execute("CREATE SCHEMA private")
    roles.owner.execute("CREATE TABLE private.secret AS SELECT 'the secret'::text AS a")
    names = [
        "private.secret",
        '"private"."secret"',
        "x' UNION SELECT a FROM private.secret --",
        "$$; SELECT a FROM private.secret; --",
        "%s%I%L",
        "(SELECT a FROM private.secret)",
    ]
    with psycopg.connect(roles.create("operator"), autocommit=True) as connection:
        rows = roles.owner.execute("""
            SELECT p.proname, array_agg(CASE t::text WHEN 'anycompatible' THEN 'text' ELSE t::text END ORDER BY o)
            FROM pg_proc p, unnest(p.proargtypes::regtype[]) WITH ORDINALITY a (t, o)
            WHERE p.pronamespace = 'alkstore'::regnamespace AND p.proname !~ '^(_|grant_|revoke_)'
            GROUP BY p.oid, p.proname""")  # noqa: E501
        for function, types in rows.fetchall():
            call = (
                f"SELECT f::text FROM alkstore.{function}({', '.join(f'%s::{t}' for t in types)}) f"
            )
            for name in names:
                values = [
                    name if t == "text" else ["1"] if t.endswith("[]") else None for t in types
                ]
                if "payload" in function or function.startswith(("enqueue", "outbox_enqueue")):
                    values[1] = "[1]"
                try:
                    answer = connection.execute(call.encode(), values).fetchall()
                except psycopg.Error as error:
                    if not (error.sqlstate or "").startswith("AK"):
                        raise
                    answer = [(str(error),)]
                assert "the secret" not in str(answer)
