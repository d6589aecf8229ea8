"""What sql/postgres keeps to: it parses, its functions are safe, and names have their schemas."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pglast import ast, enums, parse_plpgsql, parse_sql, split
from pglast.parser import ParseError
from pglast.visitors import Ancestor, Skip, Visitor

SCHEMA = "alkstore"
KNOWN_SCHEMAS = {SCHEMA, "pg_catalog"}
SEARCH_PATH = ("pg_catalog", "pg_temp")
# Public functions that must not lend the owner's rights to their caller: they make SQL at run time.
INVOKER = {
    "grant_producer(text)",
    "grant_worker(text)",
    "grant_scheduler(text)",
    "grant_operator(text)",
    "revoke_all(text)",
}

# Some releases of the parser give a statement with the comments in front of it.
BEFORE_STATEMENT = re.compile(r"\A(?:\s+|--[^\n]*)+")


@dataclass(frozen=True)
class Statement:
    """A statement of a file, as text and as the parser's tree."""

    file: str
    line: int
    text: str
    node: Any

    def complain(self, text: str) -> str:
        return f"{self.file}:{self.line}: {text}"


@dataclass
class Ours:
    """What the files create and comment on, by unqualified name, or by function signature."""

    functions: set[str] = field(default_factory=set)
    types: set[str] = field(default_factory=set)
    comments: set[tuple[str, str]] = field(default_factory=set)


def check(files: Mapping[str, str]) -> list[str]:
    """The complaints about files, given as name and text."""
    complaints: list[str] = []
    statements: list[Statement] = []
    for file, text in files.items():
        try:
            statements += parse(file, text)
        except ParseError as error:
            complaints.append(f"{file}: {error}")
    ours = collect(statements)
    for statement in statements:
        complaints += names(statement, statement.node, ours)
        match statement.node:
            case ast.CreateFunctionStmt():
                complaints += function(statement, ours)
            case ast.DoStmt():
                complaints += plpgsql(statement, ours)
            case ast.ViewStmt(view=view) if not view.relname.startswith("_"):
                if ("view", view.relname) not in ours.comments:
                    complaints.append(statement.complain(f"view {view.relname} has no comment"))
    return complaints


def parse(file: str, text: str) -> Iterator[Statement]:
    text = without_meta_commands(text)
    for part in split(text, only_slices=True):
        sql = BEFORE_STATEMENT.sub("", text[part])
        line = text[: part.stop - len(sql)].count("\n") + 1
        yield Statement(file, line, sql, parse_sql(sql)[0].stmt)


def without_meta_commands(text: str) -> str:
    """Take psql's commands out: those on a line of their own, and \\gset, which ends a query."""
    text = re.sub(r"\\gset\b.*$", ";", text, flags=re.MULTILINE)
    return re.sub(r"^\\.*$", "", text, flags=re.MULTILINE)


def collect(statements: list[Statement]) -> Ours:
    ours = Ours()
    for statement in statements:
        match statement.node:
            case ast.CreateFunctionStmt(funcname=name):
                ours.functions.add(name[-1].sval)
            case ast.CompositeTypeStmt(typevar=name):
                ours.types.add(name.relname)
            case ast.CreateDomainStmt(domainname=name) | ast.CreateEnumStmt(typeName=name):
                ours.types.add(name[-1].sval)
            case ast.CreateStmt(relation=name) | ast.ViewStmt(view=name):
                ours.types.add(name.relname)  # a row of it is a type
            case ast.CommentStmt(objtype=enums.ObjectType.OBJECT_FUNCTION, object=o):
                ours.comments.add(("function", signature(o.objname, o.objargs)))
            case ast.CommentStmt(objtype=enums.ObjectType.OBJECT_VIEW, object=o):
                ours.comments.add(("view", o[-1].sval))
    return ours


def signature(name: tuple[Any, ...], types: tuple[Any, ...] | None) -> str:
    shown = (t.names[-1].sval + "[]" * len(t.arrayBounds or ()) for t in types or ())
    return f"{name[-1].sval}({', '.join(shown)})"


# -- functions ------------------------------------------------------------------------------------


def function(statement: Statement, ours: Ours) -> Iterator[str]:
    node = statement.node
    options = [(option.defname, option.arg) for option in node.options or ()]
    output = (
        enums.FunctionParameterMode.FUNC_PARAM_OUT,
        enums.FunctionParameterMode.FUNC_PARAM_TABLE,
    )
    inputs = tuple(p.argType for p in node.parameters or () if p.mode not in output)
    name = signature(node.funcname, inputs)
    if not name.startswith("_"):
        paths = [
            tuple(value.val.sval for value in arg.args or ())
            for option, arg in options
            if option == "set" and arg.name == "search_path"
        ]
        if paths != [SEARCH_PATH]:
            yield statement.complain(f"{name} lacks SET search_path = {', '.join(SEARCH_PATH)}")
        definer = any(option == "security" and arg.boolval for option, arg in options)
        if definer == (name in INVOKER):
            right = "INVOKER" if definer else "DEFINER"
            yield statement.complain(f"{name} is not SECURITY {right}")
        if ("function", name) not in ours.comments:
            yield statement.complain(f"{name} has no comment")
    settings = dict(options)
    if settings["language"].sval == "plpgsql":
        yield from plpgsql(statement, ours)
    elif "as" in settings:
        yield from body(statement, settings["as"][0].sval, ours)


