"""Modes of torch that tell of every operator, and of what reads tensors without one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from pyrometer.dataflow.operators import is_composite
from pyrometer.workload.whereabouts.dispatch import DispatchMode

ESCAPES = frozenset(
    {
        "numpy",
        "__array__",
        "tolist",
        "data_ptr",
        "untyped_storage",
        "__reduce_ex__",
        "__dlpack__",
        "share_memory_",
    }
)
"""Methods that read a tensor without an operator."""


Saw = Callable[[Any, Any, Any, Callable[[], Any]], Any]
"""Is given an operator, its arguments, and what runs it; returns its result."""


class Operators(DispatchMode):
    """Sees every operator, and those that one made of others is made of."""

    def __init__(self, saw: Saw) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._saw = saw

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = kwargs or {}
        if torch.is_inference_mode_enabled() and is_composite(func):
            with self:
                result = func.decompose(*args, **named)
            if result is not NotImplemented:
                return result
        return self._saw(func, args, named, lambda: func(*args, **named))


class Escapes(TorchFunctionMode):
    """Sees what reads tensors without an operator."""

    def __init__(self, escape: Callable[[Sequence[Any]], None]) -> None:
        super().__init__()
        self._escape = escape

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") in ESCAPES:
            self._escape(args[:1])
        return func(*args, **(kwargs or {}))
