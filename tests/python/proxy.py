"""A TCP proxy in front of a server, to be cut off from it as networks do it: without a word."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress


class Proxy:
    """Passes bytes on, both ways, until told to swallow them all; nothing is closed then.

    While it swallows, new connections are taken as well, and nobody answers on them. What it has
    swallowed a byte of stays dead for ever; later connections are passed on again.
    """

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self.swallows = False
        self.connections = 0  # taken up to now
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        for each in (self._listener, *self._sockets):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)  # closing alone wakes no thread that waits on it
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self.connections += 1
                server = socket.create_connection(self._server)
                self._sockets += [client, server]
                dead = threading.Event()
                for ends in ((client, server), (server, client)):
                    threading.Thread(target=self._pass_on, args=(*ends, dead), daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket, dead: threading.Event) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if self.swallows or dead.is_set():
                    dead.set()
                else:
                    sink.sendall(data)
            if not dead.is_set():
                sink.shutdown(socket.SHUT_WR)
