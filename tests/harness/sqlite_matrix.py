"""Runs the SQLite SQL suite on old and new SQLite libraries: TAP out, a line for each run.

    python -m tests.harness.sqlite_matrix [--quick]

Every library runs every leg: what changes how triggers run or how pages are written, in memory, on
a file, on an attached file. --quick runs the oldest and the newest library only, with fewer legs.
The libraries come from the package index once and stay in build/sqlite.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.harness.sqlite_tap import ROOT

CACHE = ROOT / "build/sqlite"

# Releases of apsw: the first three numbers are the SQLite in it. The newest is in build/venv.
APSW = (
    "3.39.4.0",
    "3.40.1.0",
    "3.42.0.1",
    "3.45.3.0",
    "3.46.1.0",
    "3.47.2.0",
    "3.50.4.0",
)
# SQLite 3.38.3. No apsw has it for a Python of today; this source distribution does.
FLOOR = "pysqlite-binary==0.5.1.3380300"
# A wheel with SQLite 3.35.5 in it.
BELOW_FLOOR = "pyproj==3.4.0"

FILE = ("--file", "--pragma=synchronous=OFF")
LEGS = {
    "memory": (),
    "WAL, recursive triggers, foreign keys": (
        *FILE,
        "--pragma=journal_mode=WAL",
        "--pragma=recursive_triggers=ON",
        "--pragma=foreign_keys=ON",
    ),
    "attached, recursive triggers": ("--attached", "--pragma=recursive_triggers=ON"),
    # Last: every SELECT without an ORDER BY gives its rows the other way round.
    "rollback journal, pages of 512, secure delete, recursive triggers, reverse selects": (
        *FILE,
        "--pragma=reverse_unordered_selects=ON",
        "--pragma=page_size=512",
        "--pragma=secure_delete=ON",
        "--pragma=recursive_triggers=ON",
    ),
    "WAL, pages of 65536, secure delete, foreign keys": (
        *FILE,
        "--pragma=page_size=65536",
        "--pragma=journal_mode=WAL",
        "--pragma=secure_delete=ON",
        "--pragma=foreign_keys=ON",
    ),
}
QUICK_LEGS = list(LEGS)[:3]


class Skip(Exception):
    """Why a library can't be used here."""


@dataclass(frozen=True)
class Library:
    name: str
    options: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)


def stdlib() -> Library:
    return Library("Python's own")


def newest() -> Library:
    return Library("the virtual environment's apsw", ("--apsw",))


def apsw(release: str) -> Library:
    folder = cached(
        f"apsw-{release}",
        lambda path: pip("install", "--only-binary=:all:", f"--target={path}", f"apsw=={release}"),
    )
    return Library(f"apsw {release}", ("--apsw",), {"PYTHONPATH": str(folder)})


def floor() -> Library:
    return preloaded("3.38.3", cached("floor", compile_floor) / "libsqlite3.so")


def compile_floor(folder: Path) -> None:
    pip("download", "--no-binary=:all:", f"--dest={folder}", FLOOR)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as sources:
        (member,) = (m for m in sources.getmembers() if m.name.endswith("/src/sqlite3.c"))
        source = sources.extractfile(member)
        assert source is not None
        (folder / "sqlite3.c").write_bytes(source.read())
    library, code = folder / "libsqlite3.so", folder / "sqlite3.c"
    check_run("cc", "-O1", "-shared", "-fPIC", "-o", library, code, "-lm", "-ldl", "-lpthread")


def below_floor() -> Library:
    (library,) = cached("below-floor", fetch_below_floor).glob("libsqlite3*")
    return preloaded("3.35.5", library)


def fetch_below_floor(folder: Path) -> None:
    # The wheel of any Python will do: only the library in it is used.
    pip("download", "--only-binary=:all:", "--python-version=3.11", f"--dest={folder}", BELOW_FLOOR)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as files:
        (name,) = (n for n in files.namelist() if Path(n).name.startswith("libsqlite3"))
        (folder / Path(name).name).write_bytes(files.read(name))


