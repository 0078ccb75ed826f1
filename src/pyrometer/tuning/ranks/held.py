"""The ranks of a script in this process's hand: started by torchrun, asked all at once, ended together."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import select
import shutil
import signal
import socket
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
from pyrometer.tuning.ranks.forks import Forks
from pyrometer.tuning.ranks.messages import WHERE, Answer, merged
from pyrometer.tuning.trials.protocol import Open, Opened
from pyrometer.tuning.trials.results import TRAINING_STEPS
from pyrometer.workload.failure import signal_name
from pyrometer.workload.ranks.launch import LAUNCHER, first_error

A = TypeVar("A", bound=Record)
FEWEST_STEPS = 2 * TRAINING_STEPS
"""Of a script: those that losses are compared in, and as many to be timed."""

ANSWER_S: Seconds = 2.0
"""For a rank to say where it stands: a thread of its own answers, unless something holds the interpreter."""

END_S: Seconds = 30.0
GRACE_S: Seconds = 0.2


def require_launcher() -> None:
    """Say what to do where there is no torchrun.

    Raises:
        InputError: this torch was built without `torch.distributed`.
    """
    import torch

    if importlib.util.find_spec(LAUNCHER) is None or not torch.distributed.is_available():
        raise InputError(
            f"--nproc: {LAUNCHER} (torchrun) is missing in this torch, which was built without torch.distributed; "
            "install a build of torch that has it, or leave out --nproc"
        )


class HeldRanks:
    """One launch of a script, held at the end of a step.

    A script that comes to its end before it is asked no more is started again.
    """

    def __init__(self, forks: Forks, argv: Sequence[str], cwd: str, log: Path) -> None:
        self._forks, self._argv, self._cwd, self._log = forks, list(argv), cwd, log
        self._folder = Path(tempfile.mkdtemp(prefix="pyrometer-"))  # a socket's path must be short
        self._pids: dict[int, int] = {}
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

    @property
    def alive(self) -> bool:
        """Whether all ranks are held; a launch of which one died is ended as a whole."""
        return bool(self._ranks)

    def kill(self) -> None:
        """End all ranks; whoever waits for their answers is told so."""
        for pid in list(self._pids.values()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        """End all ranks."""
        self._stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    # ---- processes ---------------------------------------------------------------------------------------------

    def _start(self, until: float) -> None:
        place = self._folder / "ranks"
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(place))
            listener.listen(self._forks.num_ranks)
            self._pids = dict(enumerate(self._forks.launch(self._argv, self._cwd, place, self._log, until)))
            try:
                self._ranks = self._forks.accepted(listener, until)
            finally:
                place.unlink()
        self._unread = [b""] * self._forks.num_ranks

    def _stop(self) -> None:
        """End all ranks, and what they have started."""
        for rank in self._ranks:
            rank.close()
        for number, pid in self._pids.items():
            self._forks.end(number, pid)
        self._ranks, self._pids = [], {}

    def _died(self, number: int) -> PyrometerError:
        """Why the launch is over, from what a rank ended with or what it printed."""
        status = self._forks.end(number, self._pids.pop(number), END_S)
        self._stop()
        return _by_signal(number, status) or UserProgramError(
            f"rank {number}: {first_error(self._log.read_text(errors='replace'))}"
        )

    def _died_before(self, failed: int) -> PyrometerError | None:
        """What a rank says that lost another is not the reason: that which a signal ended is."""
        others = [(number, self._pids.pop(number)) for number in list(self._pids) if number != failed]
        ended = [(number, self._forks.end(number, pid, GRACE_S)) for number, pid in others]
        self._stop()
        return next(filter(None, (_by_signal(number, status) for number, status in ended)), None)

    # ---- messages ----------------------------------------------------------------------------------------------

    def _asked(self, request: Record, until: float, timeout_s: Seconds) -> list[Answer]:
        line = msgspec.json.encode(request) + b"\n"
        with contextlib.suppress(BrokenPipeError):  # what became of it is seen below
            for rank in self._ranks:
                rank.sendall(line)
        try:
            answers = self._answers(until)
        except KeyboardInterrupt:
            self._stop()  # answers are still to come, and would be taken for those to the next request
            raise
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
            for rank in ready:
                number = self._ranks.index(rank)
                self._unread[number] = self._line(rank, self._unread[number])
                line, _, self._unread[number] = self._unread[number].partition(b"\n")
                answer = answers[number] = from_json(Answer, line)
                if answer.failure is not None:
                    raise self._died_before(number) or answer.failure.revived() from ChildTracebackError(
                        answer.failure.trace
                    )
        return answers

    def _line(self, rank: socket.socket, unread: bytes) -> bytes:
        while b"\n" not in unread:
            try:
                chunk = rank.recv(1 << 16)
            except ConnectionResetError:
                chunk = b""
            if not chunk:
                raise self._died(self._ranks.index(rank))
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


def _by_signal(number: int, status: int | None) -> PyrometerError | None:
    if status is None or status >= 0:
        return None
    return UserProgramError(f"rank {number} was ended by {signal_name(-status)}")
