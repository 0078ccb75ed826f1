"""Hearing of `torch.compile` before anything that is compiled runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch

from pyrometer.workload.script.startup._pyrometer_inside.instrument import (
    CannotInstrumentError,
    instrument,
)


class CompileWatch:
    """Tells of every call of `torch.compile`, also by torch itself and by what wraps it; the function stays the same object.

    Attributes:
        blind: this torch's function is not as expected, so that nothing is heard of.
    """

    inside = False  # as instrumented code asks for it

    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell = tell
        self.blind = False
        try:
            self._switch = instrument(inspect.unwrap(torch.compile), 0, self)
        except CannotInstrumentError:
            self.blind = True
        else:
            self._switch(True)

    def begin(self, _kind: int, _model: Any) -> bool:
        """Something is to be compiled; false, because its end is of no interest."""
        self._tell()
        return False

    def remove(self) -> None:
        """Leave torch as it was."""
        if not self.blind:
            self._switch(False)
