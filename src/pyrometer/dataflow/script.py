"""Recording what reads what inside of a script under observation, between the ends of its steps, and with which objects."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import Any

import torch
from torch.overrides import _get_current_function_mode_stack
from torch.utils._device import DeviceContext
from torch.utils._python_dispatch import _get_current_dispatch_mode

from pyrometer.dataflow.build import build_report
from pyrometer.dataflow.recorder import Recorder
from pyrometer.errors import InputError
from pyrometer.record import to_json
from pyrometer.workload.program.describe import describe_objects

STEPS = 3
BUDGET_S = 4.0
"""After this time no more steps are recorded than two."""

FEWEST = 2


def follow_values(_torch: Any, settings: dict[str, Any]) -> StepFlow:
    """What follows the next steps, and writes what it finds to the files `path` and `program` of the settings."""
    return StepFlow(Path(settings["path"]), Path(settings["program"]))


class StepFlow:
    """Records step by step; see `next_step`.

    Args:
        path: of the report, which is written after the last step.
        program: the same for how the program is set up.
    """

    def __init__(self, path: Path, program: Path) -> None:
        self._path = path
        self._program = program
        self._models: dict[int, torch.nn.Module] = {}
        self._optimizers: dict[int, torch.optim.Optimizer] = {}
        self._recorder = Recorder(time.perf_counter, _settle)
        self._steps = 0
        self._open: contextlib.ExitStack | None = None
        self._began = time.perf_counter()
        self._pid = os.getpid()

    def next_step(self) -> bool:
        """A step has ended: record the next one; false once there is no need of another, and what was found is written."""
        was_open = self._open is not None
        self.stop()
        if was_open and (self._steps >= STEPS or self._is_late() or self._recorder.is_paused):
            program = describe_objects([*self._models.values()], [*self._optimizers.values()])
            self._program.write_bytes(to_json(program))
            self._path.write_bytes(to_json(build_report(self._recorder.finish())))
            return False
        if _get_current_dispatch_mode() is not None or _has_function_mode():
            raise InputError("the script has a mode of torch on, which might end before the recording's does")
        self._open = contextlib.ExitStack()
        self._open.enter_context(self._recorder.recording(hooks=False))
        self._steps += 1
        return True

    def optimizer(self, stepping: Any) -> None:
        """This optimizer begins its step; `None`: one has ended it."""
        if stepping is None:
            self._recorder.optimizer_ends()
        else:
            self._optimizers[id(stepping)] = stepping
            self._recorder.optimizer_begins(stepping)

    def module(self, calling: Any) -> None:
        """The outermost call of this module begins."""
        self._models[id(calling)] = calling

    def stop(self) -> None:
        """Leave torch as it was."""
        stack, self._open = self._open, None
        if stack is not None:
            stack.close()

    def detach(self) -> None:
        """In a forked child: record no more."""
        self._recorder.pause()
        self.stop()

    def _is_late(self) -> bool:
        return self._steps >= FEWEST and time.perf_counter() - self._began > BUDGET_S


def _has_function_mode() -> bool:
    """Whether the script has a mode on beside `torch.set_default_device`, which ends in any order."""
    modes: list[Any] = _get_current_function_mode_stack()  # type: ignore[no-untyped-call]
    return any(not isinstance(mode, DeviceContext) for mode in modes)


def _settle() -> None:
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.synchronize()
