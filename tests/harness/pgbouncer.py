"""A private PgBouncer in front of a server, for the length of a with block.

Its pool has several server sessions and takes them in turn, so that whatever a client leaves behind
in one is missed, or found by another client, at once.
"""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from tests.harness.server import free_port, unprivileged_user

CONFIGURATION = """\
[databases]
* = host=127.0.0.1 port={server_port} user=postgres

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = {pool_mode}
default_pool_size = 4
min_pool_size = 4
server_round_robin = 1
logfile = {folder}/log
pidfile = {folder}/pid
"""
PREPARED = "max_prepared_statements = 100\n"


def program() -> str | None:
    return shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")


def knows_prepared_statements() -> bool:
    """From 1.21 on."""
    text = subprocess.check_output([str(program()), "--version"], text=True)
    found = re.search(r"PgBouncer (\d+)\.(\d+)", text)
    return found is not None and (int(found[1]), int(found[2])) >= (1, 21)


class PgBouncer:
    def __init__(self, server_port: int, pool_mode: str = "transaction") -> None:
        self.server_port = server_port
        self.pool_mode = pool_mode

    def url(self, database: str) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def __enter__(self) -> PgBouncer:
        self.port = free_port()
        self._folder = Path(tempfile.mkdtemp(prefix="alkstore-pgbouncer-"))
        user = unprivileged_user()  # it refuses to run as root
        if user:
            shutil.chown(self._folder, user["user"], user["group"])
        text = CONFIGURATION.format(
            server_port=self.server_port,
            port=self.port,
            pool_mode=self.pool_mode,
            folder=self._folder,
        )
        if knows_prepared_statements():
            text += PREPARED
        ini = self._folder / "pgbouncer.ini"
        ini.write_text(text)
        ini.chmod(0o644)
        self._process = subprocess.Popen(
            [str(program()), "-q", str(ini)], stdin=subprocess.DEVNULL, cwd=self._folder, **user
        )
        try:
            self._wait_until_it_listens()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._folder)

    def _wait_until_it_listens(self) -> None:
        deadline = time.monotonic() + 60
        while True:
            try:
                return socket.create_connection(("127.0.0.1", self.port)).close()
            except ConnectionRefusedError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    log = self._folder / "log"
                    said = log.read_text() if log.exists() else ""
                    raise RuntimeError(f"PgBouncer did not start: {said}") from None
                time.sleep(0.02)