def preloaded(version: str, library: Path) -> Library:
    """A shared library in place of the one that Python's sqlite3 module is linked to."""
    environment = {"LD_PRELOAD": str(library)}
    ask = "import sqlite3; print(sqlite3.sqlite_version)"
    if run([sys.executable, "-c", ask], environment).stdout != f"{version}\n":
        raise Skip(f"SQLite {version}: this Python can't be given another SQLite")
    return Library("preloaded", (), environment)


def cached(name: str, make: Callable[[Path], object]) -> Path:
    """A folder of the cache, made unless it is there; never a half-made one."""
    folder = CACHE / name
    if not folder.exists():
        new = CACHE / f"{name}.new"
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(parents=True)
        make(new)
        new.rename(folder)
    return folder


def pip(command: str, *arguments: str) -> None:
    check_run(sys.executable, "-m", "pip", command, "--quiet", "--no-deps", *arguments)


def check_run(*command: str | Path) -> None:
    done = run(command, {})
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed:\n{done.stdout}{done.stderr}")


def run(
    command: list[str] | tuple[str | Path, ...], environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True
    )


# -- the runs -------------------------------------------------------------------------------------


def run_leg(library: Library, leg: str) -> tuple[bool, str]:
    """Whether all tests passed, and what to tell."""
    command = [sys.executable, "-m", "tests.harness.sqlite_tap", *library.options, *LEGS[leg]]
    done = run(command, library.environment)
    version, *lines = done.stdout.splitlines() or [""]
    told = [line for line in lines if not line.startswith("ok ")]
    title = f"{library.name}, {version.removeprefix('# ')}, {leg}: {len(lines) - len(told)} tests"
    if done.returncode == 0 and len(lines) > 1:
        return True, title
    return False, "\n#   ".join([title, *told, *done.stderr.splitlines()])


REFUSE = """
import sqlite3, alkstore
from alkstore._sql import installer
try:
    sqlite3.connect(":memory:").executescript(installer("sqlite"))
except sqlite3.Error as error:
    print(error)
try:
    alkstore.open("never-made.db")
except alkstore.Unavailable as error:
    print(error)
"""

REFUSALS = """\
JSON path error near 'alkstore needs SQLite 3.38 or later; this is SQLite 3.35.5'
SQLite 3.38 or later is needed, this is 3.35.5
"""


def run_refusals(library: Library) -> tuple[bool, str]:
    done = run([sys.executable, "-c", REFUSE], library.environment)
    title = f"{library.name}, below the floor: installer and package refuse"
    if done.stdout == REFUSALS:
        return True, title
    return False, "\n#   ".join([title, *done.stdout.splitlines(), *done.stderr.splitlines()])


Run = Callable[[], tuple[bool, str]]


def runs(fetch: Callable[[], Library], legs: Iterable[str]) -> list[Run]:
    """The runs of one library."""
    try:
        library = fetch()
    except Skip as reason:
        skipped = (True, f"# SKIP {reason}")
        return [lambda: skipped]
    if fetch is below_floor:
        return [lambda: run_refusals(library)]
    return [partial(run_leg, library, leg) for leg in legs]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="oldest and newest, few legs")
    quick = parser.parse_args(arguments).quick

    libraries: list[Callable[[], Library]] = [floor, stdlib, newest]
    if not quick:
        libraries += [*(partial(apsw, release) for release in APSW), below_floor]
    plan = [run for fetch in libraries for run in runs(fetch, QUICK_LEGS if quick else LEGS)]
    print(f"1..{len(plan)}", flush=True)
    failed = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for number, (passed, told) in enumerate(pool.map(lambda run: run(), plan), start=1):
            failed += not passed
            print(f"{'ok' if passed else 'not ok'} {number} - {told}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
