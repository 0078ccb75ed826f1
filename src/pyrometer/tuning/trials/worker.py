"""The parent's side of a worker: started, asked, and ended; what it does cannot harm the search."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec
import torch

from pyrometer.bench.clock import HostClock
from pyrometer.bench.comparison.interleaving import Batch, Side
from pyrometer.bench.fresh import ChildTracebackError, Failure, ended_early
from pyrometer.errors import UserProgramError
from pyrometer.quantity import Seconds, format_seconds
from pyrometer.record import Record, from_json
from pyrometer.tuning.trials import protocol

A = TypeVar("A", bound=Record)

# `python -m` would put the working directory, with whatever files are there, at the head of the path of imports.
_BOOT = "import sys; sys.path[:] = [p for p in sys.path if p]; from pyrometer.tuning.trials.serving import serve; serve()"
_LAST_WORDS = 2000


class Worker:
    """A process that holds one configuration open.

    Threads of an idle worker sleep: they would take the cores of the side whose turn it is.

    Args:
        log: file that its stderr goes to.
        environment: variables beside those of this process.
    """

    def __init__(self, log: Path, environment: dict[str, str] | None = None) -> None:
        self._log = log
        with log.open("wb") as stderr:
            self._child = subprocess.Popen(  # noqa: S603 - our own interpreter
                [sys.executable, "-c", _BOOT],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,
                env={**os.environ, "OMP_WAIT_POLICY": "passive", **(environment or {})},
            )
        self._unread = b""

    def ask(self, request: protocol.Request, kind: type[A], *, timeout_s: Seconds) -> A:
        """Send a request and wait for the answer.

        Raises:
            PyrometerError: the same class and text as the worker raised.
            UserProgramError: the worker ended, or took longer than `timeout_s`; it is ended then.
        """
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(msgspec.json.encode(request) + b"\n")
            self._child.stdin.flush()
        except (BrokenPipeError, ValueError):  # it has ended, or was ended by us
            raise self._ended() from None
        result, failure = msgspec.json.decode(self._line(timeout_s), type=tuple[msgspec.Raw, Failure | None])
        if failure is not None:
            raise failure.revived() from ChildTracebackError(failure.trace)
        return from_json(kind, bytes(result))

    def _line(self, timeout_s: Seconds) -> bytes:
        assert self._child.stdout is not None
        descriptor = self._child.stdout.fileno()
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._unread:
            left = deadline - time.monotonic()
            if left <= 0:
                self.close()
                raise UserProgramError(f"took longer than {format_seconds(timeout_s)} and was ended")
            if select.select([descriptor], [], [], left)[0]:
                chunk = os.read(descriptor, 1 << 20)
                if not chunk:
                    raise self._ended()
                self._unread += chunk
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _ended(self) -> UserProgramError:
        status = self._child.wait()
        self.close()
        words = self._log.read_bytes()[-_LAST_WORDS:].decode(errors="replace").strip().splitlines()
        last = f": {words[-1]}" if words else ""
        return UserProgramError(f"{ended_early(status)}{last}".replace("; its own messages are above", ""))

    def close(self) -> None:
        """End the process and all that it started."""
        for stream in (self._child.stdin, self._child.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._child.pid, signal.SIGKILL)
        self._child.wait()


@contextlib.contextmanager
def worker(log: Path, environment: dict[str, str] | None = None) -> Iterator[Worker]:
    """A worker that is ended at the end, whatever happens."""
    child = Worker(log, environment)
    try:
        yield child
    finally:
        child.close()


class _RemoteClock(HostClock):
    """The host's clock, under the name of the clock that a worker times with."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


class WorkerSide(Side):
    """A side of a comparison that runs in a worker.

    What is compared was compiled and allocated apart from the other side: neither its caches nor its settings can reach it.
    """

    def __init__(self, child: Worker, opened: protocol.Opened, name: str, timeout_s: Seconds) -> None:
        super().__init__(name, _NoSession(), _RemoteClock(opened.clock))  # type: ignore[arg-type]
        self._worker = child
        self._timeout_s = timeout_s

    def batch(self, num_calls: int, *, watched: bool = False) -> Batch:
        """Let the worker run and time `num_calls` steps, from the seed that is in force here."""
        seed = torch.initial_seed() & 0x7FFFFFFF
        ran = self._worker.ask(
            protocol.Run(num_calls=num_calls, seed=seed, watched=watched),
            protocol.Ran,
            timeout_s=self._timeout_s,
        )
        self.num_calls += num_calls
        return Batch(tuple(ran.times_s), ran.cpu_s, ran.demand)


class _NoSession:
    """In place of a session, which is in the worker."""
