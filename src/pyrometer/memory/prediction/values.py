"""Values that torch's own code reads on the way, such as a norm in an optimizer: any will do, for the memory."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import torch

from pyrometer.memory.private.dispatch import DispatchMode
from pyrometer.memory.private.fake_tensors import is_missing_value
from pyrometer.workload.whereabouts.nearest import is_users

_TORCH_READS = ("/torch/optim/", "/torch/nn/", "/torch/amp/")


class AssumedValues(DispatchMode):
    """Take a number that torch itself reads as 1, and a truth as false; what the program reads stays unknown."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        try:
            return func(*args, **(kwargs or {}))
        except RuntimeError as error:
            dtype = getattr(args[0], "dtype", None) if args else None
            if not is_missing_value(error, func) or not _torch_reads(sys._getframe(1)):  # noqa: SLF001
                raise
            if dtype == torch.bool:
                return False
            if dtype is not None and dtype.is_floating_point:
                return 1.0
            raise


def _torch_reads(frame: FrameType | None) -> bool:
    """Whether the innermost code that is not part of running operators is torch's."""
    while frame is not None:
        if any(folder in frame.f_code.co_filename for folder in _TORCH_READS):
            return True
        if is_users(frame.f_code):
            return False
        frame = frame.f_back
    return False
