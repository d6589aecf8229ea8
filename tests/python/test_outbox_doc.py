"""docs/outbox.md: its commands and its Python do what they show."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

import alkstore
from tests.python.test_readme import BLOCK, checkout, lines, run, run_python, sessions, stop_when

__all__ = ["checkout"]  # the fixture

PAGE = (Path(__file__).parents[2] / "docs" / "outbox.md").read_text()
RECEIVER = "http://localhost:8000"


def blocks(kind: str) -> list[str]:
    return [text for found, text in BLOCK.findall(PAGE) if found == kind]


def test_every_block_is_of_a_kind_that_is_run() -> None:
    kinds = [kind for kind, _ in BLOCK.findall(PAGE)]
    assert set(kinds) == {"console", "python"}
    assert PAGE.count("```") == 2 * len(kinds)


def test_the_shells_answer_as_shown(checkout: Path, empty_pg_url: str) -> None:
    alkstore.install(empty_pg_url)
    alkstore.install("app.db")
    for block in blocks("console"):
        for session in sessions(block):
            printed = run(session.command, "\n".join(session.typed) + "\n")
            assert lines(printed) == lines("\n".join(session.prints)), session


@pytest.fixture
def receiver() -> Iterator[HTTPServer]:
    """Refuses each first request, and notes keys and bodies."""

    class Request(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            arrived.append((self.path, self.headers["Idempotency-Key"], body))
            self.send_response(204 if len(arrived) > 1 else 503)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    arrived: list[tuple[str, str, bytes]] = []
    with HTTPServer(("127.0.0.1", 0), Request) as server:
        server.arrived = arrived  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, args=[0.05])
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_python_prints_what_its_comments_say(
    engine: str,
    checkout: Path,
    empty_pg_url: str,
    receiver: HTTPServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    target = "app.db" if engine == "sqlite" else empty_pg_url
    alkstore.install(target)
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(alkstore.StopToken, "on_signals", lambda: stop_when_delivered(target))
    for block in blocks("python"):
        run_python(block.replace(RECEIVER, f"http://127.0.0.1:{receiver.server_port}"), target)
    assert receiver.arrived == [("/mails", '"shop-1"', b'{"to": 7}')] * 2  # type: ignore[attr-defined]


def stop_when_delivered(target: str) -> alkstore.StopToken:
    """When the message of the page is gone."""
    return stop_when(target, lambda store: store.outbox("mail").get_job(1) is None)
