"""Wakes on PostgreSQL: LISTEN, on a connection of its own."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import closing, suppress
from selectors import EVENT_READ, DefaultSelector

from psycopg.sql import SQL, Identifier

from . import _postgres_connection as pg
from ._complaints import Complaints
from ._wakes import Wakes

_LOOK_AFTER_S = 10.0  # of silence, whether the server is still there


class PostgresWakes(Wakes):
    def __init__(
        self, connect: Callable[[], pg.Connection], prefix: str, complain: Complaints
    ) -> None:
        super().__init__(complain)
        self._connect = connect
        self._channel = f"SELECT {prefix}wake_channel(%s::text)"
        self._knocks: socket.socket | None = None

    def _serve(self) -> None:
        with closing(self._connect()) as connection, DefaultSelector() as selector:
            door, self._knocks = socket.socketpair()  # what a selector can wait for
            with door, self._knocks:
                self._knocks.setblocking(False)
                selector.register(connection, EVENT_READ)
                selector.register(door, EVENT_READ)
                queues: dict[str, str] = {}  # by channel
                while wanted := self._queues(looking=False):
                    self._listen(connection, queues, wanted)
                    # Also those that came with the answers to other statements.
                    for notification in connection.notifies(timeout=0):
                        if notification.channel in queues:
                            self.wake(queues[notification.channel])
                    events = selector.select(_LOOK_AFTER_S)
                    if not events:
                        pg.check(connection)
                    if any(key.fileobj is door for key, _ in events):
                        door.recv(4096)

    def _listen(self, connection: pg.Connection, queues: dict[str, str], wanted: set[str]) -> None:
        for channel in [c for c, queue in queues.items() if queue not in wanted]:
            connection.execute(SQL("UNLISTEN {}").format(Identifier(channel)))
            del queues[channel]
        for queue in wanted - set(queues.values()):
            [(channel,)] = pg.rows(connection, self._channel, (queue,))
            connection.execute(SQL("LISTEN {}").format(Identifier(channel)))
            queues[channel] = queue
            self.wake_all(queue)  # for what was committed before

    def _changed(self) -> None:
        if self._knocks is not None:
            with suppress(OSError):  # it is full of knocks, or closed and looks anyway
                self._knocks.send(b"!")
