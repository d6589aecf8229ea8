"""The demo does its work on both engines, and its check notices when work was not done."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import psycopg
import pytest

import alkstore

DEMO = Path(__file__).parents[2] / "examples" / "demo.py"


@pytest.fixture(scope="module")
def demo() -> ModuleType:
    spec = importlib.util.spec_from_file_location("demo", DEMO)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Sixty files, and what the demo has to pass over."""
    tree = tmp_path / "tree"
    (tree / "deeper" / "still").mkdir(parents=True)
    for number in range(56):
        (tree / f"{number}.txt").write_text("a line\n" * number)
    (tree / "empty").touch()
    (tree / "deeper" / "no-line-end").write_bytes(b"one\ntwo")
    (tree / "deeper" / "still" / "long").write_bytes(b"0123456789abcde\n" * 200_000)
    Path(os.fsdecode(os.fsencode(tree) + b"/not-text-\xff")).write_bytes(b"\0\xff\n")
    (tree / "link").symlink_to(tree / "empty")
    (tree / "__pycache__").mkdir()
    (tree / "__pycache__" / "0.pyc").touch()
    return tree


COMMAND = [sys.executable, str(DEMO)]


def environ(tree: Path, scratch: Path, url: str | None) -> dict[str, str]:
    scratch.mkdir()
    return os.environ | {"DIR": str(tree), "TMPDIR": str(scratch), "ALKSTORE_URL": url or ""}


def run(tree: Path, scratch: Path, url: str | None) -> subprocess.CompletedProcess[str]:
    env = environ(tree, scratch, url)
    return subprocess.run(COMMAND, env=env, text=True, capture_output=True, timeout=300)


def test_each_file_is_done_once_though_a_worker_is_killed(
    engine: str, request: pytest.FixtureRequest, tree: Path, tmp_path: Path
) -> None:
    # Without alkstore in it: the demo installs it.
    url = request.getfixturevalue("empty_pg_url") if engine == "postgres" else None
    scratch = tmp_path / "scratch"
    done = run(tree, scratch, url)
    assert done.stderr == ""
    assert done.returncode == 0
    assert done.stdout.startswith(f"{tree}: 60 files, and one that will vanish\n")
    assert "killed worker 1, which had jobs in hand\n" in done.stdout
    summary = done.stdout[done.stdout.index("files done") :]
    vanished = rf"{re.escape(str(scratch))}/\S+/gone-before-it-was-read"
    # On a slow machine the killed worker may have one of the two retries in hand.
    expected = rf"""files done       60
retries          [12]
dead letters     1
                 {vanished}: No such file or directory
reclaimed jobs   (\d+)
jobs per second  [\d,]+ \(those done at the first attempt\)
problems         0
"""
    found = re.fullmatch(expected, summary)
    assert found, summary
    assert int(found[1]) >= 1  # what was in the killed worker's hands
    assert_all_is_cleared_away(scratch, url)


def assert_all_is_cleared_away(scratch: Path, url: str | None) -> None:
    assert list(scratch.iterdir()) == []
    if url:
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT * FROM alkstore.jobs").fetchall() == []
            tables = "SELECT * FROM pg_tables WHERE tablename LIKE 'alkstore_demo%'"
            assert connection.execute(tables).fetchall() == []


def test_ctrl_c_ends_it_in_one_line_and_clears_away(
    engine: str, request: pytest.FixtureRequest, tree: Path, tmp_path: Path
) -> None:
    url = request.getfixturevalue("empty_pg_url") if engine == "postgres" else None
    scratch = tmp_path / "scratch"
    with subprocess.Popen(
        COMMAND,
        env=environ(tree, scratch, url),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        assert process.stdout
        for line in process.stdout:
            if line.endswith(" of 60\n"):
                break
        os.killpg(process.pid, signal.SIGINT)  # to all of them, as the terminal does
        _, error = process.communicate(timeout=60)
    assert (process.returncode, error) == (130, "demo: interrupted\n")
    assert_all_is_cleared_away(scratch, url)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("postgresql://127.0.0.1:1/nothing", "demo: cannot use the PostgreSQL database: "),
        ("ftp://nothing", "demo: invalid_option: the target must be "),
    ],
)
def test_a_database_that_cannot_be_used_is_told_in_one_line(
    url: str, reason: str, tree: Path, tmp_path: Path
) -> None:
    done = run(tree, tmp_path / "scratch", url)
    assert done.returncode == 1
    assert done.stderr.startswith(reason)
    assert done.stderr.count("\n") == 1


def test_no_files_is_told_in_one_line(tmp_path: Path) -> None:
    done = run(tmp_path / "nothing", tmp_path / "scratch", None)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"demo: no files under {tmp_path}/nothing\n"


@pytest.fixture
def finished(
    demo: ModuleType, store: alkstore.Store, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Any]:
    """A run whose jobs, one per file, have all been done in this process."""
    monkeypatch.setattr(demo, "VISIBILITY_TIMEOUT_S", 300)  # nothing prolongs the claims
    with closing(demo.Demo(store)) as run:
        run.enqueue(demo.files_under(tree))
        for job in run.queue.claim_batch("worker", 60):
            demo.fingerprint(job, store)
        yield run


def test_digests_and_line_counts_are_recorded(finished: Any) -> None:
    recorded = {
        job_id: (sha256, lines) for job_id, sha256, lines in finished.read("job_id, sha256, lines")
    }
    assert recorded == {
        job_id: (hashlib.sha256(data).hexdigest(), data.count(b"\n"))
        for job_id, path in finished.paths.items()
        for data in [path.read_bytes()]
    }
    assert finished.report() == 0


@pytest.mark.parametrize(
    ("tampering", "problem"),
    [
        ("UPDATE {} SET sha256 = 'ab' WHERE job_id = {}", "the record differs from the file"),
        ("UPDATE {} SET sha256 = NULL WHERE job_id = {}", "gone, 0 records"),
        ("DELETE FROM {} WHERE job_id = {}", "gone, 0 records"),
        (
            "INSERT INTO {0} SELECT job_id, 2, sha256, lines, at FROM {0} WHERE job_id = {1}",
            "gone, 2 records",
        ),
    ],
    ids=["wrong digest", "no digest", "no record", "done twice"],
)
def test_a_false_record_is_a_problem(
    finished: Any, tampering: str, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    job_id, path = list(finished.paths.items())[7]
    with finished.store.transaction() as tx:
        tx.connection.execute(tampering.format(finished.queue.name, job_id))
    assert finished.report() == 1
    assert capsys.readouterr().out.endswith(f"problems         1\n{' ' * 17}{path}: {problem}\n")


def test_a_changed_file_is_a_problem(finished: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = list(finished.paths.values())[7]
    path.write_text("changed")
    assert finished.report() == 1
    assert f"{path}: the record differs from the file\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("instead_of_work", "problem"),
    [
        (lambda run, _: None, "pending, 0 records"),
        (lambda run, _: run.queue.claim_batch("worker", 100), "processing, 0 records"),
        (lambda run, _: [run.queue.cancel(job_id) for job_id in run.paths], "gone, 0 records"),
    ],
    ids=["not begun", "not finished", "lost"],
)
def test_lost_jobs_give_exit_code_1(
    demo: ModuleType,
    target: str,
    tree: Path,
    instead_of_work: Any,
    problem: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("DIR", str(tree))
    monkeypatch.setenv("ALKSTORE_URL", target)
    monkeypatch.setattr(demo.Demo, "run_workers", instead_of_work)
    assert demo.main() == 1
    output = capsys.readouterr().out
    assert "problems         61\n" in output
    assert output.count(f": {problem}\n") == 61
