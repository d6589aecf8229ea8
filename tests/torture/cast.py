"""The processes of a round: how each is started, told to end, and replaced."""

from __future__ import annotations

import multiprocessing
import time
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from tests.torture import actors, handlers
from tests.torture.journal import Journal
from tests.torture.runs import PATIENCE_S

RAW = {"producer": 2, "worker": 4, "janitor": 1}  # the roles of actors.py, which end in time
PACKAGE = {"serve": 1, "send": 1, "consume": 1, "command": 1}  # of handlers.py, to be told to end

# A plain fork of this process would share its connections.
processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(["tests.torture.actors", "tests.torture.handlers"])


class Member(NamedTuple):
    role: str
    name: str
    process: Any


class Leaving(NamedTuple):
    """Told to end, and not gone yet; in the journal as a call that lasts as long."""

    member: Member
    since: float
    call: AbstractContextManager[dict[str, Any]]
    outcome: dict[str, Any]


class Cast:
    """`package`: with processes that work through the package, beside those of raw calls."""

    def __init__(
        self, engine: str, url: str, folder: Path, journal: Journal, until: float, *, package: bool
    ) -> None:
        self.engine, self.url, self.folder = engine, url, folder
        self.journal = journal
        self.until = until
        self.package = package
        self.members: list[Member] = []
        self.leaving: list[Leaving] = []
        self._names = 0
        for role, number in (RAW | PACKAGE if package else RAW).items():
            for _ in range(number):
                self.start(role)

    def start(self, role: str) -> None:
        self._names += 1
        name = f"{role}{self._names}"
        run: Any = handlers.run
        arguments: tuple[Any, ...] = (role, self.url, self.folder, name)
        if role in RAW:
            run = actors.run
            arguments = (role, self.engine, self.url, self.folder, name, self.until, self.package)
        process = processes.Process(target=run, args=arguments, daemon=True)
        process.start()
        self.members.append(Member(role, name, process))

    def kill(self, rng: Random) -> None:
        member = self.members.pop(rng.randrange(len(self.members)))
        member.process.kill()
        member.process.join()
        self.start(member.role)

    def end_raw(self) -> None:
        for member in [member for member in self.members if member.role in RAW]:
            self.members.remove(member)
            member.process.join(timeout=30)
            if member.process.is_alive():
                member.process.kill()
                member.process.join()

    # -- those of the package

    def at_work(self) -> list[Member]:
        """Those who would notice SIGTERM."""
        return [m for m in self.members if m.role in PACKAGE and self._is_at_work(m)]

    def _is_at_work(self, member: Member) -> bool:
        with suppress(FileNotFoundError):
            return "at work" in (self.folder / f"{member.name}.log").read_text(errors="replace")
        return False

    def terminate(self, member: Member) -> None:
        self.members.remove(member)
        call = self.journal.call("terminate", who=member.name)
        self.leaving.append(Leaving(member, time.time(), call, call.__enter__()))
        member.process.terminate()

    def look(self) -> None:
        """After those who have gone: told to, or by themselves, which are replaced."""
        for leaving in list(self.leaving):
            process = leaving.member.process
            if not process.is_alive() or time.time() > leaving.since + PATIENCE_S:
                self.leaving.remove(leaving)
                leaving.outcome["result"] = process.exitcode
                leaving.call.__exit__(None, None, None)
                process.kill()
                process.join()
        for member in [m for m in self.members if m.role in PACKAGE]:
            if not member.process.is_alive():
                self.members.remove(member)
                at_work = self._is_at_work(member)
                with self.journal.call("ended", who=member.name, at_work=at_work) as outcome:
                    outcome["result"] = member.process.exitcode
                self.start(member.role)

    def end(self) -> None:
        """All that are left."""
        for member in self.at_work():
            self.terminate(member)
        while self.leaving:
            self.look()
            time.sleep(0.02)
        for member in self.members:
            member.process.kill()
            member.process.join()
