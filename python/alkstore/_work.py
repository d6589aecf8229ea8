"""One run of a Worker: a courier between the database and the threads of the handlers.

The courier, a thread of its own, claims ahead of the handlers and acks behind them, many jobs in a
call, on one connection. The handlers' threads only take jobs and leave outcomes. The thread that
called run() only waits: a ctrl-C, which can be raised in it at any point, interrupts no call.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable
from contextlib import ExitStack, nullcontext, suppress
from math import ceil, inf
from queue import Empty, SimpleQueue
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import TYPE_CHECKING

from ._bell import Bell
from ._claimer import Claimed, Claimer
from ._heartbeats import Heartbeats
from ._outcomes import Outcome, Outcomes, outcome_of

if TYPE_CHECKING:
    from .store import Session
    from .worker import Worker

log = logging.getLogger("alkstore")

_AHEAD_S = 0.25  # claim ahead what the handlers take no longer for
_HOARD_S = 1.0  # and give it back when they do
_LOOK_S = 1.0  # how soon to notice what rings no bell
_LET_GO_S = 8.0  # at most for the last acks and releases, when the drain is over


class Run:
    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._engine = worker.store._engine
        self._owner = os.getpid()
        self._bell = Bell()
        self._ended = Bell()
        self._error: BaseException | None = None
        self._left_at = inf  # by the caller of run()
        self._outcomes = Outcomes(self._engine.complain)
        self._unstarted: SimpleQueue[Claimed | None] = SimpleQueue()
        self._lock = threading.Lock()  # of what follows
        self._in_hand: set[Claimed] = set()
        self._waiting = 0  # how many are unstarted
        self._running: dict[Claimed, float] = {}  # since when
        self._claimed_at = -inf
        self._average_s: float | None = None

    def serve(self) -> None:
        courier = threading.Thread(target=self._courier, name="courier", daemon=True)
        try:
            courier.start()
            self._wait(courier)
        except BaseException:
            self._left_at = time.monotonic()
            self._bell.ring()
            self._wait(courier)
            raise
        if self._error is not None:
            raise self._error

    def _wait(self, courier: threading.Thread) -> None:
        # Again and again: the ring may have been heard by a wait that a ctrl-C has ended.
        while courier.is_alive() and not self._ended.wait(_LOOK_S):
            if time.monotonic() >= self._drained_at() + _LET_GO_S:
                log.warning("the database does not answer: not waiting for the last call")
                return

    def _drained_at(self) -> float:
        """When running handlers must have come to their end; infinite before the stop."""
        given_at, drain_s = self._worker.stop._given_at, self._worker.drain_s
        drained_at = inf if given_at is None or drain_s is None else given_at + drain_s
        return min(drained_at, self._left_at)

    def _courier(self) -> None:
        try:
            self._work()
        except BaseException as error:
            self._error = error
        finally:
            self._ended.ring()

    def _work(self) -> None:
        worker, engine = self._worker, self._engine
        with (
            engine.claiming_session() as session,
            Heartbeats(engine, self._beating) if worker.heartbeat else nullcontext() as heartbeats,
            worker.stop._rings(self._bell),
            ExitStack() as stack,
        ):
            claimers: deque[Claimer] = deque()
            for queue in worker.handlers:
                subscription = stack.enter_context(engine.wakes.subscribe(queue, self._bell))
                claimers.append(
                    Claimer(worker.store, subscription, worker.worker_id, worker.poll_s)
                )
            try:
                for n in range(worker.concurrency):
                    name = f"handler {n + 1}"
                    threading.Thread(target=self._handle, name=name, daemon=True).start()
                while not worker.stop.is_set() and self._left_at == inf:
                    self._round(session, claimers, heartbeats)
                self._drain(session)
            finally:
                self._let_go(session)

    def _round(
        self, session: Session, claimers: deque[Claimer], heartbeats: Heartbeats | None
    ) -> None:
        """Settle and claim what there is; if there is nothing, wait for something."""
        room = self._room()
        ready = [claimer for claimer in claimers if claimer.pause_s() == 0]
        if not room:
            for claimer in ready:
                claimer.stand_back()
            ready = []
        if not ready:
            pauses = [claimer.pause_s() for claimer in claimers] if room else []
            self._bell.wait(min([*pauses, self._outcomes.pause_s(), self._hoard_s(), _LOOK_S]))
            self._give_back_a_hoard()
            _ = self._worker.store._engine  # raises when the store was closed
        if ready or self._outcomes.pause_s() == 0:
            self._outcomes.settle(session)
        for left, claimer in zip(range(len(ready), 0, -1), ready, strict=True):
            if room <= 0:
                break
            claimers.remove(claimer)
            claimers.append(claimer)  # where room is short, another queue comes first next time
            claims = claimer.claim(session, ceil(room / left))
            room -= len(claims)
            with self._lock:
                self._in_hand.update(claims)
                self._waiting += len(claims)
                if claims:
                    self._claimed_at = time.monotonic()
            for claimed in claims:
                self._unstarted.put(claimed)
                if heartbeats:
                    heartbeats.expect(claimed)

    def _room(self) -> int:
        """How many jobs to claim now: none while handlers are busy and enough are ahead of them."""
        with self._lock:
            ahead = self._ahead()
            taken = self._waiting + len(self._running)
            if self._waiting > ahead // 2 and taken >= self._worker.concurrency:
                return 0
            return max(0, self._worker.concurrency + ahead - taken)

    def _ahead(self) -> int:
        """How many jobs to hold for handlers that are busy."""
        if self._average_s is None or time.monotonic() >= self._stuck_at():
            return 0
        soon = self._worker.concurrency * _AHEAD_S / max(self._average_s, 1e-6)
        return min(self._worker.prefetch, int(soon))

    def _stuck_at(self) -> float:
        """When all handlers will have been at their jobs, or what waits behind them will have
        waited, for longer than others should wait."""
        if len(self._running) < self._worker.concurrency:
            return inf
        return min(max(self._running.values()), self._claimed_at) + _HOARD_S

    def _handle(self) -> None:
        """A handler's thread."""
        while (claimed := self._unstarted.get()) is not None:
            began_at = time.monotonic()
            with self._lock:
                self._waiting -= 1
                if claimed not in self._in_hand:  # the end has come in between
                    continue
                self._running[claimed] = began_at
            outcome = self._outcome(claimed)
            if os.getpid() != self._owner:  # a fork by the handler: the jobs are its parent's
                _end_fork(0 if outcome is None or outcome.call == "ack" else 1)
            with self._lock:
                del self._running[claimed]
                if outcome is not None:  # else it was not begun
                    took_s = time.monotonic() - began_at
                    average_s = took_s if self._average_s is None else self._average_s
                    self._average_s = average_s + (took_s - average_s) / 10
                ring = self._waiting <= self._ahead() // 2
                if claimed in self._in_hand:  # else it was released
                    if outcome is not None:
                        # Under the lock: a drain must see the one or the other.
                        ring = self._outcomes.add(outcome) or ring
                    self._in_hand.remove(claimed)
            if ring:
                self._bell.ring()

    def _outcome(self, claimed: Claimed) -> Outcome | None:
        job = claimed.job
        if claimed.lapsed:
            log.warning("job %d of %r was not begun: its claim has lapsed", job.id, job.queue)
            return None
        try:
            _finish(self._worker.handlers[job.queue](job))
        except BaseException as error:  # a handler's sys.exit() is no reason to end either
            if isinstance(error, SystemExit) and os.getpid() != self._owner:
                _end_fork(error.code if isinstance(error.code, int) else int(bool(error.code)))
            return outcome_of(claimed, error)
        return Outcome(claimed, "ack")

    def _beating(self) -> set[Claimed]:
        with self._lock:
            claims = self._in_hand.union(self._outcomes.claims())
        return {claimed for claimed in claims if not claimed.lost}

    def _hoard_s(self) -> float:
        """How many seconds from now jobs may have waited behind long ones for too long."""
        with self._lock:
            return max(0.0, self._stuck_at() - time.monotonic()) if self._waiting else inf

    def _give_back_a_hoard(self) -> None:
        """Others may have handlers for what waits here behind jobs that turn out to be long."""
        with self._lock:
            if not self._waiting or time.monotonic() < self._stuck_at():
                return
        self._hand_back(self._take_back())

    def _hand_back(self, claims: Iterable[Claimed]) -> None:
        for claimed in claims:
            self._outcomes.add(Outcome(claimed, "release"))

    def _take_back(self) -> list[Claimed]:
        """What no handler has started on."""
        unstarted: list[Claimed] = []
        with suppress(Empty):
            while claimed := self._unstarted.get_nowait():
                unstarted.append(claimed)
        with self._lock:
            self._waiting -= len(unstarted)
            self._in_hand.difference_update(unstarted)
        return unstarted

    def _drain(self, session: Session) -> None:
        """Wait for the handlers that run, and send what comes of it."""
        self._hand_back(self._take_back())
        log.info("stopping; handlers that still run: %d", len(self._running))
        while self._in_hand or self._outcomes.pause_s() < inf:
            left_s = self._drained_at() - time.monotonic()
            if left_s <= 0:
                break
            self._bell.wait(min(self._outcomes.pause_s(), left_s, _LOOK_S))
            if self._outcomes.pause_s() == 0:
                self._outcomes.settle(session)

    def _let_go(self, session: Session) -> None:
        """Send what there is, release what is in hand, and end the threads."""
        held = self._take_back()
        for _ in range(self._worker.concurrency):
            self._unstarted.put(None)
        with self._lock:
            for claimed in self._running.keys() & self._in_hand:
                job = claimed.job
                log.warning("job %d of %r still runs, and is handed back", job.id, job.queue)
            held += self._in_hand
            self._in_hand.clear()
        self._hand_back(held)
        self._outcomes.settle(session, last=True)


def _finish(result: object) -> None:
    """Refuse what has done nothing yet."""
    # By its type: a proxy may raise when it is asked for its class.
    if issubclass(type(result), CoroutineType | GeneratorType | AsyncGeneratorType):
        if isinstance(result, CoroutineType):
            result.close()  # without a warning that it was never awaited
        raise TypeError(f"the handler returned a {type(result).__name__}, which nobody runs")


def _end_fork(status: int) -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(status)
