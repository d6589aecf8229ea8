"""The test tools themselves: that they can fail, and that they clean up."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.harness import sqlite_coverage, sqlite_tap
from tests.harness.server import URL_VARIABLE, Server, free_port, run

ROOT = Path(__file__).parents[2]

# -- the runner of the SQLite SQL suite -----------------------------------------------------------

TITLE = "-- [some-clause] title\n"

GOOD = """\
SELECT 1, NULL, 2.5 UNION ALL SELECT 'a', '', 'line' || char(10) || 'break' ORDER BY 1;
--> 1|NULL|2.5
--> a||line
--> break
CREATE TABLE t (a INTEGER PRIMARY KEY);
-- a comment between two statements
INSERT INTO t
  VALUES (1)
RETURNING a;
--> 1
INSERT INTO t VALUES (1);
--! UNIQUE constraint failed: t.a
CREATE TRIGGER refuse BEFORE INSERT ON t BEGIN
  SELECT RAISE(ABORT, 'AK001 invalid_name: a (full) sentence');
END;
INSERT INTO t VALUES (2);
--! AK001
SELECT a FROM t WHERE a = 2;
--> (no rows)
SELECT '';
-->
SELECT missing;
--! no such column: missing
"""

FAULTS = {
    "wrong row": ("SELECT 1, 2;\n--> 1|3\n", ["expected:", "1|3", "got:", "1|2"]),
    "missing row": ("SELECT 1;\n--> 1\n--> 2\n", ["expected:", "1", "2", "got:", "1"]),
    "extra row": (
        "VALUES (1), (2);\n--> 1\n",
        ["expected:", "1", "got:", "1", "2"],
    ),
    "wrong order": ("VALUES (1), (2);\n--> 2\n--> 1\n", ["expected:", "2", "1", "got:", "1", "2"]),
    "no row": ("SELECT 1 WHERE 0;\n-->\n", ["expected:", "", "got:", "(no rows)"]),
    "a row": ("SELECT 1;\n--> (no rows)\n", ["expected:", "(no rows)", "got:", "1"]),
    "not NULL": ("SELECT '';\n--> NULL\n", ["expected:", "NULL", "got:", ""]),
    "unexpected error": ("SELECT x;\n--> 1\n", ["unexpected error: no such column: x"]),
    "wrong error": (
        "SELECT x;\n--! AK001\n",
        ["expected error: AK001", "got: no such column: x"],
    ),
    "no error": ("SELECT 1;\n--! AK001\n", ["expected error: AK001", "got: success"]),
    "rows without expectation": (
        "SELECT 1;\nSELECT 2;\n--> 2\n",
        ["rows that nothing expects:", "1"],
    ),
    "error without expectation": (
        "SELECT x;\nSELECT 2;\n--> 2\n",
        ["unexpected error: no such column: x"],
    ),
}


def verdict(leg: str, text: str, folder: Path) -> list[str]:
    (case,) = sqlite_tap.parse(TITLE + text)
    if leg == "shell":
        outcomes = sqlite_tap.run_shell(case.steps, "", folder / "test.db")
    else:
        driver = sqlite_tap.apsw_driver() if leg == "apsw" else sqlite_tap.STDLIB
        outcomes = sqlite_tap.run(driver, case.steps, driver.open(""))
    return sqlite_tap.judge(case, outcomes)


@pytest.mark.parametrize("leg", ["stdlib", "apsw", "shell"])
def test_a_good_test_passes(leg: str, tmp_path: Path) -> None:
    assert verdict(leg, GOOD, tmp_path) == []


@pytest.mark.parametrize("leg", ["stdlib", "apsw", "shell"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_and_told(leg: str, fault: str, tmp_path: Path) -> None:
    text, told = FAULTS[fault]
    assert verdict(leg, text, tmp_path) == ["line 2:", text.split("\n")[0], *told]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT 1;\n", "a statement before the first test"),
        ("-- only a comment\n", "no test"),
        (TITLE + "SELECT 1;\n", "expects nothing"),
        (TITLE + "--> 1\n", "no statement to expect this of"),
        (TITLE + "SELECT 1\n--> 1\n", "the statement before it has not ended"),
        (TITLE + "SELECT 1;\n--> 1\nSELECT 2\n", "the last statement has not ended"),
        (TITLE + "SELECT 1;\n--> 1\n--! AK001\n", "an error is the only thing"),
        (TITLE + "SELECT 1;\n--! AK001\n--> 1\n", "an error is the only thing"),
        (TITLE + "SELECT 1;\n--> 1\n--> (no rows)\n", "together with a row"),
        (TITLE + "SELECT 1;\n--> (no rows)\n--> 1\n", "together with a row"),
    ],
)
def test_a_file_that_tests_nothing_is_refused(text: str, reason: str) -> None:
    with pytest.raises(sqlite_tap.BadTest, match=reason):
        sqlite_tap.parse(text)


def test_the_shell_leg_does_not_overlook_a_failed_setup(tmp_path: Path) -> None:
    (case,) = sqlite_tap.parse(TITLE + "SELECT 1;\n--> 1\n")
    for setup in ("SELECT x;", ".read no-such-file.sql"):
        outcomes = sqlite_tap.run_shell(case.steps, setup, tmp_path / "test.db")
        assert "the shell's setup failed" in sqlite_tap.judge(case, outcomes)[2]


@pytest.mark.parametrize(
    "leg",
    [[], ["--file", "--pragma", "journal_mode=WAL"], ["--apsw"], ["--attached"], ["--shell"]],
    ids="".join,
)
def test_a_run_tells_each_test_and_fails_when_one_does(
    leg: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "demo.sql"
    file.write_text(
        "-- [a] stopped clock\nSELECT now FROM __alkstore_clock;\n--> 1000000000\n"
        "-- [b] wrong\nSELECT 1;\n--> 2\n"
    )
    assert sqlite_tap.main([*leg, str(file)]) == 1
    assert capsys.readouterr().out.splitlines()[1:] == [
        "ok 1 - demo: [a] stopped clock",
        "not ok 2 - demo: [b] wrong",
        f"#   {file}",
        *(f"#   {line}" for line in ("line 5:", "SELECT 1;", "expected:", "2", "got:", "1")),
        "1..2",
        "# 1 of 2 failed",
    ]


def test_a_title_given_twice_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [tmp_path / "one.sql", tmp_path / "two.sql"]
    for file in files:
        file.write_text(TITLE + "SELECT 1;\n--> 1\n")
    assert sqlite_tap.main(list(map(str, files))) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"Bail out! {files[1]}: a second test with the title [some-clause] title"
    ]


# -- the coverage of the SQLite triggers ----------------------------------------------------------

TRIGGERS = """
CREATE TABLE t (a);
CREATE VIEW inner (a) AS SELECT a FROM t;
CREATE VIEW outer (a) AS SELECT a FROM t;
CREATE TRIGGER inner_call INSTEAD OF INSERT ON inner BEGIN
  SELECT RAISE(IGNORE) WHERE NEW.a = 1;
  SELECT RAISE(ABORT, 'two') WHERE NEW.a = 2;
  INSERT INTO t VALUES (NEW.a);
