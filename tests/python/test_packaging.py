"""The package as users get it: a wheel, an sdist, an editable checkout, each alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

import alkstore
from alkstore._sql import ENGINES, installer

ROOT = Path(__file__).parents[2]

FIRST_JOB = """
import sys, alkstore
with alkstore.open(sys.argv[1]) as store:
    queue = store.queue("q")
    queue.enqueue({"to": 7})
    handle = queue.claim_one("w")
    print(handle.payload, handle.ack(), alkstore.__file__)
"""


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The sdist, and the wheel made from it."""
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--outdir", folder, ROOT]
    subprocess.run(build, check=True, cwd=folder, stdout=subprocess.DEVNULL)
    name = f"alkstore-{alkstore.__version__}"
    return {"sdist": folder / f"{name}.tar.gz", "wheel": folder / f"{name}-py3-none-any.whl"}


def test_the_wheel_holds_the_installers_and_the_types(distributions: dict[str, Path]) -> None:
    with zipfile.ZipFile(distributions["wheel"]) as wheel:
        names = wheel.namelist()
        assert "alkstore/py.typed" in names
        for engine in ENGINES:
            packaged = wheel.read(f"alkstore/sql/alkstore-{engine}.sql").decode()
            assert packaged == installer(engine)
    tops = {name.split("/")[0] for name in names}
    assert tops == {"alkstore", f"alkstore-{alkstore.__version__}.dist-info"}


@pytest.mark.parametrize("form", ["wheel", "sdist", "editable"])
def test_an_installed_package_finds_its_sql(
    distributions: dict[str, Path], form: str, tmp_path: Path
) -> None:
    venv.create(tmp_path / "venv", with_pip=False)
    programs = tmp_path / "venv" / "bin"
    source = ["--editable", ROOT] if form == "editable" else [distributions[form]]
    pip = [sys.executable, "-m", "pip", "--python", programs / "python"]
    subprocess.run([*pip, "install", "--quiet", *source], check=True, cwd=tmp_path)

    def output(*command: str | Path) -> str:
        return subprocess.check_output(command, text=True, cwd=tmp_path)

    command = programs / "alkstore"
    assert output(command, "--version") == f"alkstore {alkstore.__version__}\n"
    for engine in ENGINES:
        assert output(command, "sql", engine) == installer(engine)
    assert output(command, "install", "app.db").startswith("installed alkstore ")
    payload, done, file = output(programs / "python", "-c", FIRST_JOB, "app.db").rsplit(" ", 2)
    assert (payload, done) == ("{'to': 7}", "True")
    where = ROOT if form == "editable" else tmp_path
    assert Path(file).is_relative_to(where)


def test_make_build_on_a_python_that_starts_with_few_modules(tmp_path: Path) -> None:
    # Without `site`, which may have loaded those that a file of the package has the name of.
    for part in ("Makefile", "python", "sql"):
        source = ROOT / part
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / part)
    environ = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    command = ["make", "build", f"PYTHON={sys.executable} -S"]
    subprocess.run(command, check=True, cwd=tmp_path, env=environ, stdout=subprocess.DEVNULL)
    for engine in ENGINES:
        built = tmp_path / "build" / f"alkstore-{engine}.sql"
        assert built.read_text(encoding="utf-8") == installer(engine)
