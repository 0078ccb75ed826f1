"""The ranks of a script in this process's hand: started by torchrun, asked all at once, ended together."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from pyrometer.bench.fresh import ChildTracebackError
from pyrometer.bench.worker import Run
from pyrometer.errors import InputError, PyrometerError, UserProgramError
from pyrometer.quantity import Seconds, format_seconds
from pyrometer.record import Record, from_json
from pyrometer.tuning.ranks.messages import Answer, Hello, merged
from pyrometer.tuning.ranks.rank import WHERE
from pyrometer.tuning.trials.protocol import Open, Opened
from pyrometer.tuning.trials.results import TRAINING_STEPS
from pyrometer.workload.failure import signal_name
from pyrometer.workload.ranks.launch import first_error

A = TypeVar("A", bound=Record)
LAUNCHER = "torch.distributed.run"
FEWEST_STEPS = 2 * TRAINING_STEPS
"""Of a script: those that losses are compared in, and as many to be timed."""

ANSWER_S: Seconds = 2.0
"""For a rank to say where it stands: a thread of its own answers, unless something holds the interpreter."""

END_S: Seconds = 30.0

_SIGNALLED = re.compile(r"exitcode: -(\d+)\) local_rank: (\d+)")
"""Of what torchrun prints: the rank that a signal ended, first of all."""


def require_launcher() -> None:
    """Say what to do where there is no torchrun.

    Raises:
        InputError: this torch was built without `torch.distributed`.
    """
    if importlib.util.find_spec(LAUNCHER) is None or not _has_distributed():
        raise InputError(
            f"--nproc: {LAUNCHER} (torchrun) is missing in this torch, which was built without torch.distributed; "
            "install a build of torch that has it, or leave out --nproc"
        )


def _has_distributed() -> bool:
    import torch

    return torch.distributed.is_available()


def launch_command(num_ranks: int, mode: str, place: str, argv: Sequence[str]) -> list[str]:
    """How a script is started on ranks of this machine with levers in force."""
    rank = [sys.executable, "-P", "-m", "pyrometer.tuning.ranks.rank", mode, place]
    torchrun = [sys.executable, "-m", LAUNCHER, "--standalone", "--no-python"]
    return [*torchrun, f"--nproc-per-node={num_ranks}", *rank, *argv]


def _is_open(rank: socket.socket) -> bool:
    with contextlib.suppress(ConnectionResetError):
        return bool(rank.recv(1, socket.MSG_PEEK))
    return False


class HeldRanks:
    """One launch of a script, held at the end of a step.

    A script that comes to its end before it is asked no more is started again.

    Args:
        argv: the script and its arguments.
        num_ranks: how many.
        cwd: its working directory.
        log: file for what it prints.
    """

    def __init__(self, argv: Sequence[str], num_ranks: int, cwd: str, log: Path) -> None:
        self._argv, self._num_ranks, self._cwd, self._log = list(argv), num_ranks, cwd, log
        self._folder = Path(tempfile.mkdtemp(prefix="pyrometer-"))  # a socket's path must be short
        self._launcher: subprocess.Popen[bytes] | None = None
        self._ranks: list[socket.socket] = []
        self._unread: list[bytes] = []
        self._opened: Open | None = None

    def ask(self, request: Record, kind: type[A], *, timeout_s: Seconds) -> A:
        """Ask all ranks and wait for the answers, of which one is made.

        Raises:
            PyrometerError: the same class and text as a rank raised.
            UserProgramError: a rank ended, or took longer than `timeout_s`; all are ended then.
            InputError: the script is too short.
        """
        until = time.monotonic() + timeout_s
        if isinstance(request, Open):
            self._opened = request
            self._start(until)
        answers = self._asked(request, until, timeout_s)
        ended = next((answer.ended for answer in answers if answer.ended is not None), None)
        if ended is None:
            return merged([from_json(kind, bytes(answer.result)) for answer in answers])  # type: ignore[no-any-return]
        self._stop()
        if ended < FEWEST_STEPS or not isinstance(request, Run) or self._opened is None:
            raise InputError(
                f"{self._argv[0]}: it ended after {ended} updates of an optimizer; tune needs {FEWEST_STEPS} at least: let it train for longer"
            )
        self.ask(self._opened, Opened, timeout_s=timeout_s + END_S)
        return self.ask(request, kind, timeout_s=timeout_s)

    def close(self) -> None:
        """End all ranks."""
        self._stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    # ---- processes ---------------------------------------------------------------------------------------------

    def _start(self, until: float) -> None:
        place = self._folder / "ranks"
        with socket.socket(socket.AF_UNIX) as listener, self._log.open("wb") as log:
            listener.bind(str(place))
            listener.listen(self._num_ranks)
            self._launcher = subprocess.Popen(  # noqa: S603 - torchrun, with the user's own script
                launch_command(self._num_ranks, "serve", str(place), self._argv),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                cwd=self._cwd,
            )
            numbered: dict[int, tuple[socket.socket, bytes]] = {}
            while len(numbered) < self._num_ranks:
                if not select.select([listener], [], [], 0.2)[0]:
                    self._require_running(until)
                    continue
                rank = listener.accept()[0]
                line, _, rest = self._line(rank, b"").partition(b"\n")
                numbered[from_json(Hello, line).rank] = (rank, rest)
        place.unlink()
        self._ranks = [numbered[number][0] for number in sorted(numbered)]
        self._unread = [numbered[number][1] for number in sorted(numbered)]

    def _require_running(self, until: float) -> None:
        assert self._launcher is not None
        if self._launcher.poll() is not None:
            raise self._died()
        if time.monotonic() > until:
            self._stop()
            raise UserProgramError("torchrun did not start all ranks in time, and was ended")

    def _stop(self) -> None:
        for rank in self._ranks:
            rank.close()
        self._ranks = []
        if self._launcher is not None:
            # Ranks die with torchrun, and also where nobody holds the other end of their sockets.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._launcher.pid, signal.SIGKILL)
            self._launcher.wait()
            self._launcher = None

    def _died(self, rank: int | None = None) -> PyrometerError:
        """Why the launch is over, from what it printed; torchrun has ended the other ranks."""
        if self._launcher is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._launcher.wait(END_S)
        self._stop()
        said = self._log.read_text(errors="replace")
        who = "" if rank is None else f"rank {rank}: "
        if ended := _SIGNALLED.search(said):
            return UserProgramError(f"rank {ended[2]} was ended by {signal_name(int(ended[1]))}")
        return UserProgramError(f"{who}{first_error(said)}")

    # ---- messages ----------------------------------------------------------------------------------------------

    def _asked(self, request: Record, until: float, timeout_s: Seconds) -> list[Answer]:
        line = msgspec.json.encode(request) + b"\n"
        with contextlib.suppress(BrokenPipeError):  # what became of it is seen below
            for rank in self._ranks:
                rank.sendall(line)
        answers = self._answers(until)
        late = [number for number, answer in answers.items() if answer is None]
        if late:
            places = self._places(late)
            self._stop()
            raise UserProgramError(
                f"{places} did not go on within {format_seconds(timeout_s)}, and all were ended"
            )
        return [answer for _, answer in sorted(answers.items()) if answer is not None]

    def _answers(self, until: float) -> dict[int, Answer | None]:
        """The next message of each rank; `None` of those that are late.

        Raises:
            PyrometerError: a rank failed or is gone.
        """
        answers: dict[int, Answer | None] = dict.fromkeys(range(len(self._ranks)))
        while (waited := [rank for number, rank in enumerate(self._ranks) if answers[number] is None]) and (
            left := until - time.monotonic()
        ) > 0:
            ready = select.select(waited, [], [], left)[0]
            # What others say of a rank that is gone is not the reason.
            for rank in sorted(ready, key=_is_open):
                number = self._ranks.index(rank)
                self._unread[number] = self._line(rank, self._unread[number])
                line, _, self._unread[number] = self._unread[number].partition(b"\n")
                answer = answers[number] = from_json(Answer, line)
                if answer.failure is not None:
                    self._stop()
                    raise answer.failure.revived() from ChildTracebackError(answer.failure.trace)
        return answers

    def _line(self, rank: socket.socket, unread: bytes) -> bytes:
        while b"\n" not in unread:
            try:
                chunk = rank.recv(1 << 16)
            except ConnectionResetError:
                chunk = b""
            if not chunk:
                raise self._died(self._ranks.index(rank) if rank in self._ranks else None)
            unread += chunk
        return unread

    def _places(self, late: Sequence[int]) -> str:
        """Where ranks stand that do not answer."""
        with contextlib.suppress(BrokenPipeError):
            for number in late:
                self._ranks[number].sendall(WHERE + b"\n")
        told = self._answers(time.monotonic() + ANSWER_S)
        found = [(number, told[number]) for number in late]
        return " and ".join(
            f"rank {number}" + (f" ({answer.place})" if answer is not None and answer.place else "")
            for number, answer in found
        )