END;
CREATE TRIGGER outer_call INSTEAD OF INSERT ON outer BEGIN
  INSERT INTO inner SELECT NEW.a;
  INSERT INTO t VALUES (NEW.a);
END;
"""
INNER = [
    ("inner_call", "SELECT RAISE(IGNORE) WHERE NEW.a = 1"),
    ("inner_call", "SELECT RAISE(ABORT, 'two') WHERE NEW.a = 2"),
    ("inner_call", "INSERT INTO t VALUES (NEW.a)"),
]
OUTER = [
    ("outer_call", "INSERT INTO inner SELECT NEW.a"),
    ("outer_call", "INSERT INTO t VALUES (NEW.a)"),
]
TWO = ("inner_call", "two")


@pytest.mark.parametrize(
    ("statements", "ran"),
    [
        ("SELECT 1;", []),
        ("INSERT INTO inner VALUES (1);", INNER[:1]),
        ("INSERT INTO inner VALUES (2);", [*INNER[:2], TWO]),
        ("INSERT INTO inner VALUES (3);", INNER),
        ("INSERT INTO outer VALUES (1);", [*INNER[:1], *OUTER]),
        ("INSERT INTO outer VALUES (2);", [*INNER[:2], *OUTER[:1], TWO]),
        ("INSERT INTO outer VALUES (3);", [*INNER, *OUTER]),
        ("INSERT INTO outer VALUES (1), (2);", [*INNER[:2], *OUTER, TWO]),
        ("SELECT 1; INSERT INTO missing VALUES (1);", []),
    ],
)
def test_coverage_tells_what_ran(statements: str, ran: list[tuple[str, str]]) -> None:
    script = "\n".join(statement + ";" for statement in statements.split(";")[:-1])
    tests = sqlite_tap.parse(f"{TITLE}{script}\nSELECT 1;\n--> 1\n")
    assert sqlite_coverage.measure(TRIGGERS, tests) == ([*INNER, *OUTER], [TWO], set(ran))


# -- the private PostgreSQL -----------------------------------------------------------------------


def test_a_server_stops_starts_and_leaves_nothing() -> None:
    with Server() as server:
        assert server.psql("CREATE TABLE t AS SELECT 1 AS a; TABLE t") == "1"
        server.stop()
        with pytest.raises(RuntimeError, match="psql: "):
            server.psql("TABLE t")
        server.start()
        assert server.psql("TABLE t") == "1"
    assert not server.folder.exists()


def test_a_failed_test_leaves_no_server() -> None:
    server = Server()

    def fail() -> None:
        with server:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert not server.folder.exists()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.port))


def test_a_free_port_stays_free_of_outgoing_connections_while_its_server_is_away() -> None:
    with ExitStack() as stack:
        ports = set()
        for _ in range(20):
            ports.add(port := free_port())
            stack.enter_context(socket.create_server(("127.0.0.1", port)))
    assert len(ports) == 20
    assert max(ports) < 32_768  # the first of Linux, where nobody has set another


RUN = [sys.executable, "-m", "tests.harness.server", "run", "--"]


def run_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != URL_VARIABLE}


def test_run_hands_on_the_command_s_output_and_status() -> None:
    script = f'psql -XAtc "SELECT 6 * 7" && psql -XAt "${URL_VARIABLE}" -c "SELECT 43"; exit 5'
    command = [*RUN, "sh", "-c", script]
    done = subprocess.run(command, cwd=ROOT, env=run_environment(), text=True, capture_output=True)
    assert (done.returncode, done.stdout) == (5, "42\n43\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_command_and_server(number: signal.Signals) -> None:
    command = [*RUN, "sh", "-c", 'echo "$PGHOST $$"; exec sleep 600']
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=run_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with process:
        assert process.stdout is not None
        folder, pid = process.stdout.readline().split()
        process.send_signal(number)
        process.wait()
    assert process.returncode != 0
    assert not Path(folder).exists()
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)


def test_a_signal_that_comes_while_the_command_is_started_leaves_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[subprocess.Popen[str]] = []

    class Interrupted(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            started.append(self)
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            run(["sleep", "600"], {})
        assert [process.poll() for process in started] == [-signal.SIGTERM]
    finally:
        started[0].kill()
        started[0].wait()
