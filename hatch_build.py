"""Puts the one-file installers into the wheel.

They are composed from sql/ at build time, by the same code that composes them in a checkout. That
module is loaded by its path because the package is not installed while its own wheel is built.
"""

from __future__ import annotations

import importlib.util
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ENGINES = ("postgres", "sqlite")


class InstallerHook(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":  # reads sql/ of the checkout, so edits show at once
            return
        root = Path(self.root)
        spec = importlib.util.spec_from_file_location("_sql", root / "python/alkstore/_sql.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        self._folder = tempfile.TemporaryDirectory()
        for engine in ENGINES:
            name = f"alkstore-{engine}.sql"
            file = Path(self._folder.name, name)
            file.write_text(module.compose(engine, root / "sql"), encoding="utf-8")
            build_data["force_include"][str(file)] = f"alkstore/sql/{name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if version != "editable":
            self._folder.cleanup()
