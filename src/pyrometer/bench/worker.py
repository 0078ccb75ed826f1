"""A process that is held open and answers one request after another; what it does cannot harm who asks."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Protocol, TypeVar

import msgspec
import torch

from pyrometer.bench.clock import HostClock
from pyrometer.bench.comparison.interleaving import Batch, Side
from pyrometer.bench.fresh import ChildTracebackError, Failure, die_with_parent, ended_early
from pyrometer.errors import UserProgramError
from pyrometer.quantity import Seconds, format_seconds
from pyrometer.record import Record, doc, from_json

A = TypeVar("A", bound=Record)

_LAST_WORDS = 2000


class Run(Record, frozen=True, kw_only=True, tag=True):
    """Run a batch of steps."""

    num_calls: int
    seed: int
    watched: bool = False
    which: Annotated[str, doc("of several that the worker holds open")] = ""
    core: Annotated[int | None, doc("the core that the batch begins on; null leaves it to the system")] = None


class Ran(Record, frozen=True, kw_only=True):
    """Times of a batch."""

    times_s: list[Seconds]
    cpu_s: Seconds
    demand: float = 0.0

    @classmethod
    def of(cls, batch: Batch) -> Ran:
        """A batch on its way to who asked for it."""
        return cls(times_s=list(batch.times_s), cpu_s=batch.cpu_s, demand=batch.demand)


def boot(function: str) -> str:
    """What a fresh interpreter is told to run: a function without arguments, as `module:function`.

    `python -m` would put the working directory, with whatever files are there, at the head of the path of imports.
    """
    module, _, name = function.partition(":")
    return f"import sys; sys.path[:] = [p for p in sys.path if p]; from {module} import {name}; {name}()"


class Asked(Protocol):
    """What is held open elsewhere and answers requests."""

    def ask(self, request: Record, kind: type[A], *, timeout_s: Seconds) -> A:
        """Send a request and wait for the answer."""

    @property
    def alive(self) -> bool:
        """Whether it can answer."""

    def kill(self) -> None:
        """End its processes, from another thread than the one that waits for its answer, which is told so."""

    def close(self) -> None:
        """End it."""


class Worker:
    """A process that holds something open.

    Threads of an idle worker sleep: they would take the cores of the side whose turn it is.

    Args:
        log: file that its stderr goes to.
        command: that starts it, as the interpreter and what it runs.
        environment: variables beside those of this process.
        cwd: its working directory.
    """

    def __init__(
        self,
        log: Path,
        command: Sequence[str],
        environment: dict[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        self._log = log
        with log.open("wb") as stderr:
            self._child = subprocess.Popen(  # noqa: S603 - our own interpreter
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,
                cwd=cwd,
                env={**os.environ, "OMP_WAIT_POLICY": "passive", **(environment or {})},
            )
        self._unread = b""

    def ask(self, request: Record, kind: type[A], *, timeout_s: Seconds) -> A:
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
        try:
            line = self._line(timeout_s)
        except KeyboardInterrupt:
            self.close()  # its answer is still to come, and would be taken for that to the next request
            raise
        result, failure = msgspec.json.decode(line, type=tuple[msgspec.Raw, Failure | None])
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

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._child.poll() is None

    def kill(self) -> None:
        """End the process and all that it started; whoever waits for an answer is told so."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._child.pid, signal.SIGKILL)

    def close(self) -> None:
        """End the process and all that it started."""
        for stream in (self._child.stdin, self._child.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        self.kill()
        self._child.wait()


@contextlib.contextmanager
def worker(log: Path, function: str, environment: dict[str, str] | None = None) -> Iterator[Worker]:
    """A worker in this interpreter that runs a function, `module:function`, and is ended at the end, whatever happens."""
    child = Worker(log, [sys.executable, "-c", boot(function)], environment)
    try:
        yield child
    finally:
        child.close()


def answer_requests(kind: Any, answer: Callable[[Any], Record]) -> None:
    """What a worker runs: answer requests from stdin until it is closed; what the program prints goes to stderr.

    Args:
        kind: type of the requests, a union of tagged records.
        answer: does what is asked; what it raises is raised again by who asked.
    """
    die_with_parent()
    _die_first_without_memory()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    for line in sys.stdin.buffer:
        failure: Failure | None = None
        result: Record | None = None
        try:
            result = answer(msgspec.json.decode(line, type=kind))
        except Exception as error:  # noqa: BLE001 - it is raised again, in the parent
            failure = Failure.of(error)
        answers.write(msgspec.json.encode((result, failure)) + b"\n")
        answers.flush()


def _die_first_without_memory() -> None:
    """What takes all memory is what the kernel is to end, and not who asked for it."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


class _RemoteClock(HostClock):
    """The host's clock, under the name of the clock that a worker times with."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


class WorkerSide(Side):
    """A side of a comparison that runs in a worker.

    What is compared was compiled and allocated apart from the other side: neither its caches nor its settings can reach it.
    """

    def __init__(self, child: Asked, clock: str, name: str, timeout_s: Seconds, which: str = "") -> None:
        super().__init__(name, _NoSession(), _RemoteClock(clock))  # type: ignore[arg-type]
        self._worker = child
        self._timeout_s = timeout_s
        self._which = which
        self.core: int | None = None

    def batch(self, num_calls: int, *, watched: bool = False) -> Batch:
        """Let the worker run and time `num_calls` steps, from the seed that is in force here."""
        seed = torch.initial_seed() & 0x7FFFFFFF
        ran = self._worker.ask(
            Run(num_calls=num_calls, seed=seed, watched=watched, which=self._which, core=self.core),
            Ran,
            timeout_s=self._timeout_s,
        )
        self.num_calls += num_calls
        return Batch(tuple(ran.times_s), ran.cpu_s, ran.demand)


class _NoSession:
    """In place of a session, which is in the worker."""
