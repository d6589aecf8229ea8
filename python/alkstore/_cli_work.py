"""The command work."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
from collections.abc import Iterable
from types import FrameType

from ._cli_common import Commands, add_command, add_queue, add_url, jobs_of, kind, opened
from ._exec import Command
from .stop import StopToken
from .worker import Worker


def add(commands: Commands) -> None:
    command = add_command(
        commands,
        "work",
        _work,
        "run a command for each job of a queue until SIGTERM or SIGINT",
        [
            "alkstore work emails --exec ./send.sh",
            "alkstore work thumbnails --exec 'python3 -m thumbnails' --concurrency 8",
        ],
        grant="worker",
    )
    add_queue(command)
    command.add_argument(
        "--exec",
        type=_command,
        metavar="COMMAND",
        required=True,
        help="called by the shell with the payload on standard input, and ALKSTORE_QUEUE, "
        "ALKSTORE_JOB_ID and ALKSTORE_ATTEMPT in its environment; exit status 0 acks the job, "
        "any other has it tried again, with that and standard error as its error",
    )
    command.add_argument(
        "--concurrency",
        type=int,
        default=1,
        metavar="N",
        help="how many jobs at once (default: 1)",
    )
    command.add_argument(
        "--poll-s",
        type=float,
        default=5.0,
        metavar="SECONDS",
        help="how often to look for jobs even if no wake has come (default: 5)",
    )
    command.add_argument(
        "--drain-s",
        type=float,
        default=25.0,
        metavar="SECONDS",
        help="how long a stop waits for running commands, before it kills them and hands their "
        "jobs back (default: 25)",
    )
    command.add_argument(
        "--worker-id",
        metavar="NAME",
        help="shown by `alkstore jobs` (default: host, process id and a random part)",
    )
    add_url(command)


def _command(text: str) -> str:
    if text.strip():
        return text
    raise argparse.ArgumentTypeError("the command is empty")  # and would ack all jobs


def _work(options: argparse.Namespace) -> Iterable[str]:
    command = Command(options.exec)
    with opened(options) as store:
        worker = Worker(
            store,
            {jobs_of(store, options): command},
            concurrency=options.concurrency,
            stop=_stop(),
            poll_s=options.poll_s,
            drain_s=options.drain_s,
            worker_id=options.worker_id,
        )
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
        logging.info("worker %s: at work on %s %r", worker.worker_id, kind(options), options.queue)
        try:
            worker.run()
        finally:
            command.kill()
    return []


def _stop() -> StopToken:
    """At the first signal the worker drains; at the second it goes, and its commands with it."""

    def leave(number: int, frame: FrameType | None) -> None:
        for ignored in (signal.SIGTERM, signal.SIGINT):  # the jobs are to be handed back
            signal.signal(ignored, signal.SIG_IGN)
        sys.exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, leave)
    return StopToken.on_signals()
