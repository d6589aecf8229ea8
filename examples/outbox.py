"""Tell another system of each order, whatever goes wrong: an outbox.

    python examples/outbox.py
    ALKSTORE_URL=postgresql://localhost/app python examples/outbox.py --kills 100

An order is written with its message in one transaction; every fourth is rolled back. A process
delivers the messages to an HTTP server, which refuses some, breaks down or stays silent over others
that it has taken, and is down for a while. The process is killed again and again. In the end each
committed order must have been taken once, and no other: a repeat is known by its message's id.
Prints the counts; exit code 1 if anything is wrong. The database is SQLite in a temporary folder,
or ALKSTORE_URL. Ctrl-C ends it, and clears away what it made.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import alkstore

TIMEOUT_S = 1.0  # short, as is the delay of a retry: nobody wants to wait for an example
DELIVER = "deliver"  # as which the program starts itself


def main() -> int:
    parser = argparse.ArgumentParser(description="Deliver messages through all sorts of trouble.")
    parser.add_argument("--kills", type=int, default=10, help="of the deliverer (default: 10)")
    kills = parser.parse_args().kills
    stop = alkstore.StopToken.on_signals()  # a call to the database runs to its end first
    with tempfile.TemporaryDirectory(prefix="alkstore-outbox-") as scratch:
        target = os.environ.get("ALKSTORE_URL") or str(Path(scratch, "shop.db"))
        try:
            alkstore.install(target)  # where it is not there yet
            with closing(Shop(target, Receiver(), stop)) as shop:
                shop.run(kills)
                return shop.report()
        except alkstore.AlkstoreError as error:
            raise SystemExit(f"outbox: {error}") from error


# -- the deliverer, a process of its own ----------------------------------------------------------


def deliverer(outbox: str, port: str, worker_id: str) -> None:
    """Deliver until SIGTERM. That is all that a program has to do."""
    stop = alkstore.StopToken.on_signals()

    def deliver(message: alkstore.JobHandle) -> None:
        try:
            post(int(port), f"{outbox}-{message.id}", message.payload_text)
        except (OSError, HTTPException) as error:
            raise alkstore.Retry(repr(error), delay_s=1) from error

    with alkstore.open(os.environ["ALKSTORE_URL"], busy_timeout_s=60) as store:
        store.outbox(outbox).run(deliver, stop=stop, concurrency=4, worker_id=worker_id)


def post(port: int, key: str, body: str) -> None:
    """The key is the same at each attempt, and names the sender: others have ids of their own."""
    headers = {"Content-Type": "application/json", "Idempotency-Key": f'"{key}"'}
    with closing(HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)) as http:
        http.request("POST", "/orders", body, headers)
        answer = http.getresponse()
        if answer.status != 204:
            raise HTTPException(f"{answer.status} {answer.reason}")


# -- the receiver ---------------------------------------------------------------------------------


class Receiver:
    """The other system: it takes each order once, and is not always well."""

    def __init__(self) -> None:
        self.taken: dict[str, int] = {}  # orders by key, as its database would have them
        self.repeats = 0
        self.requests = 0
        self._lock = threading.Lock()
        self._serving: threading.Thread | None = None
        self._bind(0)

    def take(self, key: str, order: int) -> None:
        with self._lock:  # a real one writes the key in the transaction of the work
            if key in self.taken:
                self.repeats += 1
            else:
                self.taken[key] = order

    def start(self) -> None:
        self._server.server_activate()
        self._serving = threading.Thread(target=self._server.serve_forever, args=[0.05])
        self._serving.start()

    def go_down(self) -> None:
        self.close()
        self._bind(self.port)  # nobody else shall get it, but nobody listens

    def close(self) -> None:
        if self._serving:
            self._server.shutdown()
            self._serving.join()
            self._serving = None
        self._server.server_close()

    def _bind(self, port: int) -> None:
        receiver = self

        class Request(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                receiver._answer(self)

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            def handle_error(self, *_: object) -> None:
                pass  # whoever asked has been killed, or has lost patience

        self._server = Server(("127.0.0.1", port), Request, bind_and_activate=False)
        self._server.server_bind()
        self.port = self._server.server_port

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        order = json.loads(request.rfile.read(int(request.headers["Content-Length"])))["order"]
        with self._lock:
            self.requests += 1
        mood = random.choices(["well", "refuses", "breaks", "hangs"], [7, 1, 1, 1])[0]
        if mood != "refuses":
            self.take(request.headers["Idempotency-Key"], order)
        if mood == "hangs":
            time.sleep(2 * TIMEOUT_S)
        else:
            request.send_response({"well": 204, "refuses": 503, "breaks": 500}[mood])
            request.end_headers()


# -- the shop, and what befalls its deliverer -----------------------------------------------------


class Declined(Exception):
    """An order is not to be, after all."""


class Shop:
    """One run. Its table of orders and its outbox have the same name, of this run alone."""

    def __init__(self, target: str, receiver: Receiver, stop: alkstore.StopToken) -> None:
        self.target, self.receiver, self.stop = target, receiver, stop
        self.store = alkstore.open(target, busy_timeout_s=60)
        self.name = f"alkstore_orders_{secrets.token_hex(4)}"
        self.outbox = self.store.outbox(self.name)
        self.messages: list[int] = []
        self.rolled_back: list[int] = []
        self.kills = 0
        with self.store.transaction() as tx:
            tx.connection.execute(f"CREATE TABLE {self.name} (number bigint PRIMARY KEY)")

    def write_orders(self, enough: alkstore.StopToken) -> None:
        for number in itertools.count(1):
            try:
                with self.store.transaction() as tx:
                    tx.connection.execute(f"INSERT INTO {self.name} VALUES ({number})")
                    # Its receiver may be down for long, and a kill costs an attempt too.
                    message = self.outbox.enqueue({"order": number}, max_attempts=1000, tx=tx)
                    if number % 4 == 0:
                        raise Declined
            except Declined:
                self.rolled_back.append(number)
            else:
                self.messages.append(message)
            if enough.wait(random.uniform(0, 0.03)):
                return

    def run(self, kills: int) -> None:
        """Kill so many deliverers while orders are written, and let the last one finish."""
        self.receiver.start()
        enough = alkstore.StopToken()
        with ThreadPoolExecutor(1) as pool:
            writing = pool.submit(self.write_orders, enough)
            try:
                for number in range(kills):
                    with self.deliverer() as process:
                        if number == kills // 2:
                            self.receiver.go_down()
                            self.until(process, self.somebody_was_refused)
                            print("the receiver was down", flush=True)
                            self.receiver.start()
                        asked = self.receiver.requests + random.randint(1, 20)
                        self.until(process, lambda asked=asked: self.receiver.requests >= asked)
                        time.sleep(random.uniform(0, 0.02))  # to hit it at any step
                        process.kill()
                        self.kills += 1
                        print(f"killed deliverer {self.kills} of {kills}", flush=True)
            finally:
                enough.set()
            writing.result()
            with self.deliverer() as process:
                self.until(process, lambda: not any(job.state != "dead" for job in self.waiting()))
                process.terminate()

    @contextmanager
    def deliverer(self) -> Iterator[subprocess.Popen[bytes]]:
        self.alive = f"deliverer {self.kills + 1}"
        process = subprocess.Popen(
            [sys.executable, __file__, DELIVER, self.name, str(self.receiver.port), self.alive],
            env=os.environ | {"ALKSTORE_URL": self.target},
            process_group=0,  # ctrl-C is for us, who end it
        )
        try:
            yield process
            process.wait()
        finally:
            process.kill()
            process.wait()

    def until(self, process: subprocess.Popen[bytes], condition: Callable[[], bool]) -> None:
        """Wait, and meanwhile hand back what the dead had in hand."""
        while not condition():
            self.hand_back()
            if self.stop.wait(0.02):
                raise KeyboardInterrupt
            if process.poll() is not None:
                raise SystemExit("outbox: the deliverer has ended by itself")

    def hand_back(self) -> None:
        """End the claims of those who cannot. Without it they last for 300 seconds.

        Only who knows that a deliverer is dead may do so: here we have killed it.
        """
        claims = f"""
            WHERE queue = '__alkstore_outbox_{self.name}' AND state = 'processing'
              AND worker_id <> '{self.alive}'"""
        if self.target.startswith("postgres"):
            sql = f"""
                SELECT alkstore.retry(queue, job_id, attempts, 'the deliverer was killed', 0)
                FROM alkstore.jobs {claims}"""
        else:
            sql = f"""
                INSERT INTO alkstore_retry(queue, job_id, attempt, error, delay_s)
                SELECT queue, job_id, attempts, 'the deliverer was killed', 0
                FROM alkstore_jobs {claims}"""
        with self.store.transaction() as tx:
            tx.connection.execute(sql)

    def waiting(self) -> list[alkstore.JobRecord]:
        """The messages that have not been delivered and acked."""
        jobs = (self.outbox.get_job(message) for message in list(self.messages))
        return [job for job in jobs if job is not None]

    def somebody_was_refused(self) -> bool:
        return any("refused" in (job.retry_error or "") for job in self.waiting())

    def report(self) -> int:
        """Print the counts, check every order, and give the exit code."""
        with self.store.transaction() as tx:
            rows = tx.connection.execute(f"SELECT number FROM {self.name}").fetchall()
        committed = {number for (number,) in rows}
        taken = Counter(self.receiver.taken.values())
        problems = [f"order {number} was never taken" for number in sorted(committed - set(taken))]
        unfounded = sorted(set(taken) - committed)
        problems += [f"order {number} was taken, but does not exist" for number in unfounded]
        problems += [f"order {number} was taken {n} times" for number, n in taken.items() if n > 1]
        problems += [f"message {job.id} is left, {job.state}" for job in self.waiting()]
        print(f"orders committed        {len(committed):,}")
        print(f"orders rolled back      {len(self.rolled_back):,}")
        print(f"requests                {self.receiver.requests:,}")
        print(f"orders taken            {taken.total():,}")
        print(f"of those rolled back    {len(unfounded):,}")
        print(f"repeats known by id     {self.receiver.repeats:,}")
        print(f"deliverers killed       {self.kills:,}")
        print(f"problems                {len(problems):,}", *problems, sep="\n  ")
        return 1 if problems else 0

    def close(self) -> None:
        self.receiver.close()
        with self.store.transaction() as tx:
            tx.connection.execute(f"DROP TABLE {self.name}")
            for message in self.messages:
                self.outbox.cancel(message, tx=tx)
        self.store.close()


if __name__ == "__main__":
    if sys.argv[1:2] == [DELIVER]:
        deliverer(*sys.argv[2:])
        sys.exit()
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("outbox: interrupted", file=sys.stderr)
        sys.exit(128 + signal.SIGINT)
