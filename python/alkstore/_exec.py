"""A handler that runs a command for each job: what `alkstore work` is made of."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from typing import IO

from ._outcomes import Retry
from .types import JobHandle

_ERROR_BYTES = 60_000  # fewer than what an error may have characters
_LATE_S = 1.0  # how long a process left behind may hold up what the command itself wrote


class Command:
    """Calls the shell with a job's payload on standard input.

    Exit status 0 is success. With any other the job is tried again; its error is how the command
    ended, and the end of what it wrote to standard error, which goes to ours as well.
    """

    def __init__(self, command: str) -> None:
        self._command = command
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._killed = False

    def __call__(self, job: JobHandle) -> None:
        with tempfile.TemporaryFile() as payload:  # unlike a pipe never full
            payload.write(job.payload_text.encode("utf-8", "surrogateescape"))
            payload.seek(0)
            process = self._start(job, payload)
        assert process.stderr is not None
        error = _Tail(process.stderr)
        status = process.wait()
        with self._lock:
            self._running.discard(process)
        if status != 0:
            raise Retry(": ".join(filter(None, (_how_it_ended(status), error.text()))))

    def kill(self) -> None:
        """End all commands that still run, with all that they started, and start no others."""
        with self._lock:
            self._killed = True
            for process in self._running:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)

    def _start(self, job: JobHandle, payload: IO[bytes]) -> subprocess.Popen[bytes]:
        environment = {
            "ALKSTORE_QUEUE": job.queue,
            "ALKSTORE_JOB_ID": str(job.id),
            "ALKSTORE_ATTEMPT": str(job.attempt),
        }
        with self._lock:
            if self._killed:
                raise InterruptedError("the worker has come to its end")
            # A session of its own: a ctrl-C is for the worker, who lets its commands finish.
            process = subprocess.Popen(
                self._command,
                shell=True,
                stdin=payload,
                stderr=subprocess.PIPE,
                env=os.environ | environment,
                start_new_session=True,
            )
            self._running.add(process)
            return process


class _Tail:
    """Passes on what a command writes to standard error, and keeps the end of it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._end = b""
        self._thread = threading.Thread(target=self._read, name="stderr", daemon=True)
        self._thread.start()

    def text(self) -> str:
        self._thread.join(_LATE_S)
        return self._end.decode("utf-8", "replace").strip()

    def _read(self) -> None:
        with self._stream:
            while chunk := os.read(self._stream.fileno(), 65536):
                self._end = (self._end + chunk)[-_ERROR_BYTES:]
                with suppress(OSError):  # when nobody reads ours, the command goes on
                    sys.stderr.buffer.write(chunk)
                    sys.stderr.buffer.flush()


def _how_it_ended(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    with suppress(ValueError):
        return f"killed by {signal.Signals(-status).name}"
    return f"killed by signal {-status}"  # one of those for real time has no name
