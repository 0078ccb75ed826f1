"""Starting the workers of `scale`, and what they answer."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from pyrometer.errors import PyrometerError, UserProgramError
from pyrometer.quantity import Seconds
from pyrometer.record import Record, from_json, to_json
from pyrometer.scaling.record import Parallel, Schedule
from pyrometer.scaling.worker import Ran, Request, Schedules
from pyrometer.workload.ranks.launch import first_error

R = TypeVar("R", bound=Record)

PATIENCE_S = 180.0
"""For a worker beyond its budget: imports, the user's set-up, first steps."""


def schedules_of(
    target: str, numbers: Sequence[int], parallel: Parallel, budget_s: Seconds
) -> list[Schedule]:
    """The collectives of a step at each number of ranks; see `schedules_at`.

    Raises:
        UserProgramError: the program failed under a fake process group; its last line is told.
    """
    request = Request(target=target, parallel=parallel, ranks=[*numbers], budget_s=budget_s)
    return _asked(request, [], Schedules).schedules


def run_of(processes: int, budget_s: Seconds, target: str | None = None, parallel: Parallel = "ddp") -> Ran:
    """Links, and steps where there is a target, on real processes of this machine.

    Raises:
        UserProgramError: a process failed.
    """
    request = Request(target=target, parallel=parallel, budget_s=budget_s)
    torchrun = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    return _asked(request, torchrun, Ran)


def _asked(request: Request, launcher: list[str], kind: type[R]) -> R:
    with tempfile.TemporaryDirectory(prefix="pyrometer-") as folder:
        path = Path(folder) / "request.json"
        path.write_bytes(to_json(request))
        command = [sys.executable, *launcher, "-m", "pyrometer.scaling.worker", str(path)]
        code, said = _run(command, request.budget_s + PATIENCE_S)
        answer = path.with_suffix(".answer")
        if code is None:
            raise PyrometerError(
                f"{request.target or 'the links'}: no answer after {request.budget_s + PATIENCE_S:.0f} s; a rank hangs"
            )
        if code or not answer.exists():
            raise UserProgramError(f"{request.target or 'the links'}: {first_error(said)}")
        return from_json(kind, answer.read_bytes())


def _run(command: list[str], patience_s: Seconds) -> tuple[int | None, str]:
    """Exit code and errors of a command; `None` where its time was up, and with it all that it started was ended."""
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(  # noqa: S603 - ourselves
            command, stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True
        )
        try:
            code: int | None = process.wait(patience_s)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        errors.seek(0)
        return code, errors.read()