def plpgsql(statement: Statement, ours: Ours) -> Iterator[str]:
    """A function or a DO block, and every statement and expression in it."""
    if re.search(r"\bpublic\.", statement.text):
        yield statement.complain("names something in the schema public")
    # This parser has no catalog: it takes types of the schemas pg_catalog and public alone.
    text = re.sub(rf"\b{SCHEMA}\.", "public.", statement.text)
    try:
        parsed = parse_plpgsql(text)
    except ParseError as error:
        yield statement.complain(f"PL/pgSQL: {error}")
        return
    for expression in expressions(parsed):
        query = re.sub(r"\bpublic\.", f"{SCHEMA}.", expression["query"])
        if expression["parseMode"] == 2:  # an expression
            query = f"SELECT {query}"
        elif expression["parseMode"] > 2:  # an assignment
            query = "SELECT " + re.split(r":?=", query, maxsplit=1)[1]
        yield from body(statement, query, ours)


def expressions(parsed: Any) -> Iterator[Any]:
    if isinstance(parsed, dict):
        for key, value in parsed.items():
            if key == "PLpgSQL_expr":
                yield value
            else:
                yield from expressions(value)
    elif isinstance(parsed, list):
        for value in parsed:
            yield from expressions(value)


def body(statement: Statement, sql: str, ours: Ours) -> Iterator[str]:
    try:
        parsed = parse_sql(sql)
    except ParseError as error:
        yield statement.complain(f"{error} in: {sql}")
        return
    yield from names(statement, parsed, ours)


# -- names ----------------------------------------------------------------------------------------


def names(statement: Statement, node: Any, ours: Ours) -> list[str]:
    """The complaints about names without a schema.

    PostgreSQL's own functions and types may go without: in a function the pinned search_path finds
    them, and at install they are bound once.
    """
    with_queries = WithQueries()
    with_queries(node)
    visitor = Names(ours, with_queries.names)
    visitor(node)
    return [statement.complain(text) for text in visitor.complaints]


class WithQueries(Visitor):
    def __init__(self) -> None:
        self.names: set[str] = set()

    def visit_CommonTableExpr(self, ancestors: Ancestor, node: Any) -> None:
        self.names.add(node.ctename)


class Names(Visitor):
    def __init__(self, ours: Ours, with_queries: set[str]) -> None:
        self.ours = ours
        self.with_queries = with_queries
        self.complaints: list[str] = []

    def must_be_known(self, schema: str, name: str) -> None:
        if schema not in KNOWN_SCHEMAS:
            self.complaints.append(f"{schema}.{name}: a name in a foreign schema")

    def must_be_qualified(self, name: Any, parts: int = 2) -> None:
        texts = [part.sval for part in name]
        if len(texts) < parts:
            self.complaints.append(f"{'.'.join(texts)}: a name without its schema")
        else:
            self.must_be_known(texts[0], texts[1])

    def visit_RangeVar(self, ancestors: Ancestor, node: Any) -> None:
        if node.schemaname:
            self.must_be_known(node.schemaname, node.relname)
        elif node.relname not in self.with_queries:
            self.complaints.append(f"{node.relname}: a relation without its schema")

    def visit_LockingClause(self, ancestors: Ancestor, node: Any) -> Any:
        return Skip  # FOR UPDATE OF names aliases

    def visit_FuncCall(self, ancestors: Ancestor, node: Any) -> None:
        if len(node.funcname) > 1 or node.funcname[0].sval in self.ours.functions:
            self.must_be_qualified(node.funcname)

    def visit_TypeName(self, ancestors: Ancestor, node: Any) -> None:
        if node.names and (len(node.names) > 1 or node.names[0].sval in self.ours.types):
            self.must_be_qualified(node.names)

    def visit_ObjectWithArgs(self, ancestors: Ancestor, node: Any) -> None:
        self.must_be_qualified(node.objname)

    def visit_CreateFunctionStmt(self, ancestors: Ancestor, node: Any) -> None:
        self.must_be_qualified(node.funcname)

    def visit_CreateTrigStmt(self, ancestors: Ancestor, node: Any) -> None:
        self.must_be_qualified(node.funcname)

    def visit_CommentStmt(self, ancestors: Ancestor, node: Any) -> None:
        if isinstance(node.object, tuple):
            column = node.objtype == enums.ObjectType.OBJECT_COLUMN
            self.must_be_qualified(node.object, parts=3 if column else 2)
