"""What PostgreSQL's catalogs say of an installation, to compare one with another."""

from __future__ import annotations

import psycopg

_QUERIES = (
    """
    SELECT 'schema' AS kind, obj_description(n.oid), n.nspacl
    FROM pg_namespace n WHERE n.oid = %(schema)s
    """,
    """
    SELECT 'function' AS kind, p.oid::regprocedure, pg_get_function_arguments(p.oid),
      pg_get_function_result(p.oid), p.prosrc, p.provolatile, p.prosecdef, p.proisstrict,
      p.proparallel, p.procost, p.prorows, p.proconfig, p.proacl, obj_description(p.oid, 'pg_proc')
    FROM pg_proc p WHERE p.pronamespace = %(schema)s
    """,
    """
    SELECT 'relation' AS kind, c.oid::regclass, c.relkind, c.relpersistence, c.reloptions, c.relacl,
      obj_description(c.oid, 'pg_class'), pg_get_viewdef(c.oid), pg_get_indexdef(c.oid)
    FROM pg_class c WHERE c.relnamespace = %(schema)s
    """,
    """
    SELECT 'column' AS kind, c.oid::regclass, a.attnum, a.attname,
      format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity,
      a.attcollation::regcollation, a.attstorage, a.attacl,
      pg_get_expr(d.adbin, d.adrelid), col_description(c.oid, a.attnum)
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
    LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
    WHERE c.relnamespace = %(schema)s AND a.attnum > 0
    """,
    """
    SELECT 'constraint' AS kind, c.conname, c.conrelid::regclass, pg_get_constraintdef(c.oid)
    FROM pg_constraint c WHERE c.connamespace = %(schema)s
    """,
    """
    SELECT 'sequence' AS kind, s.seqrelid::regclass, s.seqtypid::regtype, s.seqstart,
      s.seqincrement, s.seqmax, s.seqmin, s.seqcache, s.seqcycle
    FROM pg_sequence s JOIN pg_class c ON c.oid = s.seqrelid WHERE c.relnamespace = %(schema)s
    """,
    """
    SELECT 'type' AS kind, t.oid::regtype, t.typtype, t.typacl, obj_description(t.oid, 'pg_type')
    FROM pg_type t WHERE t.typnamespace = %(schema)s
    """,
)


def snapshot(connection: psycopg.Connection, schema: str = "alkstore") -> list[str]:
    """A text for every object in a schema, as if the schema were called alkstore."""
    find = "SELECT quote_ident(nspname), oid, nspowner::regrole::text FROM pg_namespace"
    [(shown, oid, owner)] = connection.execute(f"{find} WHERE nspname = %s", (schema,)).fetchall()
    in_literals = shown.replace("'", "''")
    texts = []
    with connection.transaction():
        connection.execute("SET LOCAL search_path = ''")  # so that each name has its schema
        for query in _QUERIES:
            rows = f"SELECT row_to_json(r)::text FROM ({query}) r"
            for (text,) in connection.execute(rows.encode(), {"schema": oid}):
                texts.append(text)
    return sorted(
        text.replace(_in_json(in_literals) + ".", "alkstore.")
        .replace(_in_json(shown) + ".", "alkstore.")
        .replace(_in_json(owner), "owner")
        for text in texts
    )


def without_schema(texts: list[str]) -> list[str]:
    """A snapshot without the schema itself, whose comment and rights may be its maker's."""
    return [text for text in texts if not text.startswith('{"kind":"schema"')]


def _in_json(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
