"""Running a script as a child that owns the terminal, while this process stays in the background."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from pyrometer.errors import InputError
from pyrometer.quantity import Seconds

STARTUP = Path(__file__).parent / "startup"
GRACE_S = 5.0


@dataclass(frozen=True)
class Ended:
    """How a child came to its end; a negative exit code is the signal that ended it."""

    exit_code: int
    wall_s: Seconds
    interrupted: bool
    timed_out: bool


def observed_environment(
    log: Path, trace_request: str | None = None, follow_request: str | None = None
) -> dict[str, str]:
    """This process's environment with what makes a Python log to `log`, and write a trace or be followed if requested.

    The child takes all of that out again.
    """
    environment = dict(os.environ)
    pythonpath = environment.get("PYTHONPATH")
    if pythonpath is not None:
        environment["_PYROMETER_PYTHONPATH"] = pythonpath
    environment["PYTHONPATH"] = os.pathsep.join([str(STARTUP), *([pythonpath] if pythonpath else [])])
    environment["_PYROMETER_EVENT_LOG"] = str(log)
    if trace_request is not None:
        environment["_PYROMETER_TRACE"] = trace_request
    if follow_request is not None:
        environment["_PYROMETER_FOLLOW"] = follow_request
    return environment


def run_child(command: list[str], environment: dict[str, str], timeout_s: Seconds | None = None) -> Ended:
    """Run a command with our standard streams, and outlive it.

    Ctrl-C reaches the child through the terminal, so here it is only noted; a request to end or a hang-up is passed on.
    After `timeout_s` the child is asked to end, and killed if it does not within 5 s.

    Raises:
        InputError: the command cannot be started.
    """
    with _Signals() as signals:
        started = time.perf_counter()
        try:
            # Not close_fds: a shell may hand over more than the three streams, as in `--data <(zcat file)`.
            process = subprocess.Popen(command, env=environment, close_fds=False)  # noqa: S603 - the user's own script
        except OSError as error:
            raise InputError(
                f"{command[0]}: cannot be started: {error.strerror}; pass the path of a Python"
            ) from error
        signals.forward_to(process)
        timed_out = _wait(process, timeout_s)
        wall_s = time.perf_counter() - started
    return Ended(process.returncode, wall_s, signals.interrupted, timed_out)


def _wait(process: subprocess.Popen[bytes], timeout_s: Seconds | None) -> bool:
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_S)
            return True
        process.kill()
        process.wait()
        return True
    return False


class _Signals:
    """Keeps this process alive while a child runs; does nothing outside the main thread, where it cannot."""

    def __init__(self) -> None:
        self.interrupted = False
        self._process: subprocess.Popen[bytes] | None = None
        self._pending: list[int] = []
        self._before: dict[int, object] = {}

    def __enter__(self) -> _Signals:  # noqa: PYI034 - typing.Self needs Python 3.11
        if threading.current_thread() is threading.main_thread():
            for number, handler in {
                signal.SIGINT: self._note,
                signal.SIGTERM: self._forward,
                signal.SIGHUP: self._forward,
            }.items():
                # What is ignored here (nohup, a job in the background) must stay ignored in the child.
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, handler)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def forward_to(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        for number in self._pending:
            process.send_signal(number)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.interrupted = True

    def _forward(self, number: int, _frame: FrameType | None) -> None:
        if self._process is None:
            self._pending.append(number)
        else:
            self._process.send_signal(number)
