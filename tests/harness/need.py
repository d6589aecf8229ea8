"""What the tests need from the system: installed by apt-get as root, else named with the command.

Type: python3 -m tests.harness.need venv pgtap sqlite3 pgbouncer

With --optional nothing is said of what cannot be installed: the tests leave out what needs it.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.harness import pgbouncer
from tests.harness.server import system_servers


def pgtap_sql() -> Path | None:
    """The newest pgtap.sql on this system. It loads into a server of any supported major."""
    found = Path("/usr/share/postgresql").glob("*/extension/pgtap.sql")
    return max(found, key=lambda path: int(path.parts[-3]), default=None)


def missing(need: str) -> list[str]:
    """The Debian packages still missing for a need."""
    match need:
        case "venv":
            return [] if importlib.util.find_spec("ensurepip") else ["python3-venv"]
        case "sqlite3":
            return [] if shutil.which("sqlite3") else ["sqlite3"]
        case "cc":
            return [] if shutil.which("cc") else ["gcc", "libc6-dev"]
        case "pgtap":
            # The package of one server version depends on that server: name the one that is there.
            major = max(system_servers(), default=None)
            packages = [] if pgtap_sql() else [f"postgresql-{major}-pgtap" if major else "pgtap"]
            if not shutil.which("pg_prove"):
                packages.append("libtap-parser-sourcehandler-pgtap-perl")
            return packages
        case "pgbouncer":
            return [] if pgbouncer.program() else ["pgbouncer"]
        case "plpgsql_check":
            # For Debian's own servers alone: those of PyPI cannot load its libraries.
            major = int(os.environ.get("PG") or max(system_servers(), default=0))
            debian = Path(f"/usr/lib/postgresql/{major}/bin/postgres").exists()
            control = Path(f"/usr/share/postgresql/{major}/extension/plpgsql_check.control")
            packages = [f"postgresql-{major}-plpgsql-check"]
            return packages if debian and not control.exists() else []
    raise SystemExit(f"unknown need: {need}")


def install(packages: list[str]) -> bool:
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return False
    env = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    command = ["apt-get", "install", "-qq", "-y", "--no-install-recommends", *packages]
    if subprocess.run(command, env=env).returncode == 0:
        return True
    # No package lists yet, or old ones.
    subprocess.run(["apt-get", "update", "-qq"], env=env)
    return subprocess.run(command, env=env).returncode == 0


def main(needs: list[str]) -> int:
    optional = "--optional" in needs
    packages = [package for need in needs if need != "--optional" for package in missing(need)]
    if packages and not install(packages) and not optional:
        names = " ".join(packages)
        print(f"The tests need these packages. Type: sudo apt-get install {names}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
